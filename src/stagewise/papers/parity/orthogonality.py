"""Random sign embeddings are nearly orthogonal (Lemmas 30 and 31), and a gap of scores makes attention
one-hot (Lemma 32)."""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy as np

from stagewise.papers.parity.lemmas import FAILURE
from stagewise.papers.parity.theory import embeddings
from stagewise.training.program import EVALUATION, INITIAL, generator

DIMS = {"lemma30": (), "lemma31": (), "lemma32": (), "lemma32_gap_halved": ()}
STRENGTH = 3.0  # C of Lemma 32


def measure(settings, seed: int) -> dict[str, Any]:
    """How much of each bound is used."""
    rng, d, k = generator(seed, INITIAL), settings.dimension, settings.secret_size
    E, n = embeddings(rng, settings.places, d), settings.places - k
    off = E @ E.T - np.eye(len(E))
    combination = rng.standard_normal(2 * k)
    v = combination @ E[-2 * k :]
    error, rest = abs(E[-1] @ v - combination[-1]), (combination[:-1] ** 2).sum()
    one_hot = [
        off_one_hot(generator(seed, EVALUATION), settings.places, n, gap) for gap in (2 * STRENGTH, STRENGTH)
    ]
    return {
        "lemma30": error / sqrt(2 * log(2 / FAILURE) / d * rest),
        "lemma31": abs(off).max() / sqrt(2 * log(8 * n * d / FAILURE) / d),
        "lemma32": one_hot[0] / (4 / n ** (STRENGTH - 1)),
        "lemma32_gap_halved": one_hot[1] / (4 / n ** (STRENGTH - 1)),
    }


def off_one_hot(rng: np.random.Generator, places: int, n: int, gap: float) -> float:
    """Worst distance of the attended embedding from the target's, orthogonal embeddings, with scores as bad
    as Lemma 32 allows: the target at `gap` log n, half of the others at C log n and the rest at random
    below."""
    scores = rng.uniform(-STRENGTH, STRENGTH, places) * log(n)
    scores[: places // 2] = STRENGTH * log(n)
    scores[-1] = gap * log(n)
    weights = np.exp(scores - scores.max())
    apart = weights / weights.sum()
    apart[-1] -= 1
    return float(np.linalg.norm(apart))
