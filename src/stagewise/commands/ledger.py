"""`stagewise ledger`: kept ledgers, what they say, and which of their lines are stale."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from stagewise.errors import Refused

ABOUT = "Show kept ledgers: verdicts by preset, and lines whose code has changed since."


def add_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("files", nargs="*", type=Path, help="kept ledgers (default: those in the folder ledger)")
    sub.add_argument(
        "--quick",
        type=Path,
        help="a ledger of preset quick made now: lines stay valid while its numbers are those of then",
    )


def act(options, rest) -> int:
    from stagewise.lab import catalogue
    from stagewise.lab.judge import kept
    from stagewise.lab.judge.verdict import OUTCOMES

    files = options.files or sorted(Path("ledger").glob("*.json"))
    if not files:
        raise Refused("there is no ledger here (name one, as in ledger/standard.json)")
    numbers = kept.numbers(kept.read(options.quick)) if options.quick else {}
    quick = {id: found for id, (_, found) in numbers.items()}
    for path in files:
        ledger = kept.read(path)
        counts = Counter(line["verdict"] for line in ledger["claims"])
        told = ", ".join(f"{counts[name]} {name}" for name in OUTCOMES if counts[name])
        print(f"{path}: {len(ledger['claims'])} claims: {told}")
        for made, count in Counter(_made(line) for line in ledger["claims"]).most_common():
            print(f"  {count} lines {made}")
        if fragile := [line["id"] for line in ledger["claims"] if line.get("fragile")]:
            print(f"  fragile: {', '.join(fragile)}")
        for id, changed in kept.stale(ledger, catalogue.experiments(), quick).items():
            print(f"  stale: {id}: the code of {changed} has changed since")
    return 0


def _made(line) -> str:
    made = line.get("made")
    return f"of {made['date']}, {made['machine']}, {made['commit'][:7]}" if made else "of an unknown day"
