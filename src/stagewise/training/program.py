"""What the lab runs: a computation over lanes that can stop after any chunk and go on later.

A lane is one seed at one set of constants (a learning rate, a scale). Experiments whose programs are equal
differ only in constants, and run side by side as lanes of one compiled program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, ArrayLike, Key

State = dict[str, Any]  # a tree of arrays; the first axis of every leaf is the lane
Records = dict[str, np.ndarray]  # name -> array of shape (lane, record, ...)


class Program(ABC):
    """A frozen dataclass of everything that is fixed when the program is compiled. Whatever may differ
    between lanes is in the state."""

    most_lanes = 256
    """How many lanes are worth running together."""

    @property
    @abstractmethod
    def chunks(self) -> int:
        """Number of chunks in a full run."""

    @property
    @abstractmethod
    def records(self) -> int:
        """Number of records of a full run. A run that is done earlier repeats its last record, since nothing
        changes any more."""

    @abstractmethod
    def advance(self, state: State, chunk: int) -> tuple[State, Records]:
        """Run one chunk. A pure function: the same state and chunk give the same bits."""

    def takes(self, state: State, chunk: int) -> int:
        """Return the bytes of memory that a chunk needs at least, besides its state, as far as this is known
        before it runs."""
        return 0

    @abstractmethod
    def finished(self, state: State) -> bool:
        """Whether every lane is done, so that the chunks that are left need not run."""

    @abstractmethod
    def outcomes(self, state: State) -> Records:
        """How each lane ended: arrays of shape (lane, ...)."""

    def final(self, state: State) -> State:
        """Return the part of the last state that is kept in a run's folder, for `Experiment.model`."""
        return state

    @abstractmethod
    def describe(self, chunk: int) -> tuple[str, int]:
        """Return the stage that a chunk belongs to, and the number of its steps for one lane (0 where a
        solver decides)."""

    @abstractmethod
    def labels(self) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        """Coordinates of a trajectory: name -> (dimensions, values)."""

    @property
    @abstractmethod
    def dims(self) -> dict[str, tuple[str, ...]]:
        """Dimensions of each recorded array after (seed, record), and of each outcome after (seed)."""


def stacked(lanes: Sequence[Any]) -> Any:
    """Join the trees of arrays of several lanes into one tree, with the lane as the first axis of every
    leaf."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *lanes)


def nudged(state: State, number: int) -> State:
    """Return a start in which every weight is off by a random rounding error, drawn with `number`. With
    number 0 it is returned as it was.

    If results depend on the last digits, runs from such a start show it."""
    if not number:
        return state
    rng = np.random.default_rng(number)

    def nudge(leaf: Any) -> np.ndarray:
        leaf = np.asarray(leaf)
        if not np.issubdtype(leaf.dtype, np.floating):
            return leaf
        off = np.finfo(leaf.dtype).eps * rng.uniform(-1, 1, leaf.shape)
        return leaf * (1 + off).astype(leaf.dtype)

    return state | {"weights": jax.tree.map(nudge, state["weights"])} if "weights" in state else state


# Each seed has these streams of random numbers. They are separate: drawing more from one changes no other.
INITIAL, DATA, EVALUATION = 0, 1, 2


def stream(seed: ArrayLike, purpose: int) -> Key[Array, ""]:
    """The key of one purpose of one seed."""
    return jax.random.fold_in(jax.random.key(seed), purpose)


def generator(seed: int, purpose: int) -> np.random.Generator:
    """Return numpy's generator for one purpose of one seed, for what is drawn once on the host before
    anything is compiled."""
    return np.random.default_rng(np.asarray(jax.random.key_data(stream(seed, purpose))))
