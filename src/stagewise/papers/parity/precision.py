"""Rounding to a few bits: what a network computes when weights and activations have p bits each, and how many
bits a trained one needs (Theorem 3, last sentence)."""

from __future__ import annotations

from typing import Any

import numpy as np

from stagewise.papers.parity.theory import Coefficients, Network, Sequences
from stagewise.papers.parity.three_steps import BATCHES, STEPS, frozen
from stagewise.training.program import EVALUATION, generator

PRECISIONS = tuple(range(2, 21))
DIMS = {"accuracy": (), "accuracy_at": ("precision",)}


def rounded(values: np.ndarray, bits: int | None) -> np.ndarray:
    """Values on a grid of 2^bits steps between minus and plus the largest of them; with None, as they are."""
    if bits is None:
        return values
    step = np.abs(values).max() / 2 ** (bits - 1)
    return np.round(values / step) * step if step > 0 else values


def outputs(
    network: Network, c: Coefficients, E: np.ndarray, data: Sequences, bits: int | None
) -> np.ndarray:
    """The plain network of `plain.py` with every weight and every activation rounded: [sample, query]."""
    Eq = E[network.query_rows]
    A, W1, W2 = (rounded(w, bits) for w in (E.T @ c.A @ Eq, c.W1 @ Eq, c.W2 @ E))
    keys, first = data.embedded(), network.first
    scores_of, own_of = rounded(E @ A @ Eq.T, bits), rounded(Eq @ W1.T, bits)
    found = []
    for query in range(data.labels.shape[1]):
        place = first + query
        row = 2 * query + data.bits[:, place]
        scores = scores_of[keys[:, : place + 1], row[:, None]]
        weights = np.exp(scores - scores.max(1, keepdims=True))
        attention = rounded(weights / weights.sum(1, keepdims=True), bits)
        by_embedding = np.zeros((len(keys), len(E)))
        np.put_along_axis(by_embedding, keys[:, : place + 1], attention, 1)
        attended = rounded(by_embedding @ E, bits)
        seen = rounded(own_of[row] + attended @ W2.T, bits)
        found.append(np.maximum(seen, 0) @ network.signs)
    return np.stack(found, 1)


def measure(settings, seed: int) -> dict[str, Any]:
    """Accuracy of one seed after three steps, exact and with p bits."""
    network, c, E = frozen(settings, seed)
    for t in range(STEPS):
        batch = network.draw(generator(seed, BATCHES + t + 1), settings.batch)
        c = c.moved(network.gradient(c, batch), settings.rates()[t])
    test = network.tested(generator(seed, EVALUATION), settings.tested)

    def accuracy(bits: int | None) -> float:
        return test.accuracy(outputs(network, c, E, test, bits))

    return {"accuracy": accuracy(None), "accuracy_at": [accuracy(bits) for bits in PRECISIONS]}
