"""Sweeps: an experiment at every combination of some settings, on one machine or many, without ever losing
work.

A sweep is a grid like that of a study. Its plan is a file in `sweeps/`, which says which blocks run together
as groups; results are in the run folders. Running a sweep again runs only what is missing, in the same
groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from stagewise.errors import Refused, nearest, require
from stagewise.lab import catalogue
from stagewise.lab.execute.jobs import Jobs, jobs_of
from stagewise.lab.execute.progress import Progress
from stagewise.lab.execute.run import run_jobs
from stagewise.lab.spec.experiment import Experiment, Plan, at_preset, check_preset, choose
from stagewise.lab.spec.settings import digest, flatten, typed
from stagewise.lab.spec.study import Grid, Study
from stagewise.lab.store.files import Damaged, make_folder, read_json, write_json

MANY = 1_000_000  # a sweep of at least this many jobs is run only if the user confirms it
FORMAT = 1


@dataclass(frozen=True)
class Sweep:
    """A grid of experiments. `set` are settings that all cells share."""

    experiment: str
    over: Mapping[str, Sequence[Any]]
    preset: str = "quick"
    set: Mapping[str, Any] = ()  # type: ignore[assignment]

    def __post_init__(self):
        from stagewise.lab.spec.axes import checked, hint_at

        check_preset(self.preset)
        require(
            isinstance(self.over, Mapping) and bool(self.over),
            "a sweep goes over at least one setting (set --over name=1,2,3)",
        )
        require("seeds" not in self.over, "seeds are an axis of every result already (set --seeds)")
        over = {path: checked(path, values, self.kind) for path, values in self.over.items()}
        shared = {path: typed(hint_at(path, self.kind), value) for path, value in dict(self.set).items()}
        object.__setattr__(self, "over", over)
        object.__setattr__(self, "set", shared)
        for path in over:
            require(path not in shared, f"{path} is swept over and set: which is it? (leave --over or --set)")
        last = [path.rpartition(".")[2] for path in over]
        require(
            len(set(last)) == len(last),
            f"two of the settings would both be called {max(last, key=last.count)!r} in the result",
        )

    @classmethod
    def of(cls, study: Study, preset: str) -> Sweep:
        """Return a study of a paper at a preset as a sweep."""
        grid = study.at(preset)
        shared: dict[str, Any] = {}
        for path, value in (dict(grid.base.changes) | dict(at_preset(grid.base.by_preset, preset))).items():
            shared |= (
                {f"{path}.{inner}": each for inner, each in flatten(value).items()}
                if is_dataclass(value)
                else {path: value}
            )
        return cls(
            grid.base.name,
            grid.over,
            preset,
            {path: value for path, value in shared.items() if path not in grid.over},
        )

    @property
    def kind(self) -> type[Experiment]:
        return choose(catalogue.experiments(), self.experiment, "experiment")

    @property
    def grid(self) -> Grid:
        return Grid(self.over, Plan(self.kind, dict(self.set)), self.preset)

    @cached_property
    def cells(self) -> list[Experiment]:
        """The experiments of the grid, in row-major order."""
        return [cell for _, cell in self.grid.cells()]

    @property
    def jobs(self) -> int:
        count = 1
        for values in self.over.values():
            count *= len(values)
        return count

    @property
    def name(self) -> str:
        return f"sweep-{digest(self.spec)}"

    @property
    def spec(self) -> dict[str, Any]:
        listed = {
            path: [list(value) if isinstance(value, tuple) else value for value in values]
            for path, values in self.over.items()
        }
        shared = {
            path: list(value) if isinstance(value, tuple) else value for path, value in self.set.items()
        }
        return {"experiment": self.experiment, "preset": self.preset, "over": listed, "set": shared}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> Sweep:
        def tuples(value):
            return tuple(map(tuples, value)) if isinstance(value, list) else value

        return cls(
            spec["experiment"],
            {path: tuple(map(tuples, values)) for path, values in spec["over"].items()},
            spec["preset"],
            {path: tuples(v) for path, v in spec["set"].items()},
        )


def from_table(given: Mapping[str, Any], seeds: int | None = None) -> Sweep:
    """Make a sweep from a table, as in a TOML file: experiment, preset, seeds, [over] and [set]."""
    from stagewise.lab.spec.axes import from_toml

    known = {"experiment", "preset", "seeds", "over", "set"}
    for name in given:
        require(
            name in known, f"a sweep has no {name!r}{nearest(name, known)}; it has {', '.join(sorted(known))}"
        )
    require(
        isinstance(given.get("experiment"), str), 'a sweep names its experiment: experiment = "mixture.joint"'
    )
    tables = {name: _dotted(given.get(name, {}), f"[{name}]") for name in ("over", "set")}
    require("seeds" not in tables["set"], "seeds are given beside [set], not in it")
    chosen = seeds if seeds is not None else given.get("seeds")
    over = {path: from_toml(path, values) for path, values in tables["over"].items()}
    return Sweep(
        given["experiment"],
        over,
        given.get("preset", "quick"),
        tables["set"] | ({"seeds": chosen} if chosen is not None else {}),
    )


def _dotted(table: Any, what: str) -> dict[str, Any]:
    """Return nested tables as one table by path; a table that describes a range stays a table."""
    require(isinstance(table, Mapping), f"{what} is a table of settings, not {table!r}")
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, Mapping) and "from" not in value:
            flat |= {f"{name}.{rest}": inner for rest, inner in _dotted(value, what).items()}
        else:
            flat[name] = value
    return flat


@dataclass(frozen=True)
class Planned:
    """A sweep with its jobs, and where its plan is kept."""

    sweep: Sweep
    cells: list[Experiment]
    jobs: Jobs
    path: Path


def plan(
    sweep: Sweep,
    root: Path,
    progress: Progress = Progress(),
    most_lanes: int | None = None,
    only_look: bool = False,
) -> Planned:
    """Find the jobs of a sweep. If a plan was made before, its groups are kept."""
    path = root / "sweeps" / f"{sweep.name}.json"
    return Planned(
        sweep,
        sweep.cells,
        jobs_of(sweep.cells, root, progress, _groups_before(path), most_lanes, only_look),
        path,
    )


def _groups_before(path: Path) -> list[list[str]]:
    try:
        stored = read_json(path)
        whole = stored["format"] == FORMAT and stored["digest"] == digest(stored["groups"])
        return [[str(name) for name in group] for group in stored["groups"]] if whole else []
    except (Damaged, KeyError, TypeError):
        return []  # no plan yet, or a broken one: it is made again, and run folders show what is done


def keep(planned: Planned) -> None:
    """Write the plan to its file: the groups that it had before, then the new ones."""
    make_folder(planned.path.parent)
    before = _groups_before(planned.path)
    known = {name for group in before for name in group}
    new = [[block.name for block in group] for group in planned.jobs.groups]
    groups = before + [group for group in new if not known & set(group)]
    write_json(
        planned.path, {"format": FORMAT} | planned.sweep.spec | {"groups": groups, "digest": digest(groups)}
    )


def read(path: Path) -> Sweep:
    """Read the sweep from the file of a plan."""
    try:
        return Sweep.from_spec(read_json(path))
    except (Damaged, KeyError, TypeError, AttributeError) as error:
        raise Refused(f"{path} is not the plan of a sweep: {error}") from error


def run(
    planned: Planned, root: Path, engine, progress: Progress = Progress(), fail_fast: bool = False
) -> Planned:
    """Write the plan and run what is missing. Returns the sweep with its jobs as they are afterwards."""
    keep(planned)
    return replace(planned, jobs=run_jobs(planned.jobs, root, engine, progress, fail_fast))


def gather(planned: Planned):
    """Return the results as one dataset with the swept settings as dimensions. What is missing is marked,
    never left out."""
    import numpy as np

    from stagewise.lab.store.gather import gather as gathered
    from stagewise.lab.store.run import load_run

    seeds, found = max(cell.lanes for cell in planned.cells), []
    for cell in planned.cells:
        parts = [part for part in planned.jobs.blocks[cell] if part.first < cell.seeds_to]
        whole = load_run(cell, parts).arrays if all(part.finished for part in parts) else None
        if whole is not None and cell.lanes < seeds:  # nothing is random in it: one run stands for all seeds
            whole = whole.at_seeds(np.zeros(seeds, int))
        found.append(whole)
    dataset = gathered(planned.sweep.grid.axes, found)
    return dataset if "missing" in dataset else dataset.assign(missing=False)
