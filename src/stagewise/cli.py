"""The command line: the one place that reads arguments and prints."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from stagewise import threads
from stagewise.commands import listed, sweep
from stagewise.errors import Refused

PRESETS = (
    "quick (a minute a paper), standard (more seeds and sizes) or paper (the paper's own settings); "
    "default quick"
)
INTERRUPTED = 130


def entry() -> None:
    """The `stagewise` command. A request to end (SIGTERM) is taken like Ctrl-C: what is done is saved."""
    import os

    from stagewise.lab import interrupt

    interrupt.listen()
    sys.stdout.reconfigure(errors="backslashreplace")  # a folder may hold names that no terminal can show
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    if code == INTERRUPTED:
        os._exit(code)  # a compiler stopped half-way must not be tidied up: that ends in a crash
    sys.exit(code)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; every refusal is one sentence on standard error and exit code 2."""
    try:
        options, rest = _parser().parse_known_args(arguments)
        if rest and options.act is not _run:
            raise Refused(
                f"{options.command}: unknown option {rest[0]!r} (see stagewise {options.command} --help)"
            )
        if getattr(options, "preset", None) not in (None, "quick"):
            threads.all_cores()
        return options.act(options, rest)
    except Refused as refusal:
        print(f"stagewise: {refusal}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stagewise: interrupted; the same command goes on from what is saved", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # whoever read has seen enough; what is still to be flushed goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"stagewise: {error.strerror or error}", file=sys.stderr)
        return 1
    except MemoryError as error:
        print(f"stagewise: there is not enough memory: {error}", file=sys.stderr)
        return 1


class _Parser(argparse.ArgumentParser):
    """Errors as one sentence, like all others."""

    def error(self, message):
        raise Refused(f"{message} (see {self.prog} --help)")


def _folder(name: str) -> Path:
    if not name:
        raise Refused("the name of a folder must not be empty")
    return Path(name).expanduser()


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        "stagewise", description="How transformers learn to reason, stage by stage.", allow_abbrev=False
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)

    def command(name: str, act, about: str, **more) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=about, description=about, allow_abbrev=False, **more)
        sub.set_defaults(act=act)
        return sub

    def places(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("--runs", type=_folder, help="folder of the runs (default: STAGEWISE_RUNS, or runs)")

    shown = command(
        "list", _list, "Show the papers, experiments, studies and claims there are, or one of them in full."
    )
    shown.add_argument("name", nargs="?", help="a paper, experiment, study or claim: show it in full")
    shown.add_argument("--json", action="store_true", help="as JSON")

    run = command(
        "run",
        _run,
        "Run one experiment or study; its settings are options: --learning_rate 0.05",
        add_help=False,
    )
    run.add_argument("name", nargs="?", help="an experiment or study, as in `stagewise list`")
    run.add_argument("--preset", default="quick", help=PRESETS)
    run.add_argument(
        "-h", "--help", action="store_true", help="show this, or the settings of the experiment named"
    )
    places(run)

    reproduce = command("reproduce", _reproduce, "Judge the claims of a paper, one claim, or all of them.")
    reproduce.add_argument("what", nargs="?", default="all", help="a paper, a claim, or all (default)")
    reproduce.add_argument("--preset", default="quick", help=PRESETS)
    reproduce.add_argument(
        "--out",
        type=_folder,
        help="folder for ledger.json, report.html and figures (default: reports in the runs folder)",
    )
    reproduce.add_argument("--against", type=Path, help="an earlier ledger.json: show what changed")
    sweep.add_engine(reproduce)
    places(reproduce)

    report = command("report", _report, "Write the report again from the runs that are stored.")
    report.add_argument("what", nargs="?", default="all", help="a paper, a claim, or all (default)")
    report.add_argument("--preset", default="quick", help=PRESETS)
    report.add_argument(
        "--out",
        type=_folder,
        help="folder for ledger.json, report.html and figures (default: reports in the runs folder)",
    )
    places(report)

    swept = command(
        "sweep", _sweep, "Run an experiment over a grid of settings, here, on all cores, or on a Ray cluster."
    )
    sweep.add_options(swept)
    swept.add_argument("--preset", help=PRESETS)
    places(swept)

    drawn = command("figure", _figure, "Draw one figure, or that of a claim, for a paper or slides.")
    drawn.add_argument(
        "name", help="a figure or a claim, as in the report, or a sweep by the name it was given"
    )
    drawn.add_argument("--of", help="of a sweep: the quantity, such as accuracy or loss[conflicting]")
    drawn.add_argument("--out", type=Path, required=True, help="the file to write: .svg, .png or .pdf")
    drawn.add_argument("--preset", default="quick", help=PRESETS)
    places(drawn)

    serve = command(
        "serve",
        _serve,
        "Show a folder of runs in the browser while they run: progress, curves so far, comparisons, figures.",
    )
    serve.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1: this machine alone)"
    )
    serve.add_argument(
        "--port", type=int, default=8000, help="port to listen on (default 8000; 0 takes a free one)"
    )
    places(serve)

    probe = command(
        "probe-attention",
        _probe,
        "Attention entropies of a trained language model on worked answers, with and without the reasoning.",
    )
    probe.add_argument("model", help="a model folder, or a model's id on the hub")
    probe.add_argument(
        "data", type=Path, help="questions as JSON lines with `question` and `answer`, the result after ####"
    )
    probe.add_argument("--items", type=int, help="only the first so many questions")
    probe.add_argument(
        "--places", default="all", help="all places of a text (as the paper), or those of the answer alone"
    )
    probe.add_argument(
        "--out", type=_folder, help="folder for the results (default: probes in the runs folder)"
    )
    places(probe)

    export = command(
        "export", _export, "Write a trained GPT-2 as a folder that Hugging Face's library loads."
    )
    export.add_argument("run", type=_folder, help="a finished run's folder, as `stagewise run` prints it")
    export.add_argument("out", type=_folder, help="the folder to write")
    export.add_argument("--seed", type=int, help="which seed's model (default: the first in the folder)")

    runs = command("runs", _runs, "List the runs that are stored, and the state of each.")
    runs.add_argument("--json", action="store_true", help="as JSON")
    places(runs)
    return parser


