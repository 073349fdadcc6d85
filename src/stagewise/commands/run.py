"""`stagewise run`: one experiment or study, with its settings as options."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from stagewise.commands.arguments import add_engine, add_preset, add_runs, chosen_engine
from stagewise.commands.list import show
from stagewise.errors import Refused

ABOUT = "Run one experiment or study; its settings are options: --learning_rate 0.05"


def add_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("name", nargs="?", metavar="NAME", help="an experiment or study, as in `stagewise list`")
    add_preset(sub)
    sub.add_argument(
        "-h", "--help", action="store_true", help="show this, or the settings of the experiment named"
    )
    add_engine(sub)
    add_runs(sub)
    sub.usage = "stagewise run NAME [--any.setting VALUE ...] [options]"
    sub.set_defaults(usage=sub.format_help)


def act(options, rest) -> int:
    from stagewise.lab import catalogue
    from stagewise.lab.spec.experiment import check_preset, choose

    if options.name is None:
        if options.help:
            print(options.usage())
            print(
                "stagewise run NAME --help shows the settings of an experiment, stagewise list PAPER its name"
            )
            return 0
        raise Refused("run: which experiment? (see stagewise list)")
    if options.name.startswith("-"):
        raise Refused("run: the experiment comes first, then its settings")
    check_preset(options.preset)
    studies = catalogue.studies()
    if options.name in studies:
        if options.help:
            return show(options.name)
        if rest:
            raise Refused(f"{options.name} is a study; its settings are fixed, so {rest[0]!r} cannot be set")
        return _run_study(options, studies[options.name])
    if options.name in catalogue.claims():
        raise Refused(f"{options.name} is a claim: use `stagewise reproduce {options.name}`")
    cls = choose(catalogue.experiments() | studies, options.name, "experiment")
    from stagewise.commands.settings import parse_settings, print_settings

    if options.help:
        print(options.usage().replace("NAME", options.name, 1))
        print_settings(cls, cls.at(options.preset))
        return 0
    chosen = parse_settings(cls, cls.at(options.preset), rest)
    from stagewise.lab import api
    from stagewise.lab.execute.progress import shown

    if chosen.lanes < chosen.seeds:
        print(
            f"nothing is random at these settings: one run stands for all {chosen.seeds} seeds",
            file=sys.stderr,
        )
    done = api.run(chosen, runs=options.runs, progress=shown(), **chosen_engine(options))
    for folder in done.folders:
        print(f"{folder}")
    _print_ends(done.trajectory)
    return 0


def _run_study(options, study) -> int:
    from stagewise.lab import api
    from stagewise.lab.execute.progress import shown

    gathered: Any = api.run(
        study.at(options.preset), runs=options.runs, progress=shown(), **chosen_engine(options)
    )
    print(f"{study.name}: " + ", ".join(f"{name} {size}" for name, size in gathered.sizes.items()))
    if "missing" not in gathered:
        return 0
    print(f"failed: {int(gathered.missing.sum())} of {gathered.missing.size} cells, marked in `missing`")
    return 1


def _print_ends(trajectory) -> None:
    """How the seeds ended, in a few lines."""
    seeds = trajectory.sizes["seed"]
    if "diverged_at" in trajectory:
        gone = int((trajectory.diverged_at >= 0).sum())
        print(f"seeds: {seeds}, of which {gone or 'none'} diverged")
        if gone == seeds:
            print("every seed diverged: a smaller --learning_rate may help")
    if (
        "done_at" in trajectory
        and (solved := trajectory.done_at.where(trajectory.done_at >= 0).dropna("seed")).size
    ):
        print(
            f"done before the end: {solved.size} of {seeds} seeds, after {solved.median().item():.4g} steps "
            "in the median"
        )
    if "outcome" in trajectory:
        from stagewise.training.stages import OUTCOMES

        ended = trajectory.ended if "ended" in trajectory else trajectory.ended_at.isel(record=-1)
        outcome = (
            trajectory.outcome.isel(record=-1) if "record" in trajectory.outcome.dims else trajectory.outcome
        )
        for stage in trajectory.stages.values:
            codes = outcome.sel(stages=stage).values.tolist()
            counts = ", ".join(f"{codes.count(code)} {OUTCOMES[code]}" for code in sorted(set(codes)))
            when = ended.sel(stages=stage).where(outcome.sel(stages=stage) == 0).median().item()
            print(f"stage {stage}: {counts}" + (f"; median end {when:.4g}" if when == when else ""))
    if "loss" in trajectory:
        last = trajectory.loss.isel(record=-1).median("seed")
        dim = next(iter(last.dims), None)  # by kind of sample, by number of hops, or just one
        parts = (
            [
                f"{name if isinstance(name, str) else f'{dim} {name}'} {last.sel({dim: name}).item():.4g}"
                for name in last[dim].values
            ]
            if dim
            else [f"{last.item():.4g}"]
        )
        print("final loss, median over seeds: " + ", ".join(parts))
