"""Runs experiments: finds what is stored, groups what is missing into compiled programs, and goes on where it stopped."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterable, Mapping, Sequence

import jax
import numpy as np
import xarray as xr

from stagewise.errors import require
from stagewise.lab.experiment import Experiment
from stagewise.lab.files import Damaged
from stagewise.lab.progress import Silent
from stagewise.lab.runs import Block, blocks
from stagewise.training.program import Program

SECONDS_BETWEEN_CHECKPOINTS = 5.0


@dataclass(frozen=True)
class Run:
    """A finished experiment: its trajectory, and the trained model of any seed."""

    experiment: Experiment
    trajectory: xr.Dataset
    blocks: tuple[Block, ...]

    def model(self, seed: int = 0):
        """The trained model of one seed, ready to call."""
        for block in self.blocks:
            if block.first <= seed < block.last:
                arrays = block.final_state()
                state = _unflatten({name: array[seed - block.first] for name, array in arrays.items()})
                return self.experiment.model(state)
        require(False, f"{self.experiment.name}: seed {seed} was not run; seeds 0 to {self.blocks[-1].last - 1} were")

    @property
    def folders(self) -> tuple[Path, ...]:
        return tuple(block.folder for block in self.blocks)

    @property
    def seconds(self) -> float:
        return sum(block.seconds for block in self.blocks)


class Runs(dict[Experiment, Run]):
    """Finished runs by experiment, and the datasets that studies have gathered from them."""

    def __init__(self, runs: Mapping[Experiment, Run]):
        super().__init__(runs)
        self.gathered: dict[tuple[Experiment, ...], xr.Dataset] = {}


def run_all(experiments: Iterable[Experiment], root: Path, progress: Silent = Silent()) -> Runs:
    """Run what is not stored yet, side by side where only numbers differ, and load everything.

    Experiments that differ only in their number of seeds share the blocks of the one that has most."""
    unique = list(dict.fromkeys(experiments))
    most: dict[tuple[str, str], Experiment] = {}
    for experiment in unique:
        known = most.setdefault(_identity(experiment), experiment)
        if experiment.lanes > known.lanes:
            most[_identity(experiment)] = experiment
    stored = {identity: blocks(experiment, root) for identity, experiment in most.items()}
    missing = [block for parts in stored.values() for block in parts if not _is_whole(block, progress)]
    fresh: dict[Path, xr.Dataset] = {}
    for program, group in _groups(missing):
        fresh |= _compute(program, group, progress)
    return Runs({experiment: load_run(experiment, stored[_identity(experiment)], fresh) for experiment in unique})


def _identity(experiment: Experiment) -> tuple[str, str]:
    return experiment.name, experiment.digest


def load_run(experiment: Experiment, parts: Sequence[Block], fresh: Mapping[Path, xr.Dataset] = {}) -> Run:
    """The run in these blocks; what was computed just now is not read back."""
    parts = [part for part in parts if part.first < experiment.lanes]
    read = [fresh[part.folder] if part.folder in fresh else part.trajectory() for part in parts]
    trajectory = xr.concat(read, "seed") if len(read) > 1 else read[0]
    return Run(experiment, trajectory.isel(seed=slice(experiment.lanes)), tuple(parts))


def _is_whole(block: Block, progress: Silent) -> bool:
    if not block.finished:
        return False
    try:
        block.check()
        return True
    except Damaged as error:
        progress.note(f"{error}; the folder is kept as {block.set_aside().name} and the run is made again")
        return False


def _groups(missing: Sequence[Block]) -> list[tuple[Program, list[Block]]]:
    """Blocks whose programs are equal differ in numbers only and run together."""
    groups: dict[Program, list[Block]] = {}
    for block in sorted(missing, key=lambda block: str(block.folder)):
        groups.setdefault(block.experiment.program(), []).append(block)
    return list(groups.items())


def _compute(program: Program, group: list[Block], progress: Silent) -> dict[Path, xr.Dataset]:
    with ExitStack() as held:
        for block in group:
            held.enter_context(block.locked(lambda: progress.note(f"{block.folder} is being run by another process; waiting")))
        group = [block for block in group if not block.finished]
        return _compute_locked(program, group, progress) if group else {}


def _compute_locked(program: Program, group: list[Block], progress: Silent) -> dict[Path, xr.Dataset]:
    for block in group:
        block.prepare()
    state, kept, chunk, spent = _resume(program, group, progress)
    names = list(dict.fromkeys(block.experiment.name for block in group))
    lanes = [block.last - block.first for block in group]
    progress.begin(f"{', '.join(names)} ({sum(lanes)} lanes)", program.chunks)
    saved = started = time.monotonic()
    while chunk < program.chunks and not program.finished(state):
        before = time.monotonic()
        state, records = program.advance(state, chunk)
        state = jax.tree.map(np.asarray, state)
        kept.append(records)
        stage, steps = program.describe(chunk)
        progress.advance(stage, steps * sum(lanes), time.monotonic() - before)
        chunk += 1
        if time.monotonic() - saved > SECONDS_BETWEEN_CHECKPOINTS and chunk < program.chunks:
            _checkpoint(group, lanes, state, kept, chunk, spent + time.monotonic() - started)
            saved = time.monotonic()
    records = {name: np.concatenate([part[name] for part in kept], axis=1) for name in kept[0]}
    share = (spent + time.monotonic() - started) / len(group)
    outcomes, fresh = program.outcomes(state), {}
    for block, lane in zip(group, _lanes(lanes)):
        mine, ended, final = ({name: array[lane] for name, array in part.items()} for part in (records, outcomes, _flatten(state)))
        fresh[block.folder] = label(program, mine, ended, block)
        block.finish(fresh[block.folder], final, share)
    progress.end()
    return fresh


def _resume(program: Program, group: list[Block], progress: Silent):
    """The state of the whole group at the latest chunk that all its blocks have saved, else at the start."""
    saved = [block.checkpoints(progress.note) for block in group]
    common = set.intersection(*(set(chunks) for chunks in saved))
    if common:
        chunk = max(common)
        parts, seconds = zip(*(chunks[chunk] for chunks in saved))
        arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        state = _unflatten({name: array for name, array in arrays.items() if not name.startswith("record/")})
        kept = {name.removeprefix("record/"): array for name, array in arrays.items() if name.startswith("record/")}
        return state, [kept] if kept else [], chunk, sum(seconds)
    parts = [block.experiment.start(np.arange(block.first, block.last)) for block in group]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts), [], 0, 0.0


def _checkpoint(group, lanes, state, kept, chunk, seconds) -> None:
    """Save state and records so far, a file a block, each written whole."""
    kept[:] = [{name: np.concatenate([part[name] for part in kept], axis=1) for name in kept[0]}]
    arrays = _flatten(state) | {f"record/{name}": array for name, array in kept[0].items()}
    for block, lane in zip(group, _lanes(lanes)):
        block.save_checkpoint({name: array[lane] for name, array in arrays.items()}, chunk, seconds / len(group))


def label(program: Program, records: dict[str, np.ndarray], outcomes: dict[str, np.ndarray], block: Block) -> xr.Dataset:
    """Named dimensions and coordinates for what a block recorded and how its seeds ended."""
    dims, count = program.dims, next(iter(records.values())).shape[1]
    coords = program.labels(count) | {
        "seed": (("seed",), np.arange(block.first, block.last)),
        "record": (("record",), np.arange(count)),
    }
    recorded = {name: (("seed", "record", *dims[name]), array) for name, array in records.items()}
    ended = {name: (("seed", *dims[name]), array) for name, array in outcomes.items()}
    trajectory = xr.Dataset(recorded | ended, coords, {"experiment": block.experiment.name})
    return trajectory.set_coords([name for name in ("time",) if name in recorded])


def _lanes(sizes: Sequence[int]) -> list[slice]:
    ends = np.cumsum(sizes)
    return [slice(int(end - size), int(end)) for end, size in zip(ends, sizes)]


def _flatten(state: dict[str, Any], prefix: str = "") -> dict[str, np.ndarray]:
    """Leaves of nested dicts by path."""
    flat = {}
    for name, value in state.items():
        flat |= _flatten(value, f"{prefix}{name}/") if isinstance(value, dict) else {prefix + name: np.asarray(value)}
    return flat


def _unflatten(flat: dict[str, np.ndarray]) -> dict[str, Any]:
    state: dict[str, Any] = {}
    for path, value in flat.items():
        *outer, last = path.split("/")
        inner = state
        for name in outer:
            inner = inner.setdefault(name, {})
        inner[last] = value
    return state