def _list(options, _) -> int:
    return listed.act(options)


def _run(options, rest) -> int:
    from stagewise.lab import catalogue
    from stagewise.lab.experiment import check_preset, choose

    if options.name is None:
        if options.help:
            print(
                "usage: stagewise run NAME [--preset quick|standard|paper] [--runs DIR] [--any.setting "
                "VALUE]\n\n"
                "Run one experiment or study. `stagewise run NAME --help` shows its settings; `stagewise "
                "list` the names."
            )
            return 0
        raise Refused("run: which experiment? (see stagewise list)")
    if options.name.startswith("-"):
        raise Refused("run: the experiment comes first, then its settings")
    check_preset(options.preset)
    studies = catalogue.studies()
    if options.name in studies:
        if options.help:
            return listed.show(options.name)
        if rest:
            raise Refused(f"{options.name} is a study; its settings are fixed, so {rest[0]!r} cannot be set")
        return _run_study(options, studies[options.name])
    if options.name in catalogue.claims():
        raise Refused(f"{options.name} is a claim: use `stagewise reproduce {options.name}`")
    cls = choose(catalogue.experiments() | studies, options.name, "experiment")
    from stagewise.options import parse_settings

    chosen = parse_settings(cls, cls.at(options.preset), rest + (["--help"] if options.help else []))
    from stagewise.lab import api
    from stagewise.lab.progress import shown

    if chosen.lanes < chosen.seeds:
        print(
            f"nothing is random at these settings: one run stands for all {chosen.seeds} seeds",
            file=sys.stderr,
        )
    done = api.run(chosen, runs=options.runs, progress=shown())
    for folder in done.folders:
        print(f"{folder}")
    _ends(done.trajectory)
    return 0


def _run_study(options, study) -> int:
    from stagewise.lab import api
    from stagewise.lab.progress import shown

    gathered = api.run(study.at(options.preset), runs=options.runs, progress=shown())
    print(f"{study.name}: " + ", ".join(f"{name} {size}" for name, size in gathered.sizes.items()))
    return 0


def _ends(trajectory) -> None:
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


def _reproduce(options, _) -> int:
    from stagewise.lab import api
    from stagewise.lab.files import Damaged, read_json
    from stagewise.lab.ledger import changes
    from stagewise.lab.progress import shown

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
        engine=options.engine,
        workers=options.workers,
        address=options.address,
    )
    from stagewise.commands.ledger import print_ledger

    print_ledger(done.entries)
    if before is not None:
        lines = changes(before, read_json(done.ledger), complete=options.what == "all")
        print(f"against {options.against}: " + ("; ".join(lines) if lines else "no verdict changed"))
    print(f"ledger: {done.ledger}\nreport: {done.report}")
    return _defects(done)


def _defects(done) -> int:
    for line in done.broken:
        print(f"stagewise: defect in {line}", file=sys.stderr)
    return 1 if done.broken else 0


def _report(options, _) -> int:
    from stagewise.lab import api
    from stagewise.lab.progress import shown

    done = api.reproduce(
        options.what, options.preset, out=options.out, runs=options.runs, progress=shown(), stored_only=True
    )
    print(f"report: {done.report}")
    return _defects(done)


def _probe(options, _) -> int:
    from stagewise.hub import commands

    return commands.probe_attention(options)


def _export(options, _) -> int:
    from stagewise.hub import commands

    return commands.export(options)


def _sweep(options, _) -> int:
    return sweep.act(options)


def _figure(options, _) -> int:
    from stagewise.lab import api
    from stagewise.lab.progress import shown

    print(
        api.figure(
            options.name, options.out, options.preset, of=options.of, runs=options.runs, progress=shown()
        )
    )
    return 0


def _serve(options, _) -> int:
    from stagewise.lab.runs import runs_root

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


def _runs(options, _) -> int:
    from stagewise.lab import catalogue
    from stagewise.lab.runs import listing, runs_root

    root = options.runs or runs_root()
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
        changed = (
            _changed(known[run.experiment], run.settings) if run.experiment in known and run.settings else ""
        )
        seeds = f"seeds {run.seeds[0]}-{run.seeds[1] - 1}" if run.seeds[1] else "seeds ?"
        print(
            f"{run.experiment:<{wide}} {seeds:<12} {run.state:<11} {seconds}  {changed or 'as by default'}  "
            f"[{run.folder.relative_to(root)}]"
        )
    print(
        f"{len(found)} runs in {root} (stale: made by other code; damaged: does not match its digests; both "
        "are kept, and made again when asked for)"
    )
    return 0


def _changed(cls, settings: dict) -> str:
    """The settings of a stored run that differ from the defaults."""
    from stagewise.lab.settings import flatten, from_json

    try:
        stored, default = flatten(from_json(cls, settings)), flatten(cls())
    except Refused:
        return "settings that this stagewise does not have"
    return ", ".join(
        f"{path}={value}" for path, value in stored.items() if value != default[path] and path != "seeds"
    )


if __name__ == "__main__":
    entry()
