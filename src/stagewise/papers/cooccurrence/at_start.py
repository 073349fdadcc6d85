"""What the proofs say of the start alone: concentration (Appendix D) and the first gradients of single
neurons (Appendix E.1)."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from stagewise.papers.cooccurrence import appendix_b, initial
from stagewise.tasks.cooccurrence import COMMON, SPECIAL
from stagewise.training.loop import Rule
from stagewise.training.program import DATA, generator

DELTA = 0.05
LEMMAS = ("D.1", "D.3", "D.4", "D.5", "D.6", "D.7", "D.8")
DIMS = {
    "over_bound": ("lemma",),
    "signal_speed": ("extreme",),
    "common_speed": ("extreme",),
    "random_speed": (),
    "output_scale": (),
    "attention_off": (),
}
COORDS = {"lemma": np.array(LEMMAS), "extreme": np.array(("least", "mean", "most"))}


def measure(settings, seed: int) -> dict[str, np.ndarray]:
    """Ratios to the bounds of Appendix D, and speeds a_j d(w_j W_V mu)/dt in units of (s0^2 + s1^2) m."""
    w, sentences = initial.draw_weights(settings, seed), settings.task.training_set(generator(seed, DATA))
    attention, F, error = appendix_b.respond(w, sentences)
    (s0, s1), m = settings.scales(), settings.width
    pull = sentences.label * error / len(error)
    b = np.bincount(
        sentences.tokens.ravel(), (attention.sum(1) * pull[:, None]).ravel(), settings.task.vocabulary
    )
    CVb, Na = w["WV"].T @ (w["WV"] @ b), w["W"] @ (w["W"].T @ w["signs"])
    speed = (CVb + np.outer(w["signs"] * Na, b)) / ((s0**2 + s1**2) * m)  # [neuron, word]
    signal, common, rest = speed[:, :COMMON], speed[:, COMMON], speed[:, SPECIAL:]

    def spread(values):
        return np.array([values.min(), values.mean(), values.max()])

    return {
        "over_bound": over_bounds(settings, w, sentences, attention, F),
        "signal_speed": spread(signal),
        "common_speed": spread(common),
        "random_speed": abs(rest).max(),
        "output_scale": abs(F).max(),
        "attention_off": abs(attention - 1 / settings.task.length).max(),
    }


def over_bounds(settings, w, sentences, attention, F) -> np.ndarray:
    """How much of each bound of Appendix D, as printed, is used: above 1 the bound does not hold."""
    (s0, s1), m, m1 = settings.scales(), settings.width, settings.neurons
    (n, length), d = sentences.tokens.shape, settings.task.vocabulary

    def near(count):  # the paper's sqrt(4/m log) + 4/m log
        return sqrt(4 / m * log(count / DELTA)) + 4 / m * log(count / DELTA)

    def used(left, right, scale, count):
        """Inner products over their bound; of a matrix with itself, those of different columns."""
        products = left.T @ right / (scale * m)
        return abs(products * (1 - np.eye(len(products))) if left is right else products).max() / near(count)

    def lengths(matrix, scale, count):
        return abs((matrix**2).sum(0) / (scale * m) - 1).max() / near(count)

    V, K, Q, W = w["WV"], w["WK"], w["WQ"], w["W"].T
    keys = max(
        used(K, Q, s0**2, 2 * d),
        used(K, K, s0**2, 2 * d),
        used(Q, Q, s0**2, 2 * d),
        *(lengths(X, s0**2, 2 * d) for X in (K, Q)),
    )
    values = max(
        used(V, V, s0**2, 2 * d),
        used(W, W, s1**2, 2 * m1**2),
        used(W, V, s0 * s1, 2 * m1 * d),
        lengths(V, s0**2, 2 * d),
        lengths(W, s1**2, 2 * m1),
    )
    attended = np.einsum("nlh,mnh->nlm", attention, V[:, sentences.tokens])
    norms = abs((attended**2).sum(-1) / (s0**2 * m / length) - 1).max() / near(2 * n * length)
    heard = abs(attended @ W).max() / (s0 * s1 * sqrt(m / length * log(m1 * n * length / DELTA)))
    signs = abs((w["signs"] > 0).mean() - 0.5) / sqrt(2 * log(4 / DELTA) / m1)
    G = abs(w["signs"] @ w["W"] @ V).max() / (s0 * s1 * sqrt(m * m1 * 2 * log(2 * d / DELTA)))
    out = abs(F).max() / (2 * s0 * s1 * sqrt(2 * length * m1 * m * log(2 * length * n / DELTA)))
    return np.array([keys, values, norms, heard, signs, G, out])


@dataclass(frozen=True)
class AtStart(Rule):
    """Nothing moves: the measurements are made when the weights are drawn."""

    @property
    def dims(self):
        return DIMS

    @property
    def coords(self):
        return COORDS

    def step(self, weights, constants, key):
        return weights

    def measure(self, weights, constants, key):
        return weights
