"""Discrete training: steps are scanned, lanes are vmapped, records come on a schedule.

One compilation serves every schedule. A chunk is a scan over a fixed number of records, and between two
records runs a loop whose length is an argument; the last chunk is padded with gaps of zero steps. Where one
lane is work enough for a core, lanes run one after another (`one_by_one`), and a lane that is done takes no
more time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int, Key

from stagewise.threads import cores, on_each_core
from stagewise.training.intermediate import largest
from stagewise.training.program import DATA, EVALUATION, Program, Records, State, stream

NEVER = -1
OUTCOMES = ("diverged_at", "done_at")


class Rule(ABC):
    """How one lane moves and what is measured on it. Rules are frozen dataclasses: equal rules share one
    compilation."""

    @abstractmethod
    def step(self, weights: Any, constants: dict[str, Any], key: Key[Array, ""]) -> Any:
        """The weights after one step; `key` is that step's own."""

    @abstractmethod
    def measure(self, weights: Any, constants: dict[str, Any], key: Key[Array, ""]) -> dict[str, Array]:
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
    one_by_one = False
    records_per_chunk = 16
    most_lanes = 256

    def done(self, measured: dict[str, Array], constants: dict[str, Any]) -> Bool[Array, ""]:
        """Whether a lane needs no more training; asked at every record where `stops` is true."""
        raise NotImplementedError

    def ends(self, weights: Any, constants: dict[str, Any]) -> dict[str, Any]:
        """Return what is measured only once, on a lane's final weights; `dims` has its dimensions too."""
        return {}

    def final(self, state: State) -> State:
        """Return the part of the final state that is kept in a run's folder."""
        return state


def begin(weights: Any, constants: dict[str, np.ndarray], seeds: Int[np.ndarray, " lane"]) -> State:
    """The state at step 0. Every leaf of `weights` and `constants` has the lane as its first axis."""
    never = np.full(len(seeds), NEVER)
    return {
        "weights": weights,
        "constants": constants,
        "seed": seeds,
        "step": np.zeros(len(seeds), int),
        "diverged_at": never,
        "done_at": never,
    }


@dataclass(frozen=True)
class TrainingLoop(Program):
    """Training by a rule, recorded at the steps of a schedule."""

    rule: Rule
    schedule: tuple[int, ...]

    @property
    def most_lanes(self) -> int:
        return self.rule.most_lanes

    @property
    def chunks(self) -> int:
        return -(-len(self.schedule) // self.rule.records_per_chunk)

    @property
    def records(self) -> int:
        return len(self.schedule)

    def _steps(self, chunk: int) -> np.ndarray:
        """Return the step at which a chunk begins, then the steps that it records."""
        first, size = chunk * self.rule.records_per_chunk, self.rule.records_per_chunk
        return np.array([self.schedule[first - 1] if chunk else 0, *self.schedule[first : first + size]])

    def _gaps(self, chunk: int) -> np.ndarray:
        """Return the number of steps before each record of a chunk, padded to the length that all chunks
        have."""
        gaps = np.diff(self._steps(chunk))
        return np.concatenate([gaps, np.zeros(self.rule.records_per_chunk - len(gaps), int)])

    def advance(self, state: State, chunk: int) -> tuple[State, Records]:
        advance = _advance_one_by_one if self.rule.one_by_one else _advance
        state, records = advance(self.rule, state, self._gaps(chunk))
        count = len(self._steps(chunk)) - 1
        return state, {name: np.moveaxis(np.asarray(r), 0, 1)[:, :count] for name, r in records.items()}

    def takes(self, state: State, chunk: int) -> int:
        if not self.rule.one_by_one:
            return largest(_advance.trace(self.rule, state, self._gaps(chunk)).jaxpr)
        lane = next(_lanes(_begun(self.rule, state)))
        at_once = min(len(cores()), len(state["seed"]))
        return at_once * largest(_advance_lane.trace(self.rule, lane, self._gaps(chunk)).jaxpr)

    def finished(self, state: State) -> bool:
        return self.rule.stops and bool(np.all((state["done_at"] != NEVER) | (state["diverged_at"] != NEVER)))

    def outcomes(self, state: State) -> Records:
        ends = [self.rule.ends(lane["weights"], lane["constants"]) for lane in _lanes(state)]
        return {name: np.asarray(state[name]) for name in OUTCOMES} | {
            name: np.stack([one[name] for one in ends]) for name in ends[0]
        }

    def final(self, state: State) -> State:
        return self.rule.final(state)

    def describe(self, chunk: int) -> tuple[str, int]:
        steps = self._steps(chunk)
        return "training", int(steps[-1] - steps[0])

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
        moved = jax.vmap(rule.step)(state["weights"], state["constants"], keys)
        if rule.stops:
            active = state["done_at"] == NEVER
            moved = jax.tree.map(partial(_where_lane, active), moved, state["weights"])
        return state | {"weights": moved, "step": state["step"] + 1}

    def record(state, gap):
        state = lax.fori_loop(0, gap, step, state)
        keys = jax.vmap(jax.random.fold_in)(evaluation_keys, state["step"])
        measured = jax.vmap(rule.measure)(state["weights"], state["constants"], keys)
        broken = ~jax.vmap(_all_finite)(state["weights"])
        state = state | {"diverged_at": _first(state["diverged_at"], broken, state["step"])}
        if rule.stops:
            done = jax.vmap(rule.done)(measured, state["constants"])
            state = state | {"done_at": _first(state["done_at"], done, state["step"])}
        return state, measured

    return lax.scan(record, state, gaps)


def _advance_one_by_one(rule: Rule, state: State, gaps: np.ndarray) -> tuple[State, dict[str, np.ndarray]]:
    """Advance lanes one after another, one on each core. `last` in the state is what each lane recorded last;
    a lane that is done repeats it."""

    def advance(lane: State):
        return jax.tree.map(np.asarray, _advance_lane(rule, lane, gaps))

    states, records = zip(*on_each_core(rule, advance, _lanes(_begun(rule, state))))
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states), jax.tree.map(
        lambda *leaves: np.stack(leaves, 1), *records
    )


