"""Sparse parity, with its chain of thought spelled out or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from stagewise.errors import require
from stagewise.lazy import jnp

if TYPE_CHECKING:
    from jaxtyping import Array, Int, Integer

MOST_BITS_TO_ENUMERATE = 20  # up to this many bits, inputs come from a shuffled list of all there are
MOST_BITS_TO_LIST = 50  # up to this many bits, no input is drawn twice


class Batch(NamedTuple):
    """What a model reads, and the next bits it is to predict at the task's `asked` places."""

    tokens: Int[Array, "batch length"]
    labels: Int[Array, "batch answers"]


@dataclass(frozen=True)
class Parity:
    """The parity of k secret bits among n bits. With a chain of thought, every partial sum is an answer too.

    In the `paper` format a sequence is the bits, a separator 0, and the answers. The `code` format is that of
    the code that the authors released: without a chain of thought there is no separator; with one, the
    separator is there and is also the first answer, which is always 0. Places count from 0. The secret is an
    ordered set among the first n - 1 bits (among all n bits if k = n)."""

    bits: int = 30  # number of bits, n
    secret_size: int = 3  # number of secret bits, k
    chain_of_thought: bool = True  # whether every partial sum is an answer
    format: Literal["paper", "code"] = "paper"  # format of sequences: the paper's, or that of its code
    # the order in which the chain of thought goes through the secret bits
    order: Literal["ascending", "random"] = "ascending"
    secret: tuple[int, ...] = ()  # places of the secret bits; drawn if none are given

    def __post_init__(self):
        say = "parity: "
        require(
            1 <= self.bits <= 4096,
            f"{say}bits must lie between 1 and 4096, not {self.bits} (set --task.bits)",
        )
        require(
            1 <= self.secret_size <= self.bits,
            f"{say}secret_size must lie between 1 and the {self.bits} bits, not {self.secret_size} (set "
            "--task.secret_size)",
        )
        require(
            self.order == "ascending" or (self.chain_of_thought and not self.secret),
            f"{say}order is that of a drawn secret in a chain of thought, and would be ignored (leave "
            "--task.order)",
        )
        if self.secret:
            self.check_secret(np.array(self.secret))

    @property
    def length(self) -> int:
        """How many tokens the model reads."""
        if self.chain_of_thought:
            return self.bits + self.secret_size
        return self.bits + (self.format == "paper")

    @property
    def asked(self) -> np.ndarray:
        """The places after which the model has to predict the next bit."""
        answers = self.secret_size if self.chain_of_thought else 1
        first = self.length - answers
        return np.arange(first - (self.chain_of_thought and self.format == "code"), self.length)

    def draw_secret(self, rng: np.random.Generator) -> np.ndarray:
        """Return the places of the secret in order: those that `secret` gives, or random ones if it gives
        none."""
        if self.secret:
            return np.array(self.secret)
        among = self.bits if self.secret_size == self.bits else self.bits - 1
        drawn = rng.choice(among, self.secret_size, replace=False)
        return np.sort(drawn) if self.order == "ascending" else drawn

    def check_secret(self, secret: np.ndarray) -> None:
        """Refuse a secret that is not k different places among the bits."""
        places = [int(place) for place in np.ravel(secret)]
        require(
            len(places) == self.secret_size,
            f"parity: the secret must have {self.secret_size} places, not {len(places)} (set "
            "--task.secret_size)",
        )
        require(len(set(places)) == len(places), f"parity: the secret names a place twice: {places}")
        require(
            all(0 <= p < self.bits for p in places),
            f"parity: the secret must lie between 0 and {self.bits - 1}, not {places} (set --task.secret)",
        )

    def inputs(
        self, rng: np.random.Generator, training: int, validation: int = 2048
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw training and validation inputs, each [count, bits].

        Up to 20 bits they are parts of the shuffled list of all inputs, and up to 50 bits they are drawn at
        random without repetition, so the two have no input in common. With more bits they are simply
        random."""
        if self.bits > MOST_BITS_TO_LIST:
            drawn = rng.integers(0, 2, (training + validation, self.bits), dtype=np.int8)
        else:
            there = 2**self.bits
            require(
                training + validation <= there,
                f"parity: {training} training and {validation} validation inputs are more than the {there} "
                f"that {self.bits} bits have",
            )
            codes = (
                rng.permutation(there)
                if self.bits <= MOST_BITS_TO_ENUMERATE
                else _different(rng, there, training + validation)
            )
            drawn = ((codes[: training + validation, None] >> np.arange(self.bits)) & 1).astype(np.int8)
        return drawn[:training], drawn[training:]

    @property
    def separated(self) -> bool:
        """Whether a 0 that is no answer stands between the bits and the answers."""
        return self.format == "paper"

    def sums(self, secret: np.ndarray) -> np.ndarray:
        """Which bits each answer adds up: [bits, answers] of zeros and ones."""
        marks = np.zeros((self.bits, self.secret_size), np.int8)
        for step, place in enumerate(secret):
            marks[place, step:] = 1
        if not self.chain_of_thought:
            return marks[:, -1:]
        return marks if self.separated else np.concatenate([np.zeros_like(marks[:, :1]), marks], 1)

    def depends_on(self, secret: np.ndarray) -> np.ndarray:
        """Which bits each answer needs besides the answers before it, [bits, answers]: what attention ought
        to find."""
        sums = self.sums(secret)
        return np.abs(np.diff(sums, axis=1, prepend=0))

    def spell(self, inputs: Int[Array | np.ndarray, "batch bits"], secret: np.ndarray) -> Batch:
        """Return the sequences and labels of given inputs."""
        return spell(jnp.asarray(inputs), jnp.asarray(self.sums(secret)), self.separated)


def spell(
    inputs: Integer[Array, "batch bits"], sums: Integer[Array, "bits answers"], separated: bool
) -> Batch:
    """Return sequences and labels. A label is the parity of the bits that its column of `sums` marks, and
    every label but the last also stands in the sequence. `sums` may differ from lane to lane."""
    labels = jnp.matmul(inputs.astype(jnp.float32), sums.astype(jnp.float32)).astype(jnp.int32) % 2
    separator = [jnp.zeros((len(inputs), 1), jnp.int32)] if separated else []
    return Batch(jnp.concatenate([inputs.astype(jnp.int32), *separator, labels[:, :-1]], 1), labels)


def _different(rng: np.random.Generator, below: int, count: int) -> np.ndarray:
    """Draw `count` different numbers below a bound, in random order."""
    found = np.zeros(0, np.int64)
    while len(found) < count:
        found = np.unique(np.concatenate([found, rng.integers(0, below, count - len(found) + 16)]))
    return rng.permutation(found)
