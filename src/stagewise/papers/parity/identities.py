"""The table form against plain weights, and the closed gradients of Lemmas 12, 14 and 20 against automatic
differentiation."""

from __future__ import annotations

from typing import Any

import numpy as np

from stagewise.papers.parity import lemmas, plain
from stagewise.papers.parity.three_steps import BATCHES, STEPS, frozen
from stagewise.training.program import generator

DIMS = {
    "tables": (),
    "outputs": (),
    "lemma12": (),
    "lemma14": (),
    "lemma14_mean": (),
    "lemma20": (),
    "flips": (),
}


def measure(settings, seed: int) -> dict[str, Any]:
    """Largest differences over three steps, relative to the largest entry."""
    network, c, E = frozen(settings, seed)
    Eq, nu = E[network.query_rows], c.W1
    weights = {"A": E.T @ c.A @ Eq, "W1": c.W1 @ Eq, "W2": c.W2 @ E}
    found = dict.fromkeys(DIMS, 0.0)
    for t in range(STEPS):
        batch, rate = network.draw(generator(seed, BATCHES + t + 1), settings.batch), settings.rates()[t]
        tables = network.tables(c)
        changed = [
            np.sign(network.respond(tables, batch, q)[0])
            != np.sign(nu.T[2 * q + batch.bits[:, network.first + q]])
            for q in range(batch.labels.shape[1])
        ]
        moved, gradient = plain.step(weights, E, network.signs, batch, network.first, settings.loss, rate)
        if t < 2:
            found["flips"] = max(found["flips"], float(np.mean(changed)))
            first, second = lemmas.first_gradients(network, nu, batch)
            found["lemma12"] = max(found["lemma12"], apart(first @ Eq, gradient["W1"]))
            found["lemma14"] = max(found["lemma14"], apart(second @ E, gradient["W2"]))
        if t == 0:
            found["lemma14_mean"] = apart(leading(network, nu) @ E, gradient["W2"])
        if t == 1:
            found["lemma20"] = apart(
                E.T @ lemmas.attention_gradient(network, nu, tables, batch) @ Eq, gradient["A"]
            )
        c, weights = c.moved(network.gradient(c, batch), rate), moved
        mine = {"A": E.T @ c.A @ Eq, "W1": c.W1 @ Eq, "W2": c.W2 @ E}
        found["tables"] = max(found["tables"], *(apart(mine[name], weights[name]) for name in mine))
        out = plain.outputs(weights, E, network.signs, batch, network.first)
        found["outputs"] = max(found["outputs"], apart(network.outputs(network.tables(c), batch), out))
    return found


def leading(network, nu: np.ndarray) -> np.ndarray:
    """Lemma 14 with the mean of alpha and no noise: what is left of the gradient of W2 for many samples."""
    share = lemmas.active(nu) / lemmas.one_based(network)[:, None]
    return network.signs[:, None] * np.einsum("rqb,qjb->rj", share, lemmas.mean_counts(network))


def apart(a, b) -> float:
    largest = float(np.abs(b).max())
    return (
        float(np.abs(np.asarray(a) - np.asarray(b)).max()) / largest
        if largest > 0
        else float(np.abs(a).max())
    )
