"""`stagewise serve`: a folder of runs in the browser."""

from __future__ import annotations

import argparse

from stagewise.commands.arguments import add_runs
from stagewise.errors import Refused

ABOUT = "Show a folder of runs in the browser while they run: progress, curves so far, comparisons, figures."


def add_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1: this machine alone)"
    )
    sub.add_argument(
        "--port", type=int, default=8000, help="port to listen on (default 8000; 0 takes a free one)"
    )
    add_runs(sub)


def act(options, rest) -> int:
    from stagewise.lab.store.runs import runs_root

    root = options.runs or runs_root()
    if not root.is_dir():
        raise Refused(f"there is no folder {root} (set --runs, or run something first)")
    try:
        from stagewise.lab.serve import serve
    except ImportError as error:
        raise Refused(f"serving needs {error.name}: pip install 'stagewise[serve]'") from error
    try:
        serve(
            root,
            options.host,
            options.port,
            lambda address: print(f"serving {root} at {address} (Ctrl-C ends)", flush=True),
        )
    except KeyboardInterrupt:  # that is how it is meant to end
        pass
    return 0
