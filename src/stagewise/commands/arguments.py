"""Options that several commands have."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from stagewise.errors import Refused

PRESETS = (
    "quick (a minute a paper), standard (more seeds and sizes), long (hours, to decide what standard leaves "
    "open) or paper (the paper's own settings); default quick"
)


def folder(name: str) -> Path:
    """A folder that the user names."""
    if not name:
        raise Refused("the name of a folder must not be empty")
    return Path(name).expanduser()


def add_runs(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--runs", type=folder, help="folder of the runs (default: STAGEWISE_RUNS, or runs)")


def add_preset(sub: argparse.ArgumentParser, default: str | None = "quick") -> None:
    sub.add_argument("--preset", default=default, help=PRESETS)


def add_report(sub: argparse.ArgumentParser) -> None:
    """Which claims, at which preset, and where their ledger, page and figures go."""
    sub.add_argument("what", nargs="?", default="all", help="a paper, a claim, or all (default)")
    add_preset(sub)
    sub.add_argument(
        "--out",
        type=folder,
        help="folder for ledger.json, report.html and figures (default: reports in the runs folder)",
    )


def add_ledgers(sub: argparse.ArgumentParser) -> None:
    there = Path("ledger")
    sub.add_argument(
        "--ledgers",
        type=folder,
        default=there if there.is_dir() else None,
        help="folder of kept ledgers, shown beside in the report (default: ledger, if it is there)",
    )


def add_engine(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--engine",
        default="auto",
        help="process, pool (the cores of this machine), ray (a cluster) or auto (default: pool where there "
        "is enough to share out, else process)",
    )
    sub.add_argument("--workers", type=int, help="of the pool (default: one a core)")
    sub.add_argument("--address", help="of the Ray cluster, host:port (default: Ray on this machine)")
    sub.add_argument("--retry", action="store_true", help="try again what failed before")


def chosen_engine(options: argparse.Namespace) -> dict[str, Any]:
    """What `add_engine` has read, as `stagewise.lab.api` takes it."""
    return {name: getattr(options, name) for name in ("engine", "workers", "address", "retry")}
