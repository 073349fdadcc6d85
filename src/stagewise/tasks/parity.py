"""Sparse parity, with its chain of thought spelled out or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from stagewise.errors import require
from stagewise.lazy import jnp

if TYPE_CHECKING:
    from jaxtyping import Array, Int

MOST_BITS_TO_ENUMERATE = 20  # up to here training and validation inputs are disjoint parts of the whole cube


class Batch(NamedTuple):
    """What a model reads, and the next bits it is to predict at the task's `asked` places."""

    tokens: Int[Array, "batch length"]
    labels: Int[Array, "batch answers"]


@dataclass(frozen=True)
class Parity:
    """The parity of k secret ones among n bits. With a chain of thought every partial sum is an answer of its own.

    In the `paper` format a sequence is the bits, a separator 0, and the answers; in the `code` format, as the authors released
    it, there is no separator without a chain of thought, and with one the separator is an answer too, which is always 0.
    Places count from 0; the secret is an ordered set among the first n - 1 bits (all n if k = n)."""

    bits: int = 30
    secret_size: int = 3
    chain_of_thought: bool = True
    format: Literal["paper", "code"] = "paper"
    order: Literal["ascending", "random"] = "ascending"

    def __post_init__(self):
        say = "parity: "
        require(1 <= self.bits <= 4096, f"{say}bits must lie between 1 and 4096, not {self.bits} (set --task.bits)")
        require(
            1 <= self.secret_size <= self.bits,
            f"{say}secret_size must lie between 1 and the {self.bits} bits, not {self.secret_size} (set --task.secret_size)",
        )

    @property
    def length(self) -> int:
        """How many tokens the model reads."""
        if self.chain_of_thought:
            return self.bits + self.secret_size
        return self.bits + (self.format == "paper")

    @property
    def asked(self) -> np.ndarray:
        """The places after which the model is to predict the next bit."""
        answers = self.secret_size if self.chain_of_thought else 1
        first = self.length - answers
        return np.arange(first - (self.chain_of_thought and self.format == "code"), self.length)

    def draw_secret(self, rng: np.random.Generator) -> np.ndarray:
        """An ordered secret."""
        among = self.bits if self.secret_size == self.bits else self.bits - 1
        drawn = rng.choice(among, self.secret_size, replace=False)
        return np.sort(drawn) if self.order == "ascending" else drawn

    def check_secret(self, secret: np.ndarray) -> None:
        """Refuse a secret that is not k different places among the bits."""
        places = [int(place) for place in np.ravel(secret)]
        require(len(places) == self.secret_size, f"parity: the secret must have {self.secret_size} places, not {len(places)}")
        require(len(set(places)) == len(places), f"parity: the secret names a place twice: {places}")
        require(all(0 <= p < self.bits for p in places), f"parity: the secret must lie between 0 and {self.bits - 1}, not {places}")

    def inputs(self, rng: np.random.Generator, training: int, validation: int = 2048) -> tuple[np.ndarray, np.ndarray]:
        """Training and validation inputs [count, bits] that have none in common.

        Up to 20 bits they are parts of the shuffled cube; beyond, drawn at random, and what training shares with validation left out."""
        if self.bits <= MOST_BITS_TO_ENUMERATE:
            there = 2**self.bits
            require(
                training + validation <= there,
                f"parity: {training} training and {validation} validation inputs are more than the {there} that {self.bits} bits have",
            )
            codes = rng.permutation(there)[: training + validation]
            drawn = ((codes[:, None] >> np.arange(self.bits)) & 1).astype(np.int8)
            return drawn[:training], drawn[training:]
        held_out = rng.integers(0, 2, (validation, self.bits), dtype=np.int8)
        known, kept = {row.tobytes() for row in held_out}, []
        while (missing := training - sum(map(len, kept))) > 0:
            drawn = rng.integers(0, 2, (missing, self.bits), dtype=np.int8)
            kept.append(drawn[[row.tobytes() not in known for row in drawn]] if self.bits <= 50 else drawn)
        return np.concatenate(kept), held_out

    def spell(self, inputs: Int[Array, "batch bits"], secret: Int[Array, " k"]) -> Batch:
        """The sequences of given inputs, and their labels."""
        inputs = jnp.asarray(inputs, int)
        sums = jnp.cumsum(inputs[:, secret], axis=1) % 2
        separator = jnp.zeros((len(inputs), 1), int)
        if self.chain_of_thought:
            labels = sums if self.format == "paper" else jnp.concatenate([separator, sums], 1)
            return Batch(jnp.concatenate([inputs, separator, sums[:, :-1]], 1), labels)
        return Batch(jnp.concatenate([inputs, separator], 1) if self.format == "paper" else inputs, sums[:, -1:])

    def depends_on(self, secret: Int[Array, " k"]) -> np.ndarray:
        """The one input each partial sum needs besides its predecessor: what attention ought to find."""
        return np.asarray(secret)
