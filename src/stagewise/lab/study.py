"""Studies: experiments that differ in named settings, gathered into one labelled dataset."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Mapping, Sequence

from stagewise.lab.experiment import Experiment, Plan


@dataclass(frozen=True)
class Study:
    """A grid: the plan `base` at every combination of the values in `over`.

    `at_preset` may widen or narrow the grid at a preset: {"standard": {"width": (8, 16, 32)}}."""

    name: str
    summary: str
    base: Plan
    over: Mapping[str, Sequence[Any]]
    at_preset: Mapping[str, Mapping[str, Sequence[Any]]] = field(default_factory=dict)

    def at(self, preset: str) -> Grid:
        return Grid(self.base.at(preset), dict(self.over) | dict(self.at_preset.get(preset, {})), self.base, preset)

    def but(self, **changes: Any) -> Study:
        """The same grid around another base."""
        return replace(self, base=self.base.but(**changes))


@dataclass(frozen=True)
class Grid:
    """A study at a preset: cells, each an experiment with its place in the grid."""

    middle: Experiment
    over: Mapping[str, Sequence[Any]]
    base: Plan
    preset: str

    def cells(self) -> list[tuple[tuple[Any, ...], Experiment]]:
        """(values along the axes, experiment) in row-major order."""
        paths = list(self.over)
        return [
            (values, self.base.but(**dict(zip(paths, values))).at(self.preset))
            for values in product(*(self.over[path] for path in paths))
        ]

    @property
    def axes(self) -> dict[str, Sequence[Any]]:
        """Dimension name (the last part of the path) -> its values."""
        return {path.rpartition(".")[2]: values for path, values in self.over.items()}

    def gather(self, trajectories: Sequence[Any]):
        """One dataset with the swept settings as leading dimensions; the trajectories come in the order of `cells`.

        Where cells differ in shape (more groups, more signals), missing entries are NaN."""
        import xarray as xr

        names, sizes = list(self.axes), [len(values) for values in self.axes.values()]
        nested: list[Any] = list(trajectories)
        for name, size in reversed(list(zip(names, sizes))):
            rows = [nested[i : i + size] for i in range(0, len(nested), size)]
            labels = [str(v) if any(isinstance(u, str) for u in self.axes[name]) else v for v in self.axes[name]]
            nested = [xr.concat(row, dim=xr.Variable(name, labels), join="outer", coords="different",
                                compat="equals", data_vars="all") for row in rows]  # fmt: skip
        return nested[0]
