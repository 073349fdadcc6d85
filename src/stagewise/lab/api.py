"""Everything the command line does, as calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagewise.errors import Refused, nearest, require
from stagewise.lab import catalogue
from stagewise.lab.execute.progress import Progress
from stagewise.lab.execute.sweep import Sweep
from stagewise.lab.judge.claims import Claim
from stagewise.lab.reproduction import reproduce as reproduce
from stagewise.lab.spec.experiment import Experiment, check_preset, choose
from stagewise.lab.spec.settings import override
from stagewise.lab.spec.study import Grid, Study
from stagewise.lab.store.files import make_folder, prepare_for
from stagewise.lab.store.runs import read_block, runs_root

if TYPE_CHECKING:
    from stagewise.lab.draw.figures import Figure
    from stagewise.lab.store.run import Runs


def experiment(name: str, preset: str = "quick", **changes: Any) -> Experiment:
    """An experiment by name at a preset: `sw.experiment("mixture.joint", width=32, **{"task.groups": 3})`."""
    return choose(catalogue.experiments(), name, "experiment").at(preset, **changes)


def study(name: str, preset: str = "quick") -> Grid:
    """A study by name at a preset."""
    check_preset(preset)
    return choose(catalogue.studies(), name, "study").at(preset)


def run(
    what: Experiment | Study | Grid | str,
    preset: str | None = None,
    *,
    runs: Path | str | None = None,
    progress: Progress = Progress(),
    engine: str = "process",
    workers: int | None = None,
    address: str | None = None,
    retry: bool = False,
    **changes: Any,
):
    """Run an experiment (or take it from its folder) and return its `Run`; of a study, the gathered dataset.

    By name, at a preset (quick if none is given), with some settings changed; or the very thing. A run that
    fails raises `Failed`; in a study, cells that failed are marked in `missing`. What failed before is tried
    again with `retry`. `engine` says where: here, in a `pool` of processes, on `ray`, or `auto`."""
    from stagewise.lab.execute.engines import engine as named
    from stagewise.lab.execute.run import run_all

    chosen = _chosen(what, preset, changes)
    by = named(engine, workers, address)
    root = make_folder(Path(runs) if runs else runs_root())
    if isinstance(chosen, Experiment):
        return run_all([chosen], root, progress, by, retry)[chosen]
    cells = [cell for _, cell in chosen.cells()]
    done = run_all(cells, root, progress, by, retry)
    if not done:
        raise next(iter(done.failed.values()))
    from stagewise.lab.store.gather import gather

    return gather(chosen.axes, [done[cell].arrays if cell in done else None for cell in cells])


def _chosen(what: Any, preset: str | None, changes: dict[str, Any]) -> Experiment | Grid:
    if isinstance(what, str) and what in catalogue.studies():
        what = catalogue.studies()[what]
    if isinstance(what, str):
        return experiment(what, preset or "quick", **changes)
    if isinstance(what, Study):
        return (what.but(**changes) if changes else what).at(preset or "quick")
    kinds = "an experiment, a study, or the name of one"
    require(isinstance(what, (Experiment, Grid)), f"run takes {kinds}, not {what!r}")
    require(
        preset is None,
        f"a preset goes with a name or a study; this {type(what).__name__} has its settings already",
    )
    if isinstance(what, Experiment):
        return override(what, changes)
    require(not changes, "the settings of a study at a preset are fixed; change the study with .but(...)")
    return what


def load(folder: Path | str):
    """The `Run` in a finished run folder."""
    from stagewise.lab.store.files import Damaged
    from stagewise.lab.store.run import load_run

    block = read_block(Path(folder), catalogue.experiments())
    if not block.finished:
        raise Refused(f"{folder} is not finished; run its experiment again to go on with it")
    try:
        block.check()
    except Damaged as error:
        raise Refused(f"{error}; run its experiment again") from error
    return load_run(block.experiment, [block])


def figure(
    name: str,
    out: Path | str,
    preset: str = "quick",
    *,
    of: str | None = None,
    runs: Path | str | None = None,
    progress: Progress = Progress(),
    engine: str = "process",
    workers: int | None = None,
    address: str | None = None,
    retry: bool = False,
) -> Path:
    """Draw a figure, or that of a claim, as SVG, PNG or PDF; what it needs is run if it is not stored, by
    `engine` and with `retry` as in `run`.

    The figure of a claim is the one that shares most runs with it; where none does, its measured values with
    their intervals. That of a sweep, by the name `stagewise sweep` gave it, is a line, a heat map or a family
    of lines of the quantity `of`."""
    from stagewise.lab.draw import pictures
    from stagewise.lab.execute.engines import engine as named
    from stagewise.lab.execute.run import run_all

    check_preset(preset)
    by = named(engine, workers, address)
    out, root = Path(out), Path(runs) if runs else runs_root()
    pictures.check(out)
    prepare_for(out, progress.note)
    if name.startswith("sweep-"):
        chart = _swept(name, of, root, progress)
    else:
        require(of is None, "`of` chooses a quantity of a sweep; a figure has its own (leave --of)")
        chart = _drawn(name, preset, root, lambda needed: run_all(needed, root, progress, by, retry))
    pictures.save(chart, out)
    return out


def _swept(name: str, of: str | None, root: Path, progress: Progress):
    """The diagram of a sweep, from what is stored."""
    from stagewise.lab.execute import sweep as sweeps

    path = root / "sweeps" / f"{name}.json"
    require(
        path.exists(),
        f"there is no sweep {name} in "
        f"{root}{nearest(name, [one.stem for one in (root / 'sweeps').glob('*.json')])} (set --runs)",
    )
    planned = sweeps.plan(sweeps.read(path), root, progress, only_look=True)
    require(len(planned.jobs.missing) < len(planned.jobs.all), f"no job of {name} is finished yet")
    from stagewise.lab.draw.figures import styled
    from stagewise.lab.draw.phase_diagram import at_end, diagram

    values = at_end(sweeps.gather(planned), of)
    return styled(
        diagram(
            values, f"{planned.sweep.experiment}: {values.name}, median over {values.sizes['seed']} seeds"
        )
    )


def _drawn(name: str, preset: str, root: Path, made: Callable[[list[Experiment]], Runs]):
    named = _named(name)
    chosen = _shown_by(named, preset) if isinstance(named, Claim) else named
    from stagewise.lab.judge.ledger import experiments_for, experiments_of, judge_all, missing
    from stagewise.lab.report import draw

    needs = (chosen or named).needs_at(preset)
    require(not missing(needs), f"{name} takes more than preset {preset} has (set --preset standard)")
    make_folder(root)
    if chosen:
        return draw(chosen, preset, made(experiments_of(needs)))
    assert isinstance(named, Claim)
    from stagewise.lab.draw.charts import measured

    [entry] = judge_all([named], preset, root, made(experiments_for([named], preset)))
    drawn = measured(named.id, entry.verdict, entry.control)
    if drawn is None:
        raise Refused(
            f"{name} has measured nothing to draw: it is {entry.verdict.outcome} ({entry.verdict.why})"
        )
    return drawn


def _named(name: str) -> Claim | Figure:
    """The figure or the claim of that name."""
    known = catalogue.figures()
    claims = catalogue.claims()
    if name not in known and name not in claims:
        raise Refused(
            f"unknown figure or claim {name!r}{nearest(name, [*known, *claims])}; `stagewise list PAPER` "
            "shows them all"
        )
    return known[name] if name in known else claims[name]


def _shown_by(claim: Claim, preset: str) -> Figure | None:
    """The figure of the paper that shares most runs with a claim, if any does."""
    from stagewise.lab.judge.ledger import experiments_of

    used = set(experiments_of(claim.needs_at(preset)))
    shared = {
        figure: len(used & set(experiments_of(figure.needs_at(preset))))
        for figure in catalogue.papers()[claim.paper].figures().values()
    }
    best = max(shared, key=lambda figure: shared[figure], default=None)
    return best if best and shared[best] else None


def sweep(
    experiment: str | Sweep,
    over: Mapping[str, Any] | None = None,
    preset: str = "quick",
    *,
    engine: str = "process",
    workers: int | None = None,
    address: str | None = None,
    lanes: int | None = None,
    fail_fast: bool = False,
    retry: bool = False,
    yes: bool = False,
    runs: Path | str | None = None,
    progress: Progress = Progress(),
    **settings: Any,
):
    """Run an experiment over a grid and return one dataset with the swept settings as dimensions:
    `sw.sweep("mixture.joint", {"width": (8, 16)}, seeds=8)`.

    What is done is not done again. Jobs that failed are NaN in the dataset and marked in `missing`."""
    from stagewise.lab.execute import sweep as sweeps

    given = isinstance(experiment, Sweep)
    require(
        not (given and (over or settings or preset != "quick")),
        "a Sweep has its settings already; give a name to choose others",
    )
    chosen = experiment if given else Sweep(experiment, over or {}, preset, settings)
    check_sweep(chosen, yes)
    root = make_folder(Path(runs) if runs else runs_root())
    run_by, most = engine_for(chosen, engine, workers, address, lanes)
    planned = sweeps.plan(chosen, root, progress, most)
    if retry:
        planned.jobs.forgive()
    before = set(planned.jobs.failed)
    done = sweeps.run(planned, root, run_by, progress, fail_fast)
    new = [reason for block, reason in done.jobs.failed.items() if block not in before]
    reason = new[0].splitlines()[0] if new else ""
    require(not (fail_fast and reason), f"a job failed, and what was left is not run: {reason}")
    return sweeps.gather(done)


def check_sweep(chosen: Sweep, yes: bool) -> None:
    """Refuse what nobody means, and every cell whose settings are out of range, before anything runs."""
    from stagewise.lab.execute.sweep import MANY

    require(yes or chosen.jobs < MANY, f"that is {chosen.jobs:,} jobs: say --yes if you mean it")
    assert chosen.cells  # built, so their settings are checked


def engine_for(chosen: Sweep, name: str, workers: int | None, address: str | None, lanes: int | None):
    """The engine, and how many lanes a group may have: as many as are worth it in one process, and a fair
    share for each of several. At preset quick that costs more compilation than it gains, unless several
    are asked for."""
    from stagewise.lab.execute.engines import engine

    require(lanes is None or lanes >= 1, f"a group has at least one lane, not {lanes} (set --lanes)")
    found = engine(name, workers, address)
    if lanes is None and (name in ("pool", "ray") or (name == "auto" and chosen.preset != "quick")):
        lanes = max(1, -(-chosen.jobs * chosen.cells[0].lanes // found.workers))
    return found, lanes
