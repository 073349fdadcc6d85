"""Experiments: frozen settings that know the program they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from stagewise.errors import Refused, nearest, require
from stagewise.lab.spec.settings import check_kinds, digest, override, to_json

if TYPE_CHECKING:
    import numpy as np

    from stagewise.training.program import Program, State

PRESETS = ("quick", "standard", "paper")


def check_preset(preset: str) -> None:
    require(
        isinstance(preset, str) and preset in PRESETS,
        f"unknown preset {preset!r}{nearest(preset, PRESETS)}; there are {', '.join(PRESETS)}",
    )


@dataclass(frozen=True)
class Experiment:
    """Settings of one training run, over `seeds` seeds. Seed i is a pure function of the other settings and
    i."""

    seeds: int = 8  # how many seeds, from 0 on

    name: ClassVar[str]
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    seeds_per_block: ClassVar[int] = 64
    renamed: ClassVar[Mapping[str, str]] = {}
    """Settings that had another name before, old name -> new name: stored runs are read by either."""

    def __post_init__(self):
        check_kinds(self, self.name)
        require(
            1 <= self.seeds <= 100_000,
            f"{self.name}: seeds must lie between 1 and 100000, not {self.seeds} (set --seeds)",
        )

    @property
    def deterministic(self) -> bool:
        """Whether nothing is random, so that one seed says it all."""
        return False

    @property
    def lanes(self) -> int:
        """How many seeds are really run."""
        return 1 if self.deterministic else self.seeds

    @property
    def trained_numbers(self) -> int:
        """How many numbers of a network one lane trains, as far as the settings tell before any is drawn."""
        return 0

    def program(self) -> Program:
        """What is computed. Experiments whose programs are equal run side by side as one."""
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
        """What identifies a run: the settings without the number of seeds."""
        settings = to_json(self)
        del settings["seeds"]
        return settings

    @cached_property
    def digest(self) -> str:
        return digest(self.stored())


@dataclass(frozen=True)
class Plan:
    """An experiment whose preset is still open."""

    experiment: type[Experiment]
    changes: Mapping[str, Any]
    by_preset: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def _made(self) -> dict[str, Experiment]:
        """By preset, what was asked for before."""
        return {}

    def at(self, preset: str) -> Experiment:
        check_preset(preset)
        if preset not in self._made:
            changes = (
                dict(self.experiment.presets.get(preset, {}))
                | dict(self.changes)
                | dict(self.by_preset.get(preset, {}))
            )
            self._made[preset] = override(self.experiment(), changes)
        return self._made[preset]

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
