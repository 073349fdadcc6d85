"""Lemma 6.1: weights that solve any number of groups, as printed and repaired.

The idea: a group token c_k asks for its class signal. In the + head it finds +v_k, in the - head -v_k; class
tokens look at themselves in both heads, so that what they add cancels. The printed weights lose the label:
the group token adds +1 to f for both labels. Ours keep the printed attention and take neurons w+ = u - 2 sum
c_k and w- = u with u = sum v_k, scaled so that no ReLU ever switches off; then f(X) -> y times the scale as
the attention sharpens."""

from __future__ import annotations

import numpy as np

from stagewise.papers.mixture.appendix_b import respond
from stagewise.tasks.mixture import Mixture


def attention_scores(task: Mixture, strength: float) -> np.ndarray:
    """The two printed score matrices, row key and column query: +-2C v_k c_k^T + C c_k c_k^T + C v_k
    v_k^T."""
    K = task.groups
    own = strength * np.eye(2 * K)
    asks = np.zeros((2 * K, 2 * K))
    asks[K:, :K] = 2 * strength * np.eye(K)
    return np.stack([own + asks, own - asks])


def printed(task: Mixture, strength: float) -> np.ndarray:
    """f on the population with the printed readout: u X a_+ - u X a_-, no ReLU and no bias."""
    u = np.repeat([0.0, 1.0], task.groups)
    heads = respond(task, np.stack([u, u]), attention_scores(task, strength), 0.0).heads
    return heads[0] - heads[1]


def repaired(task: Mixture, strength: float, bias: float = 0.5) -> np.ndarray:
    """f on the population with the repaired neurons, ReLUs and bias as in equation (1)."""
    u, c = np.repeat([0.0, 1.0], task.groups), np.repeat([1.0, 0.0], task.groups)
    scale = bias / (2 * task.length)
    return respond(task, scale * np.stack([u - 2 * c, u]), attention_scores(task, strength), bias).f


def accuracy(task: Mixture, f: np.ndarray) -> float:
    """Share of the population on which f has the sign of the label."""
    samples = task.population()
    return float(samples.weight @ (samples.label * f > 0))
