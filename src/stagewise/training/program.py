"""What the lab runs: a computation over lanes that can stop after any chunk and go on later.

A lane is one seed at one set of numbers (a learning rate, a scale). Experiments whose programs are equal
differ in numbers only, and run side by side as lanes of one compiled program."""

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
    """A frozen dataclass of everything that is compiled in; whatever may differ between lanes lives in the
    state."""

    most_lanes = 256
    """How many lanes are worth running together."""

    @property
    @abstractmethod
    def chunks(self) -> int:
        """Number of chunks in a full run."""

    @property
    @abstractmethod
    def records(self) -> int:
        """Number of records of a full run; one that is done earlier repeats its last, which no longer
        changes."""

    @abstractmethod
    def advance(self, state: State, chunk: int) -> tuple[State, Records]:
        """Run one chunk. A pure function: the same state and chunk give the same bits."""

    def takes(self, state: State, chunk: int) -> int:
        """Bytes that a chunk takes at least beside its state, as far as that is known before it runs."""
        return 0

    @abstractmethod
    def finished(self, state: State) -> bool:
        """Whether every lane is done before the last chunk."""

    @abstractmethod
    def outcomes(self, state: State) -> Records:
        """How each lane ended: arrays of shape (lane, ...)."""

    def final(self, state: State) -> State:
        """What of the last state is kept in a run's folder, for `Experiment.model`."""
        return state

    @abstractmethod
    def describe(self, chunk: int) -> tuple[str, int]:
        """The stage that a chunk belongs to, and how many steps it takes a lane (0 where a solver
        decides)."""

    @abstractmethod
    def labels(self) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        """Coordinates of a trajectory: name -> (dimensions, values)."""

    @property
    @abstractmethod
    def dims(self) -> dict[str, tuple[str, ...]]:
        """Dimensions of each recorded array after (seed, record), and of each outcome after (seed)."""


def stacked(lanes: Sequence[Any]) -> Any:
    """Trees of arrays, one a lane, as one tree with the lane as its first axis."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *lanes)


def nudged(state: State, number: int) -> State:
    """A start with every weight off by a random rounding error; with number 0, as it was.

    Where results hang on the last digits, such a start shows it."""
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


# Every random number comes from one of these streams of a seed, so that none depends on another's length.
INITIAL, DATA, EVALUATION = 0, 1, 2


def stream(seed: ArrayLike, purpose: int) -> Key[Array, ""]:
    """The key of one purpose of one seed."""
    return jax.random.fold_in(jax.random.key(seed), purpose)


def generator(seed: int, purpose: int) -> np.random.Generator:
    """The same stream for what is drawn once, on the host, before anything is compiled."""
    return np.random.default_rng(np.asarray(jax.random.key_data(stream(seed, purpose))))