def _begun(rule: Rule, state: State) -> State:
    """Return a state with `last`, a place in every lane for what it recorded last."""
    if "last" in state:
        return state
    lane, lanes = next(_lanes(state)), len(state["seed"])
    shapes = jax.eval_shape(rule.measure, lane["weights"], lane["constants"], jax.random.key(0))
    return state | {"last": jax.tree.map(lambda leaf: np.zeros((lanes, *leaf.shape), leaf.dtype), shapes)}


def _lanes(state: State) -> Iterator[State]:
    return (jax.tree.map(lambda leaf: np.asarray(leaf[i]), state) for i in range(len(state["seed"])))


@partial(jax.jit, static_argnums=0)
def _advance_lane(rule: Rule, state: State, gaps: Int[Array, " record"]) -> tuple[State, dict[str, Array]]:
    data_key, evaluation_key = stream(state["seed"], DATA), stream(state["seed"], EVALUATION)

    def step(_, state):
        moved = rule.step(state["weights"], state["constants"], jax.random.fold_in(data_key, state["step"]))
        return state | {"weights": moved, "step": state["step"] + 1}

    def train_and_measure(state, gap):
        state = lax.fori_loop(0, gap, step, state)
        measured = rule.measure(
            state["weights"], state["constants"], jax.random.fold_in(evaluation_key, state["step"])
        )
        broken, done = ~_all_finite(state["weights"]), rule.stops and rule.done(measured, state["constants"])
        ended = {
            "diverged_at": _first(state["diverged_at"], broken, state["step"]),
            "done_at": _first(state["done_at"], done, state["step"]),
        }
        return state | ended | {"last": measured}

    def record(state, gap):
        ended = (state["done_at"] != NEVER) | (state["diverged_at"] != NEVER)
        state = lax.cond(ended, lambda state, _: state, train_and_measure, state, gap)
        return state, state["last"]

    return lax.scan(record, state, gaps)


def _first(at, happened, step):
    return jnp.where((at == NEVER) & happened, step, at)


def _where_lane(lanes, new, old):
    return jnp.where(lanes.reshape(lanes.shape + (1,) * (new.ndim - 1)), new, old)


def _all_finite(tree) -> Bool[Array, ""]:
    return jnp.all(jnp.array([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))
