"""Discrete training: steps are scanned, lanes are vmapped, records come on a schedule.

One compilation serves every schedule: a chunk is a scan over a fixed number of records, and between two
records runs a loop whose length is an argument. The last chunk is padded with gaps of no steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int, Key

from stagewise.training.program import DATA, EVALUATION, Program, Records, State, stream

RECORDS_PER_CHUNK = 16
NEVER = -1
OUTCOMES = ("diverged_at", "done_at")


class Rule(ABC):
    """How one lane moves and what is measured on it. A frozen dataclass: equal rules share one compilation."""

    @abstractmethod
    def step(self, weights: Any, numbers: dict[str, Array], key: Key[Array, ""]) -> Any:
        """The weights after one step; `key` is that step's own."""

    @abstractmethod
    def measure(self, weights: Any, numbers: dict[str, Array], key: Key[Array, ""]) -> dict[str, Array]:
        """Named arrays to record; `key` is for drawing evaluation data."""

    @property
    @abstractmethod
    def dims(self) -> dict[str, tuple[str, ...]]:
        """The dimensions of each measured array."""

    @property
    @abstractmethod
    def coords(self) -> dict[str, np.ndarray]:
        """The labels along those dimensions."""

    stops = False

    def done(self, measured: dict[str, Array], numbers: dict[str, Array]) -> Bool[Array, ""]:
        """Whether a lane needs no more training; asked at every record where `stops` is true."""
        raise NotImplementedError


def begin(weights: Any, numbers: dict[str, np.ndarray], seeds: Int[np.ndarray, " lane"]) -> State:
    """The state at step 0. Every leaf of `weights` and `numbers` has the lane as its first axis."""
    never = np.full(len(seeds), NEVER)
    return {
        "weights": weights,
        "numbers": numbers,
        "seed": seeds,
        "step": np.zeros(len(seeds), int),
        "diverged_at": never,
        "done_at": never,
    }


@dataclass(frozen=True)
class Training(Program):
    """A rule, followed for the steps of a schedule."""

    rule: Rule
    schedule: tuple[int, ...]

    @property
    def chunks(self) -> int:
        return -(-len(self.schedule) // RECORDS_PER_CHUNK)

    @property
    def records(self) -> int:
        return len(self.schedule)

    def _steps(self, chunk: int) -> np.ndarray:
        first = chunk * RECORDS_PER_CHUNK
        return np.array(self.schedule[first : first + RECORDS_PER_CHUNK])

    def advance(self, state: State, chunk: int) -> tuple[State, Records]:
        steps = self._steps(chunk)
        before = self.schedule[chunk * RECORDS_PER_CHUNK - 1] if chunk else 0
        gaps = np.diff(steps, prepend=before)
        padded = np.concatenate([gaps, np.zeros(RECORDS_PER_CHUNK - len(gaps), int)])
        state, records = _advance(self.rule, state, padded)
        return state, {name: np.moveaxis(np.asarray(r), 0, 1)[:, : len(steps)] for name, r in records.items()}

    def finished(self, state: State) -> bool:
        return self.rule.stops and bool(np.all((state["done_at"] != NEVER) | (state["diverged_at"] != NEVER)))

    def outcomes(self, state: State) -> Records:
        return {name: np.asarray(state[name]) for name in OUTCOMES}

    def describe(self, chunk: int) -> tuple[str, int]:
        last = min(len(self.schedule), (chunk + 1) * RECORDS_PER_CHUNK) - 1
        first = chunk * RECORDS_PER_CHUNK - 1
        return "training", self.schedule[last] - (self.schedule[first] if chunk else 0)

    def labels(self):
        named = {name: ((name,), np.asarray(values)) for name, values in self.rule.coords.items()}
        return {"step": (("record",), np.array(self.schedule))} | named

    @property
    def dims(self):
        return self.rule.dims | {name: () for name in OUTCOMES}


@partial(jax.jit, static_argnums=0)
def _advance(rule: Rule, state: State, gaps: Int[Array, " record"]) -> tuple[State, dict[str, Array]]:
    data_keys = jax.vmap(lambda seed: stream(seed, DATA))(state["seed"])
    evaluation_keys = jax.vmap(lambda seed: stream(seed, EVALUATION))(state["seed"])

    def step(_, state):
        keys = jax.vmap(jax.random.fold_in)(data_keys, state["step"])
        moved = jax.vmap(rule.step)(state["weights"], state["numbers"], keys)
        if rule.stops:
            active = state["done_at"] == NEVER
            moved = jax.tree.map(partial(_where_lane, active), moved, state["weights"])
        return state | {"weights": moved, "step": state["step"] + 1}

    def record(state, gap):
        state = lax.fori_loop(0, gap, step, state)
        keys = jax.vmap(jax.random.fold_in)(evaluation_keys, state["step"])
        measured = jax.vmap(rule.measure)(state["weights"], state["numbers"], keys)
        broken = ~jax.vmap(_all_finite)(state["weights"])
        state = state | {"diverged_at": _first(state["diverged_at"], broken, state["step"])}
        if rule.stops:
            done = jax.vmap(rule.done)(measured, state["numbers"])
            state = state | {"done_at": _first(state["done_at"], done, state["step"])}
        return state, measured

    return lax.scan(record, state, gaps)


def _first(at, happened, step):
    return jnp.where((at == NEVER) & happened, step, at)


def _where_lane(lanes, new, old):
    return jnp.where(lanes.reshape(lanes.shape + (1,) * (new.ndim - 1)), new, old)


def _all_finite(tree) -> Bool[Array, ""]:
    return jnp.all(jnp.array([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))
