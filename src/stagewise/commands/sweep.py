"""`stagewise sweep`: a quantity over a grid of settings and seeds."""

from __future__ import annotations

import argparse
import sys
import tomllib
from pathlib import Path

from stagewise.commands.arguments import add_engine, add_preset, add_runs
from stagewise.errors import Refused, require

ABOUT = "Run an experiment over a grid of settings, here, on all cores, or on a Ray cluster."


def add_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("name", nargs="?", help="an experiment or study, as in `stagewise list`")
    sub.add_argument(
        "--over",
        action="append",
        default=[],
        metavar="SETTING=VALUES",
        help="1,2,4 or 2..8 or 0..1/5 or 1e-4..1e-1/7log; may be given several times",
    )
    sub.add_argument(
        "--set", action="append", default=[], metavar="SETTING=VALUE", help="a setting that all jobs share"
    )
    sub.add_argument("--seeds", type=int, help="seeds of every job")
    sub.add_argument("--file", type=Path, help="read the sweep from a TOML file instead")
    add_engine(sub)
    sub.add_argument(
        "--lanes",
        type=int,
        help="seeds, over all jobs of a group, that run as one program (default: as many as are worth it)",
    )
    sub.add_argument(
        "--dry-run", action="store_true", help="show the plan and an estimate of its time, and run nothing"
    )
    sub.add_argument("--fail-fast", action="store_true", help="stop at the first job that fails")
    sub.add_argument("--yes", action="store_true", help="even if it is a million jobs")
    sub.add_argument("--out", type=Path, help="write the results as .nc, .parquet or .csv")
    add_preset(sub, None)
    add_runs(sub)


def act(options, rest) -> int:
    from stagewise.lab import api
    from stagewise.lab.execute import sweep
    from stagewise.lab.execute.progress import shown
    from stagewise.lab.store import tables
    from stagewise.lab.store.files import check_folder, make_folder, prepare_for
    from stagewise.lab.store.runs import runs_root

    chosen = _chosen(options)
    api.check_sweep(chosen, options.yes)
    if options.out:
        tables.check(options.out)
        prepare_for(options.out, shown().note)
    root = options.runs or runs_root()
    check_folder(root, "(set --runs)")
    if not options.dry_run:
        make_folder(root)
    engine, lanes = api.engine_for(chosen, options.engine, options.workers, options.address, options.lanes)
    planned = sweep.plan(chosen, root, shown(), lanes, only_look=options.dry_run)
    _print_plan(planned, options)
    if options.dry_run:
        return 0
    if options.retry:
        planned.jobs.forgive()
    done = sweep.run(planned, root, engine, shown(), options.fail_fast)
    return _print_result(done, options)


def _print_plan(planned, options) -> None:
    blocks, missing, failed = planned.jobs.all, planned.jobs.missing, planned.jobs.failed
    over = " x ".join(f"{path} ({len(values)})" for path, values in planned.sweep.over.items())
    print(f"{planned.sweep.name}: {planned.sweep.experiment} over {over}, {planned.cells[0].lanes} seeds")
    print(
        f"jobs: {len(blocks)}, done {len(blocks) - len(missing)}, failed before {len(failed)}, to run "
        f"{len(missing) - len(failed)} in {len(planned.jobs.to_run)} groups"
    )
    if options.dry_run and planned.jobs.to_run:
        print(f"{_how_long(planned.jobs.to_run)}; the first group has {len(planned.jobs.to_run[0])} jobs")


def _how_long(groups) -> str:
    from stagewise.errors import one_line
    from stagewise.lab.execute.estimate import MOST_TIMED, estimate
    from stagewise.lab.execute.progress import duration

    try:
        found = estimate(groups)
    except Exception as error:  # a job that breaks is a result of the sweep, not of its plan
        return f"no estimate of the time: the first job breaks ({one_line(error)})"
    return (
        f"about {duration(found.total)} on one core, {duration(found.beginning)} of it to begin and compile, "
        f"from timing up to {MOST_TIMED} programs"
    )


def _print_result(done, options) -> int:
    from stagewise.lab.execute import sweep
    from stagewise.lab.store import tables

    failed, missing = done.jobs.failed, [block for block in done.jobs.missing if not block.failure]
    print(
        f"done {len(done.jobs.all) - len(done.jobs.missing)} of {len(done.jobs.all)} jobs; plan: {done.path}"
    )
    for block, reason in failed.items():
        print(f"failed: {block.name}: {reason.splitlines()[0]} (--retry tries again)")
        if options.debug:
            print(block.error().trace, file=sys.stderr)
    if missing:
        print(f"missing: {len(missing)} jobs; the same command goes on")
    if len(done.jobs.missing) < len(done.jobs.all):
        dataset = sweep.gather(done)
        print("result: " + ", ".join(f"{name} {size}" for name, size in dataset.sizes.items()))
        if options.out:
            tables.save(dataset, options.out)
            print(f"written to {options.out}")
        print(f"draw it: stagewise figure {done.sweep.name} --out {done.sweep.name}.svg")
    return 1 if failed or missing else 0


def _chosen(options):
    from stagewise.lab import catalogue
    from stagewise.lab.execute.sweep import Sweep, from_table
    from stagewise.lab.spec import axes
    from stagewise.lab.spec.experiment import choose

    if options.file:
        require(
            not (options.name or options.over or options.set or options.preset),
            "a sweep is given by a file or by options, not by both",
        )
        return from_table(_toml(options.file), options.seeds)
    require(
        options.name is not None,
        "name an experiment or a study, or give a --file (see stagewise sweep --help)",
    )
    if options.name in catalogue.studies() and not options.over:
        require(
            not options.set and options.seeds is None,
            f"{options.name} is a study with its own settings; sweep over its experiment to change them",
        )
        return Sweep.of(catalogue.studies()[options.name], options.preset or "quick")
    cls = choose(catalogue.experiments(), options.name, "experiment")
    shared = {} if options.seeds is None else {"seeds": options.seeds}
    for path, word in _pairs(options.set, "--set"):
        values = axes.parse(path, word, cls)
        require(len(values) == 1, f"--set gives one value; to go over several, use --over {path}={word}")
        require(
            path not in shared, f"{path} is given twice (--set{' and --seeds' if path == 'seeds' else ''})"
        )
        shared[path] = values[0]
    over = {}
    for path, words in _pairs(options.over, "--over"):
        require(path != "seeds", "seeds are an axis of every result already (set --seeds)")
        require(path not in over, f"--over {path} is given twice")
        over[path] = axes.parse(path, words, cls)
    return Sweep(options.name, over, options.preset or "quick", shared)


def _pairs(given: list[str], option: str) -> list[tuple[str, str]]:
    for one in given:
        if "=" not in one:
            raise Refused(f"{option} takes name=values, not {one!r}")
    return [(path.strip(), words) for path, _, words in (one.partition("=") for one in given)]


def _toml(path: Path) -> dict:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused(f"{path} is not TOML: {error}") from error
