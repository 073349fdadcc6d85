"""Theorem 3, last sentence: how many bits the trained network needs."""

from __future__ import annotations

from typing import Any

from stagewise.papers.parity import precision
from stagewise.papers.parity.three_steps import BATCHES, STEPS, frozen
from stagewise.training.program import EVALUATION, generator

PRECISIONS = tuple(range(2, 21))
DIMS = {"accuracy": (), "accuracy_at": ("precision",)}


def measure(settings, seed: int) -> dict[str, Any]:
    """Accuracy of one seed after three steps, exact and with p bits."""
    network, c, E = frozen(settings, seed)
    for t in range(STEPS):
        batch = network.draw(generator(seed, BATCHES + t + 1), settings.batch)
        c = c.moved(network.gradient(c, batch), settings.rates()[t])
    test = network.tested(generator(seed, EVALUATION), settings.tested)

    def accuracy(bits: int | None) -> float:
        return test.accuracy(precision.outputs(network, c, E, test, bits))

    return {"accuracy": accuracy(None), "accuracy_at": [accuracy(bits) for bits in PRECISIONS]}
