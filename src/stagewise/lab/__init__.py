"""The lab runs papers without knowing which: experiments, run folders, claims, ledger, report."""
