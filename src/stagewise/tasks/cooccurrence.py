"""Word co-occurrence: a sequence is positive if both target words are in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from stagewise.errors import require

# The numbers of the two target words and of the common word, and how many such special words there are.
FIRST, SECOND, COMMON, SPECIAL = (0, 1, 2, 3)
TYPES = (1, 2, 3, 4)  # both targets; only the first; only the second; neither
SHARES = (1 / 2, 1 / 6, 1 / 6, 1 / 6)
MOST = 100_000  # the largest number of samples, of words in a sequence, and of different words


class Sentences(NamedTuple):
    """Sequences of words with their labels and types."""

    tokens: np.ndarray  # [n, length]
    label: np.ndarray  # [n]: +1 or -1
    type: np.ndarray  # [n]: 1 to 4


@dataclass(frozen=True)
class Cooccurrence:
    """Two target words, a common word in every sequence, and irrelevant words (Definition 2.1, Assumption
    2.3).

    Type 1 (half of the sequences, positive) has both targets, types 2 and 3 have one of them, and type 4 has
    none. The irrelevant words of a training set are all `distinct`, as the theory assumes, or `shared`: drawn
    with repetition, as in the paper's experiment. Its types come in `exact` proportion, or are `drawn` like
    those of the test data.

    Sequences are drawn on the host: a training set is made once, before anything is compiled."""

    samples: int = 60  # size of the training set, n; a multiple of 6
    length: int = 5  # number of words in a sequence, L
    vocabulary: int = 64  # number of different words, d
    # whether the irrelevant words of the training set are all different, or drawn with repetition
    irrelevant: Literal["distinct", "shared"] = "shared"
    # how many sequences of the training set are of each type: in exact proportion, or drawn at random
    counts: Literal["exact", "drawn"] = "exact"

    def __post_init__(self):
        say = "cooccurrence: "
        for name in ("samples", "length", "vocabulary"):
            value = getattr(self, name)
            require(value <= MOST, f"{say}{name} must be at most {MOST}, not {value} (set --task.{name})")
        whole = self.counts == "drawn" or self.samples % 6 == 0
        require(
            self.samples >= 6 and whole,
            f"{say}samples must be a multiple of 6, not {self.samples} (set --task.samples)",
        )
        require(self.length >= 4, f"{say}length must be at least 4, not {self.length} (set --task.length)")
        require(
            self.vocabulary > SPECIAL,
            f"{say}vocabulary must be at least 4, not {self.vocabulary} (set --task.vocabulary)",
        )
        least = SPECIAL + self.slots
        require(
            self.irrelevant == "shared" or self.vocabulary >= least,
            f"{say}{self.samples} samples of length {self.length} with distinct irrelevant words need a "
            "vocabulary of at "
            f"least {least}, not {self.vocabulary} (set --task.vocabulary or --task.irrelevant shared)",
        )

    @property
    def slots(self) -> int:
        """The number of irrelevant words in a training set: n (L - 7/3) if types come in exact proportion. If
        they are drawn, it is at most n (L - 1), which is returned."""
        if self.counts == "drawn":
            return self.samples * (self.length - 1)
        return int(_irrelevant(self._exact_types(), self.length).sum())

    def training_set(self, rng: np.random.Generator) -> Sentences:
        """Draw a training set; the words of each sequence stand in random order. Drawn types are drawn again
        if one of the four is missing."""
        type = self._exact_types() if self.counts == "exact" else self._drawn_types(rng, self.samples)
        while len(set(type)) < len(TYPES):
            type = self._drawn_types(rng, self.samples)
        pool = np.arange(SPECIAL, self.vocabulary)
        words = rng.permutation(pool) if self.irrelevant == "distinct" else rng.choice(pool, self.slots)
        return self._fill(type, words, rng)

    def sample(self, rng: np.random.Generator, batch: int) -> Sentences:
        """Draw `batch` fresh sequences from the distribution."""
        words = rng.integers(SPECIAL, self.vocabulary, batch * self.length)
        return self._fill(self._drawn_types(rng, batch), words, rng)

    def _exact_types(self) -> np.ndarray:
        return np.repeat(TYPES, [self.samples // 2, *[self.samples // 6] * 3])

    def _drawn_types(self, rng: np.random.Generator, batch: int) -> np.ndarray:
        return rng.choice(TYPES, batch, p=SHARES)

    def _fill(self, type: np.ndarray, words: np.ndarray, rng: np.random.Generator) -> Sentences:
        loose = _irrelevant(type, self.length)
        tokens = np.full(loose.shape, COMMON)
        tokens[:, 1] = np.where(type == 3, SECOND, FIRST)
        tokens[:, 2] = SECOND
        tokens[loose] = words[: loose.sum()]
        return Sentences(rng.permuted(tokens, axis=1), np.where(type == 1, 1.0, -1.0), type)


def _irrelevant(type: np.ndarray, length: int) -> np.ndarray:
    """Which places hold irrelevant words before shuffling: the common word comes first, then the targets that
    are there."""
    place, type = np.arange(length), type[:, None]
    return (place >= 3) | ((place == 2) & (type != 1)) | ((place == 1) & (type == 4))
