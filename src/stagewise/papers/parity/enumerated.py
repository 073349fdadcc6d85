"""Correlations of a parity's sequences over all inputs, exactly."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from stagewise.tasks.parity import Parity


def correlations(bits: int, secret_size: int, chain_of_thought: bool) -> tuple[float, float]:
    """Given the bit at an asked place, how the next bit correlates with the bits before: the least on what it
    needs, the most elsewhere.

    Over all inputs and all secrets in ascending order; the largest over the values of the given bit."""
    task = Parity(bits, secret_size, chain_of_thought)
    inputs = (np.arange(2**bits)[:, None] >> np.arange(bits)) & 1
    least, most = 1.0, 0.0
    for secret in combinations(range(bits), secret_size):
        labels = inputs @ task.sums(np.array(secret)).astype(int) % 2
        read = np.concatenate([inputs, np.zeros((len(inputs), 1), int), labels[:, :-1]], 1)
        for answer, place in enumerate(task.asked):
            needed = np.flatnonzero(task.depends_on(np.array(secret))[:, answer])
            for own in np.unique(read[:, place]):
                given = read[:, place] == own
                found = abs((1 - 2 * labels[given, answer]) @ (1 - 2 * read[given, :place])) / given.sum()
                least = min(least, found[needed].min())
                most = max(most, np.delete(found, needed).max())
    return float(least), float(most)
