"""`stagewise report`: the page again, from what is stored."""

from __future__ import annotations

import argparse

from stagewise.commands.arguments import add_ledgers, add_report, add_runs
from stagewise.commands.reproduce import print_defects

ABOUT = "Write the report again from the runs that are stored."


def add_options(sub: argparse.ArgumentParser) -> None:
    add_report(sub)
    add_ledgers(sub)
    add_runs(sub)


def act(options, rest) -> int:
    from stagewise.lab import api
    from stagewise.lab.execute.progress import shown

    done = api.reproduce(
        options.what,
        options.preset,
        out=options.out,
        runs=options.runs,
        progress=shown(),
        stored_only=True,
        ledgers=options.ledgers,
    )
    print(f"report: {done.report}")
    return print_defects(done, options.debug)
