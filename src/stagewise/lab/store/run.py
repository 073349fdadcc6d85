"""Finished runs: what was recorded, as a labelled trajectory, and the trained model of any seed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from stagewise.errors import Failed, Refused
from stagewise.lab.spec.experiment import Experiment
from stagewise.lab.store.block import Block
from stagewise.lab.store.files import load_arrays
from stagewise.lab.store.named_arrays import NamedArrays, Variables, one_after_another
from stagewise.lab.store.runs import blocks
from stagewise.precision import in_double

if TYPE_CHECKING:
    from stagewise.training.program import Program, Records

RENAMED = {"numbers": "constants"}  # old name -> new name of a part of the state in stored runs


@dataclass(frozen=True)
class Run:
    """A finished experiment: its trajectory, and the trained model of any seed."""

    experiment: Experiment
    arrays: NamedArrays
    blocks: tuple[Block, ...]

    @property
    def trajectory(self) -> xr.Dataset:
        return self.arrays.dataset

    @in_double
    def model(self, seed: int = 0):
        """The trained model of one seed, ready to call."""
        for block in self.blocks:
            if block.first <= seed < block.last:
                lane = {name: array[seed - block.first] for name, array in block.final_state().items()}
                return self.experiment.model(unflatten(lane))
        there = f"seeds {self.blocks[0].first} to {self.blocks[-1].last - 1} were"
        raise Refused(f"{self.experiment.name}: seed {seed} was not run; {there}")

    @property
    def folders(self) -> tuple[Path, ...]:
        return tuple(block.folder for block in self.blocks)

    @property
    def seconds(self) -> float:
        return sum(block.seconds for block in self.blocks)


class Runs(dict[Experiment, Run]):
    """Finished runs by experiment. `failed` has, for each experiment that failed, the error that says why;
    `gathered` has the datasets that studies have gathered from the runs."""

    def __init__(self, runs: Mapping[Experiment, Run], failed: Mapping[Experiment, Failed] = {}):
        super().__init__(runs)
        self.failed = dict(failed)
        self.gathered: dict[tuple[Experiment, ...], xr.Dataset] = {}

    def __missing__(self, experiment: Experiment) -> Run:
        raise self.failed.get(experiment) or KeyError(experiment)


def stored_runs(experiments: Iterable[Experiment], root: Path) -> Runs:
    """Return what is stored of some experiments, finished or failed. Nothing is run or written."""
    return load_runs({experiment: blocks(experiment, root) for experiment in dict.fromkeys(experiments)})


def load_runs(parts_of: Mapping[Experiment, Sequence[Block]]) -> Runs:
    """Load the runs in these blocks. For an experiment with a failed block, return the error that says
    why."""
    runs: dict[Experiment, Run] = {}
    failed: dict[Experiment, Failed] = {}
    for experiment, parts in parts_of.items():
        needed = [part for part in parts if part.first < experiment.seeds_to]
        broken = next((part for part in needed if part.failure), None)
        if broken is None:
            runs[experiment] = load_run(experiment, needed)
        else:
            failed[experiment] = broken.error()
    return Runs(runs, failed)


def load_run(experiment: Experiment, parts: Sequence[Block]) -> Run:
    """Load an experiment's run from its blocks, with only the seeds that the experiment asks for."""
    parts = [part for part in parts if part.first < experiment.seeds_to]
    whole = one_after_another([part.arrays() for part in parts])
    return Run(
        experiment,
        whole
        if whole.seeds == experiment.lanes
        else whole.at_seeds(np.arange(experiment.lanes), experiment.seeds_from),
        tuple(parts),
    )


def so_far(block: Block) -> xr.Dataset | None:
    """Return what a block has recorded up to its last checkpoint, without outcomes, or None if there is
    nothing yet. Nothing is written."""
    found = {}
    for name in ("previous.safetensors", "checkpoint.safetensors"):
        if (block.folder / name).exists():
            arrays, about = load_arrays(block.folder / name)
            if about.get("chunk", "").isdigit():
                found = {
                    path.removeprefix("record/"): array
                    for path, array in arrays.items()
                    if path.startswith("record/")
                }
    if not found:
        return None
    program, there = block.experiment.program(), next(iter(found.values())).shape[1]
    whole = {name: at_full_length(array, program.records) for name, array in found.items()}
    return label(program, program.labels(), whole, {}, block).dataset.isel(record=slice(there))


def label(
    program: Program, labels: Variables, records: Records, outcomes: Records, block: Block
) -> NamedArrays:
    """Return what a block recorded and how its seeds ended, with named dimensions and coordinates, and with
    the settings as an attribute."""
    dims = program.dims
    coords = dict(labels) | {
        "seed": (("seed",), np.arange(block.first, block.last)),
        "record": (("record",), np.arange(program.records)),
    }
    recorded = {name: (("seed", "record", *dims[name]), array) for name, array in records.items()}
    if "time" in recorded:
        coords["time"] = recorded.pop("time")
    ended = {name: (("seed", *dims[name]), array) for name, array in outcomes.items()}
    return NamedArrays(
        recorded | ended,
        coords,
        {"experiment": block.experiment.name, "settings": json.dumps(block.experiment.stored())},
    )


def at_full_length(array: np.ndarray, records: int) -> np.ndarray:
    """Return recorded values at full length. If all seeds of a run were done early, its last record is
    repeated, since nothing changes any more."""
    return np.concatenate([array, np.repeat(array[:, -1:], records - array.shape[1], 1)], 1)


def flatten(state: dict[str, Any], prefix: str = "") -> dict[str, np.ndarray]:
    """Return the leaves of nested dicts by their paths."""
    flat = {}
    for name, value in state.items():
        flat |= (
            flatten(value, f"{prefix}{name}/")
            if isinstance(value, dict)
            else {prefix + name: np.asarray(value)}
        )
    return flat


def unflatten(flat: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The nested dicts that `flatten` took apart; parts stored under an old name get their new one."""
    state: dict[str, Any] = {}
    for path, value in flat.items():
        first, *rest = path.split("/")
        *outer, last = RENAMED.get(first, first), *rest
        inner = state
        for name in outer:
            inner = inner.setdefault(name, {})
        inner[last] = value
    return state
