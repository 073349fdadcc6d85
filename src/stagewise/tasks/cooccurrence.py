"""Word co-occurrence: a sequence is positive if both target words are in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from stagewise.errors import require

# The two targets, the word that is always there, and how many are special.
FIRST, SECOND, COMMON, SPECIAL = (0, 1, 2, 3)
TYPES = (1, 2, 3, 4)  # both targets; only the first; only the second; neither
SHARES = (1 / 2, 1 / 6, 1 / 6, 1 / 6)
MOST = 100_000  # samples, words in one, and different words


class Sentences(NamedTuple):
    """Sequences of words with their labels and types."""

    tokens: np.ndarray  # [n, length]
    label: np.ndarray  # [n]: +1 or -1
    type: np.ndarray  # [n]: 1 to 4


@dataclass(frozen=True)
class Cooccurrence:
    """Two target words, a common word in every sequence, and irrelevant words (Definition 2.1, Assumption
    2.3).

    Type 1 (half of the sequences, positive) has both targets, types 2 and 3 one of them, type 4 none. In the
    training set the irrelevant words are all `distinct`, as the theory assumes, or drawn with repetition and
    so `shared`, as in the paper's experiment; the types come in `exact` proportion, or are drawn like the
    test data's.

    Sequences are drawn on the host: a training set is made once, before anything is compiled."""

    samples: int = 60  # n, the size of the training set; a multiple of 6
    length: int = 5  # L, words in a sequence
    vocabulary: int = 64  # d, how many different words there are
    # words beside targets and common word: none twice in the set, or drawn
    irrelevant: Literal["distinct", "shared"] = "shared"
    counts: Literal["exact", "drawn"] = "exact"  # of the four types: in exact proportion, or drawn

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
        """How many irrelevant words a training set can hold: n (L - 7/3) in exact proportion, at most n (L -
        1)."""
        if self.counts == "drawn":
            return self.samples * (self.length - 1)
        return int(_irrelevant(self._exact_types(), self.length).sum())

    def training_set(self, rng: np.random.Generator) -> Sentences:
        """A training set, its words in random order. Drawn types are drawn again if one is missing."""
        type = self._exact_types() if self.counts == "exact" else self._drawn_types(rng, self.samples)
        while len(set(type)) < len(TYPES):
            type = self._drawn_types(rng, self.samples)
        pool = np.arange(SPECIAL, self.vocabulary)
        words = rng.permutation(pool) if self.irrelevant == "distinct" else rng.choice(pool, self.slots)
        return self._fill(type, words, rng)

    def sample(self, rng: np.random.Generator, batch: int) -> Sentences:
        """Fresh sequences of the distribution."""
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
