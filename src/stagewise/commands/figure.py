"""`stagewise figure`: one picture as a file."""

from __future__ import annotations

import argparse
from pathlib import Path

from stagewise.commands.arguments import add_engine, add_preset, add_runs, chosen_engine

ABOUT = "Draw one figure, or that of a claim, for a paper or slides."


def add_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "name", help="a figure or a claim, as in the report, or a sweep by the name it was given"
    )
    sub.add_argument("--of", help="of a sweep: the quantity, such as accuracy or loss[conflicting]")
    sub.add_argument("--out", type=Path, required=True, help="the file to write: .svg, .png or .pdf")
    add_preset(sub)
    add_engine(sub)
    add_runs(sub)


def act(options, rest) -> int:
    from stagewise.lab import api
    from stagewise.lab.execute.progress import shown

    print(
        api.figure(
            options.name,
            options.out,
            options.preset,
            of=options.of,
            runs=options.runs,
            progress=shown(),
            **chosen_engine(options),
        )
    )
    return 0
