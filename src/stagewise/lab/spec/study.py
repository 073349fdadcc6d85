"""Studies: experiments that differ in named settings, gathered into one labelled dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

from stagewise.errors import require
from stagewise.lab.spec.experiment import Experiment, Plan, at_preset, changes_of, check_preset


@dataclass(frozen=True)
class Study:
    """A grid: the plan `base` at every combination of the values in `over`.

    `at_preset` says what is different at a preset: other values along an axis, or other settings, as in
    {"standard": {"width": (8, 16), "seeds": 32}}."""

    name: str
    summary: str
    base: Plan
    over: Mapping[str, Sequence[Any]]
    at_preset: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def _made(self) -> dict[tuple[str, str], Grid]:
        """The grids that were made before, by preset."""
        return {}

    def at(self, preset: str) -> Grid:
        check_preset(preset)
        asked = str(preset), repr(changes_of(preset))
        if asked not in self._made:
            changes = at_preset(self.at_preset, preset)
            axes = dict(self.over) | {path: values for path, values in changes.items() if path in self.over}
            base = self.base.but(**{path: v for path, v in changes.items() if path not in self.over})
            self._made[asked] = Grid(axes, base, preset)
        return self._made[asked]

    def __post_init__(self):
        require(
            isinstance(self.base, Plan),
            f"{self.name}: the base of a study is a plan, such as Experiment.plan(seeds=8)",
        )
        for path, values in self.over.items():
            several = isinstance(values, (list, tuple)) and len(values) > 0
            require(several, f"{self.name}: {path} needs a list of values to go over, not {values!r}")

    def but(self, **changes: Any) -> Study:
        """Return the same grid with some settings of its base changed, at every preset."""
        kept = {
            preset: {path: v for path, v in mine.items() if path not in changes}
            for preset, mine in self.at_preset.items()
        }
        return replace(self, base=self.base.but(**changes), at_preset=kept)


@dataclass(frozen=True)
class Grid:
    """A study at a preset: cells, each an experiment with its place in the grid."""

    over: Mapping[str, Sequence[Any]]
    base: Plan
    preset: str

    def cells(self) -> list[tuple[tuple[Any, ...], Experiment]]:
        """(values along the axes, experiment) in row-major order."""
        return self._cells

    @cached_property
    def _cells(self) -> list[tuple[tuple[Any, ...], Experiment]]:
        paths = list(self.over)
        return [
            (values, self.base.but(**dict(zip(paths, values))).at(self.preset))
            for values in product(*(self.over[path] for path in paths))
        ]

    @property
    def axes(self) -> dict[str, Sequence[Any]]:
        """Dimension name (the last part of the path) -> its values."""
        return {path.rpartition(".")[2]: values for path, values in self.over.items()}


NOT_YET = object()
"""Stands for a need at a preset that is too small for it."""


@dataclass(frozen=True)
class BeyondQuick:
    """A plan or study that is too much for preset quick. There it is NOT_YET, and claims and figures that
    need it are not tested or drawn."""

    need: Plan | Study

    def at(self, preset: str) -> Experiment | Grid | object:
        check_preset(preset)
        return NOT_YET if preset == "quick" else self.need.at(preset)

    def but(self, **changes: Any) -> BeyondQuick:
        return BeyondQuick(self.need.but(**changes))


def names(needs: Mapping[str, Any]) -> set[str]:
    """Return the names of the experiments that needs refer to, without making any experiment."""
    found = [need.need if isinstance(need, BeyondQuick) else need for need in needs.values()]
    found = [need.base if isinstance(need, Study) else need for need in found]
    return {plan.name for plan in found if isinstance(plan, Plan)}


def filled(needs: Mapping[str, Any], preset: str) -> dict[str, Any]:
    """Return the needs of a claim or figure at a preset: plans become experiments, studies become grids, what
    is too much for the preset becomes NOT_YET, and all else stays as it is."""
    return {
        name: need.at(preset) if isinstance(need, (Plan, Study, BeyondQuick)) else need
        for name, need in needs.items()
    }
