"""Measurements that are made once for each seed, without training: constructions, concentration,
identities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.threads import on_each_core
from stagewise.training.program import Program, State


@dataclass(frozen=True)
class Measurement(Program):
    """A function of settings and a seed that returns named arrays, with their dimensions and the labels along
    them."""

    measure: Callable[[Any, int], dict[str, Any]]
    settings: Any
    named: tuple[tuple[str, tuple[str, ...]], ...]
    along: tuple[tuple[str, tuple], ...] = ()

    @property
    def chunks(self) -> int:
        return 1

    @property
    def records(self) -> int:
        return 1

    def advance(self, state: State, chunk: int):
        found = on_each_core(self, lambda seed: self.measure(self.settings, int(seed)), state["seed"])
        return state, {
            name: np.stack([np.asarray(one[name], float) for one in found])[:, None] for name in self.dims
        }

    def finished(self, state: State) -> bool:
        return False

    def outcomes(self, state: State):
        return {}

    def describe(self, chunk: int) -> tuple[str, int]:
        return "measuring", 0

    def labels(self):
        return {"step": (("record",), np.zeros(1, int))} | {
            name: ((name,), np.array(values)) for name, values in self.along
        }

    @property
    def dims(self):
        return dict(self.named)
