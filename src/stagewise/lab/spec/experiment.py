"""Experiments: frozen settings that know the program they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

from stagewise.errors import Refused, nearest, require
from stagewise.lab.spec.settings import check_kinds, digest, override, to_json

if TYPE_CHECKING:
    import numpy as np

    from stagewise.training.program import Program, State

PRESETS = ("quick", "standard", "long", "paper")


class Preset(str):
    """The name of a preset, with settings that it changes in all of its runs: fresh seeds, perturbed
    starts."""

    changes: Mapping[str, Any] = {}

    @classmethod
    def but(cls, name: str, **changes: Any) -> Preset:
        preset = cls(name)
        preset.changes = changes
        return preset


def changes_of(preset: str) -> dict[str, Any]:
    """Return the settings that a preset changes in all of its runs, besides those that each experiment
    changes at the preset."""
    return dict(getattr(preset, "changes", {}))


def at_preset(table: Mapping[str, Any], preset: str) -> Any:
    """Return a table's part for a preset. Preset long takes the part for standard if it has none of its
    own."""
    return table.get(preset, table.get("standard", {}) if preset == "long" else {})


def check_preset(preset: str) -> None:
    require(
        isinstance(preset, str) and preset in PRESETS,
        f"unknown preset {preset!r}{nearest(preset, PRESETS)}; there are {', '.join(PRESETS)}",
    )


@dataclass(frozen=True)
class Experiment:
    """Settings of one training run, over `seeds` seeds. What seed i gives is a pure function of i and the
    other settings."""

    seeds: int = 8  # number of seeds
    first_seed: int = 0  # first seed; seeds from 1000 on are fresh: nothing was set or chosen with them
    perturbed: int = 0  # the start is changed by random rounding errors drawn with this number; 0: not at all

    name: ClassVar[str]
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    seeds_per_block: ClassVar[int] = 64
    renamed: ClassVar[Mapping[str, str]] = {}
    """Settings that were renamed, old name -> new name. Stored runs can be read with either name."""
    never_counted: ClassVar[tuple[str, ...]] = ()
    """Settings of parts, by path, that were removed because they changed nothing. Stored runs may still have
    them."""

    def __post_init__(self):
        check_kinds(self, self.name)
        require(
            1 <= self.seeds <= 100_000,
            f"{self.name}: seeds must lie between 1 and 100000, not {self.seeds} (set --seeds)",
        )

        require(
            0 <= self.first_seed <= 2**30,
            f"{self.name}: first_seed must lie between 0 and 2^30, not {self.first_seed} (set --first_seed)",
        )
        require(
            0 <= self.perturbed <= 2**30,
            f"{self.name}: perturbed must lie between 0 and 2^30, not {self.perturbed} (set --perturbed)",
        )

    @property
    def deterministic(self) -> bool:
        """Whether nothing is random, so that one seed stands for all."""
        return False

    @property
    def lanes(self) -> int:
        """How many seeds are really run."""
        return 1 if self.deterministic else self.seeds

    @property
    def seeds_from(self) -> int:
        """The first seed that is really run."""
        return 0 if self.deterministic else self.first_seed

    @property
    def seeds_to(self) -> int:
        """The seed after the last one that is really run."""
        return self.seeds_from + self.lanes

    def for_any_seed(self) -> Self:
        """Return the settings that a program depends on: these settings without which seeds are run.
        Experiments that differ only in seeds then have equal programs."""
        return replace(self, seeds=1, first_seed=0, perturbed=0)

    @property
    def trained_numbers(self) -> int:
        """The number of network weights that one lane trains, as far as the settings tell it before any
        weight is drawn."""
        return 0

    def program(self) -> Program:
        """Return the program that computes the experiment. Blocks whose programs are equal can run as one
        group."""
        raise NotImplementedError

    def start(self, seeds: np.ndarray) -> State:
        """The program's state before its first chunk, for these seeds."""
        raise NotImplementedError

    def model(self, state: State):
        """The trained model of one lane, from that lane's final state."""
        raise NotImplementedError

    @classmethod
    def at(cls, preset: str, **changes: Any) -> Experiment:
        """The experiment at a preset, with some settings changed (`task.groups=3` goes in a dict)."""
        return cls.plan(**changes).at(preset)

    @classmethod
    def plan(cls, **changes: Any) -> Plan:
        """The experiment with some settings fixed and the rest left to the preset."""
        return Plan(cls, changes)

    def stored(self) -> dict[str, Any]:
        """Return the settings that identify a run: all but those that say which seeds are run."""
        settings = to_json(self)
        del settings["seeds"], settings["first_seed"]
        if not settings["perturbed"]:
            del settings["perturbed"]  # runs were stored without it before this setting existed
        return settings

    @cached_property
    def digest(self) -> str:
        return digest(self.stored())


@cache
def _as_declared(experiment: type[Experiment]) -> Experiment:
    return experiment()


@dataclass(frozen=True)
class Plan:
    """An experiment whose preset is still open."""

    experiment: type[Experiment]
    changes: Mapping[str, Any]
    by_preset: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def _made(self) -> dict[tuple[str, str], Experiment]:
        """The experiments that were made before, by preset."""
        return {}

    def at(self, preset: str) -> Experiment:
        check_preset(preset)
        besides = changes_of(preset)
        asked = str(preset), repr(besides)
        if asked not in self._made:
            changes = (
                dict(at_preset(self.experiment.presets, preset))
                | dict(self.changes)
                | dict(at_preset(self.by_preset, preset))
                | besides
            )
            self._made[asked] = override(_as_declared(self.experiment), changes)
        return self._made[asked]

    def but(self, **changes: Any) -> Plan:
        """The same plan with other settings on top, at every preset."""
        kept = {
            preset: {path: v for path, v in mine.items() if path not in changes}
            for preset, mine in self.by_preset.items()
        }
        return Plan(self.experiment, dict(self.changes) | changes, kept)

    def where(self, **by_preset: Mapping[str, Any]) -> Plan:
        """The same plan with other settings at some presets: plan.where(quick={"steps": 100})."""
        for preset in by_preset:
            check_preset(preset)
        merged = {
            preset: dict(self.by_preset.get(preset, {})) | dict(by_preset.get(preset, {}))
            for preset in (*self.by_preset, *by_preset)
        }
        return Plan(self.experiment, self.changes, merged)

    @property
    def name(self) -> str:
        return self.experiment.name


def choose(catalogue: Mapping[str, Any], name: str, what: str) -> Any:
    """Look a name up, or refuse with the nearest one."""
    if name not in catalogue:
        raise Refused(f"unknown {what} {name!r}{nearest(name, catalogue)}; `stagewise list` shows them all")
    return catalogue[name]
