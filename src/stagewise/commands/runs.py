"""`stagewise runs`: what is stored, and the state of each run."""

from __future__ import annotations

import argparse
import json

from stagewise.commands.arguments import add_runs
from stagewise.errors import Refused

ABOUT = "List the runs that are stored, and the state of each."


def add_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--json", action="store_true", help="as JSON")
    add_runs(sub)


def act(options, rest) -> int:
    from stagewise.lab import catalogue
    from stagewise.lab.store.files import check_folder
    from stagewise.lab.store.runs import listing, runs_root

    root = options.runs or runs_root()
    check_folder(root, "(set --runs or STAGEWISE_RUNS)")
    if options.runs and not root.is_dir():
        raise Refused(f"there is no folder {root}")
    known = catalogue.experiments()
    found = listing(root, known)
    if options.json:
        print(json.dumps([vars(run) | {"folder": str(run.folder)} for run in found], indent=1))
        return 0
    wide = max([len(run.experiment) for run in found], default=0)
    for run in found:
        seconds = f"{run.seconds:7.1f} s" if run.seconds is not None else " " * 9
        settings = run.changed(known) or "as by default" if run.settings else "settings that cannot be read"
        seeds = f"seeds {run.seeds[0]}-{run.seeds[1] - 1}" if run.seeds[1] else "seeds ?"
        print(
            f"{run.experiment:<{wide}} {seeds:<12} {run.state:<11} {seconds}  {settings}  "
            f"[{run.folder.relative_to(root)}]"
        )
    print(
        f"{len(found)} runs in {root} (stale: made by other code; damaged: does not match its digests; both "
        "are kept, and made again when asked for)"
    )
    return 0
