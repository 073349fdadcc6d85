"""Stages of training: which weights move, on which samples, until which event; and discrete training through
them.

Gradient flow through stages is in `flow.py`; the same stages serve both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from stagewise.training.loop import NEVER, Rule

EVENT, TIME_RAN_OUT, GAVE_UP, NOT_FINITE, NOT_RUN = range(5)
OUTCOMES = ("event", "time ran out", "solver gave up", "not finite", "not run")
"""How a stage ended. Only `event` is success; later stages of a lane that failed are `not run`."""


@dataclass(frozen=True)
class Until:
    """The event that ends a stage: a watched quantity reaches a threshold, from below if `rising`, else from
    above.

    The threshold is a number, or the name of one of the lane's constants."""

    quantity: str
    reaches: float | str
    rising: bool = True


@dataclass(frozen=True)
class Stage:
    """One stage of training. `limit` is the longest it may last, in time or in steps. If the limit comes
    before the event, the outcome is `time ran out`."""

    name: str
    moves: tuple[str, ...]
    samples: str
    until: Until
    limit: float


class System(ABC):
    """What stages act on: one lane's named weights, what is measured and watched on them, and its kinds of
    samples."""

    @abstractmethod
    def measure(self, weights: dict[str, Array], constants: dict[str, Array]) -> dict[str, Array]:
        """Named arrays to record."""

    @abstractmethod
    def watched(self, weights: dict[str, Array], constants: dict[str, Array]) -> dict[str, Float[Array, ""]]:
        """The quantities that may end a stage."""

    @abstractmethod
    def samples(self, kind: str) -> np.ndarray:
        """Return the weight of every sample, for one kind of samples."""

    @property
    @abstractmethod
    def dims(self) -> dict[str, tuple[str, ...]]:
        """The dimensions of each measured array."""

    @property
    @abstractmethod
    def coords(self) -> dict[str, np.ndarray]:
        """The labels along those dimensions."""


class StagedStep(System):
    """A system that moves by steps."""

    @abstractmethod
    def descend(
        self,
        weights: dict[str, Array],
        constants: dict[str, Array],
        key: Key[Array, ""],
        moves: Mapping[str, Float[Array, ""] | float],
        samples: Float[Array | np.ndarray, " n"],
    ) -> dict[str, Array]:
        """One step on the weighted samples; `moves` is 1 for the weights that the stage trains and 0 for the
        rest."""


@dataclass(frozen=True)
class Staged(Rule):
    """Discrete training through stages. Each lane is in a stage of its own: it goes on to the next when its
    event happens, and rests after the last stage or after a stage whose limit of steps ran out.

    Records hold `stage` (how many stages the lane has behind it), and for each stage its `outcome` and
    `ended_at`, the step of its event."""

    steps: StagedStep
    stages: tuple[Stage, ...]
    stops = True

    def begin(self, weights: dict[str, np.ndarray]) -> dict[str, Any]:
        """Return the weights of all lanes, with the stage that each lane is in and its counts of steps."""
        lanes, stages = len(next(iter(weights.values()))), len(self.stages)
        return {
            "weights": weights,
            "stage": np.zeros(lanes, int),
            "taken": np.zeros(lanes, int),
            "entered": np.zeros(lanes, int),
            "ended_at": np.full((lanes, stages), NEVER),
            "outcome": np.full((lanes, stages), NOT_RUN),
        }

    def step(self, weights, constants, key):
        inner, stage, taken = (
            weights["weights"],
            jnp.minimum(weights["stage"], len(self.stages) - 1),
            weights["taken"] + 1,
        )
        active = ~self._resting(weights)
        moves = {
            name: active * jnp.array([float(name in s.moves) for s in self.stages])[stage] for name in inner
        }
        samples = jnp.array([self.steps.samples(s.samples) for s in self.stages])[stage]
        inner = self.steps.descend(inner, constants, key, moves, samples)
        happened = active & self._happened(self.steps.watched(inner, constants), constants)[stage]
        late = (
            active
            & ~happened
            & (taken - weights["entered"] >= jnp.array([s.limit for s in self.stages])[stage])
        )
        here = jnp.arange(len(self.stages)) == stage
        outcome = jnp.where(here & happened, EVENT, jnp.where(here & late, TIME_RAN_OUT, weights["outcome"]))
        return {
            "weights": inner,
            "stage": weights["stage"] + happened,
            "taken": taken,
            "entered": jnp.where(happened, taken, weights["entered"]),
            "ended_at": jnp.where(here & happened, taken, weights["ended_at"]),
            "outcome": outcome,
        }

    def _resting(self, weights):
        return (weights["stage"] >= len(self.stages)) | jnp.any(weights["outcome"] == TIME_RAN_OUT)

    def _happened(self, watched, constants):
        found = []
        for stage in self.stages:
            reaches = stage.until.reaches
            threshold = constants[reaches] if isinstance(reaches, str) else reaches
            value = watched[stage.until.quantity]
            found.append(value >= threshold if stage.until.rising else value <= threshold)
        return jnp.stack(found)

    def measure(self, weights, constants, key):
        where = {name: weights[name] for name in ("stage", "ended_at", "outcome")}
        return self.steps.measure(weights["weights"], constants) | where | {"resting": self._resting(weights)}

    def done(self, measured, constants):
        return measured["resting"]

    @property
    def dims(self):
        return self.steps.dims | {"stage": (), "resting": (), "ended_at": ("stages",), "outcome": ("stages",)}

    @property
    def coords(self):
        return self.steps.coords | {"stages": np.array([stage.name for stage in self.stages])}
