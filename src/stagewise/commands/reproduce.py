"""`stagewise reproduce`: claims are run and judged."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from stagewise.commands.arguments import add_engine, add_ledgers, add_report, add_runs, chosen_engine
from stagewise.errors import Refused

ABOUT = "Judge the claims of a paper, one claim, or all of them."


def add_options(sub: argparse.ArgumentParser) -> None:
    add_report(sub)
    sub.add_argument("--against", type=Path, help="an earlier ledger.json: show what changed")
    sub.add_argument("--first_seed", type=int, default=0, help="judge on the seeds from here on (default: 0)")
    sub.add_argument(
        "--nulls",
        type=int,
        default=0,
        metavar="N",
        help="put every judge to so many nulls (default: 0)",
    )
    sub.add_argument(
        "--fragile",
        action="store_true",
        help="run all a second time, from starts off by rounding errors, and mark verdicts that change",
    )
    sub.add_argument("--into", type=Path, help="a kept ledger, such as ledger/standard.json, to add to")
    add_ledgers(sub)
    add_engine(sub)
    add_runs(sub)


def act(options, rest) -> int:
    from stagewise.lab import api
    from stagewise.lab.execute.progress import shown
    from stagewise.lab.judge.ledger import changes
    from stagewise.lab.store.files import Damaged, read_json

    try:
        before = read_json(options.against) if options.against else None
        if before is not None:
            changes(before, before)
    except (Damaged, KeyError, TypeError) as error:
        raise Refused(f"{options.against} is not a ledger that can be read") from error
    done = api.reproduce(
        options.what,
        options.preset,
        out=options.out,
        runs=options.runs,
        progress=shown(),
        first_seed=options.first_seed,
        nulls=options.nulls,
        fragile=options.fragile,
        into=options.into,
        ledgers=options.ledgers,
        **chosen_engine(options),
    )
    from stagewise.commands.ledger_table import print_ledger

    print_ledger(done.entries)
    if before is not None:
        lines = changes(before, read_json(done.ledger), complete=options.what == "all")
        print(f"against {options.against}: " + ("; ".join(lines) if lines else "no verdict changed"))
    for line in done.added:
        print(f"added to {options.into}: {line}")
    print(f"ledger: {done.ledger}\nreport: {done.report}")
    return print_defects(done, options.debug)


def print_defects(done, debug: bool) -> int:
    """Claims that broke or hold on their control, figures that could not be drawn, and the exit code that
    follows."""
    for entry in done.entries:
        if debug and entry.trace:
            print(entry.trace, file=sys.stderr)
    for line in done.defects:
        print(f"stagewise: defect in {line}", file=sys.stderr)
    return 1 if done.defects else 0
