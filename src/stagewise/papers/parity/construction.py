"""Theorem 1: weights that compute a parity in one pass, without a chain of thought and without training."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from stagewise.papers.parity.precision import rounded
from stagewise.papers.parity.theory import embeddings
from stagewise.training.program import EVALUATION, INITIAL, generator

PRECISIONS = tuple(range(3, 21))
DIMS = {
    "accuracy": (),
    "off_uniform": (),
    "output_error": (),
    "least_eigenvalue": (),
    "largest_eigenvalue": (),
    "V_norm": (),
    "V_elsewhere": (),
    "V_on_secret": (),
    "accuracy_at": ("precision",),
}


def measure(settings, seed: int) -> dict[str, Any]:
    """Build the network of one seed and run it, also with its weights rounded to a few bits."""
    rng, task = generator(seed, INITIAL), settings.task
    n, k = task.bits, task.secret_size
    secret, E = task.draw_secret(rng), embeddings(rng, n + 1, settings.dimension)
    rows = np.stack([2 * secret, 2 * secret + 1], 1).ravel()  # (place, bit) of the secret
    M = E[rows]
    inverse = M.T @ np.linalg.pinv(M @ M.T)  # columns u[j, b]
    V, U = inverse.sum(1), inverse[:, 1::2].sum(1)
    elsewhere = np.delete(E[: 2 * n] @ V, rows)
    inputs = settings.inputs(generator(seed, EVALUATION))
    labels = inputs[:, secret].sum(1) % 2
    out, attention = respond(E, V, U, inputs, k)
    eigenvalues = np.linalg.eigvalsh(M @ M.T)
    uniform = np.isin(np.arange(n + 1), secret) / k
    return {
        "accuracy": ((out > 0) == labels).mean(),
        "off_uniform": abs(attention - uniform).max(),
        "output_error": abs(out - (2 * labels - 1)).max(),
        "least_eigenvalue": eigenvalues[0],
        "largest_eigenvalue": eigenvalues[-1],
        "V_norm": np.linalg.norm(V),
        "V_elsewhere": abs(elsewhere).max(),
        "V_on_secret": abs(E[rows] @ V).max(),
        "accuracy_at": [
            ((respond(E, rounded(V, p), rounded(U, p), inputs, k, p)[0] > 0) == labels).mean()
            for p in PRECISIONS
        ],
    }


def respond(
    E: np.ndarray, V: np.ndarray, U: np.ndarray, inputs: np.ndarray, k: int, precision: int | None = None
):
    """Output and attention at the separator: A = 40 log(n) V e', all neurons read 2k <U, attention> and their
    own threshold."""
    n = inputs.shape[1]
    rows = np.concatenate([2 * np.arange(n) + inputs, np.full((len(inputs), 1), 2 * n)], 1)
    scores = rounded(40 * log(n) * (E @ V)[rows], precision)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    attention = rounded(weights / weights.sum(1, keepdims=True), precision)
    count = rounded(2 * k * (attention * (E @ U)[rows]).sum(1), precision)  # twice the number of secret ones
    thresholds, signs = neurons(k)
    return np.maximum(thresholds + count[:, None], 0) @ signs, attention


def neurons(k: int) -> tuple[np.ndarray, np.ndarray]:
    """a_r and h_r of the 2(k + 1) neurons: their sum over h_r relu(a_r + 2s) is (-1)^(s + 1) for s = 0 ..
    k."""
    m = k + 1
    r = np.arange(1, 2 * m + 1)
    rising = -4 * np.ceil(r / 2) + 4
    falling = np.where(r == m + 1, 1, -4 * np.floor((r - m) / 2) + 2)
    return np.where(r <= m, rising, falling), np.where(r <= m, 1.0, -1.0)
