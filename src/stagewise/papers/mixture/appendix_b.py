"""Appendix B in numpy: the model's response to every sample and its gradient flow, written out as the paper
does.

A second implementation beside `closed.py`, without automatic differentiation: claims that evaluate formulas
on recorded trajectories use it, and a test holds the two together. Leading dimensions (seed, record, …) are
kept."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stagewise.tasks.mixture import Mixture


class Response(NamedTuple):
    """What both heads do on every sample of the population."""

    attention: np.ndarray  # [..., head, sample, key, query]
    heads: np.ndarray  # [..., head, sample]: H_h(X)
    active: np.ndarray  # [..., head, sample]: whether H_h(X) + b > 0
    f: np.ndarray  # [..., sample]
    error: np.ndarray  # [..., sample]: g(X) = 1 / (1 + exp(y f(X)))


def respond(task: Mixture, neurons: np.ndarray, scores: np.ndarray, bias: float) -> Response:
    """Equation (1) on the whole population."""
    samples = task.population()
    signal, sign = samples.signal, samples.sign
    values = neurons[..., signal] * sign
    pairs = scores[..., signal[:, :, None], signal[:, None, :]] * (sign[:, :, None] * sign[:, None, :])
    raised = np.exp(pairs - pairs.max(-2, keepdims=True))
    attention = raised / raised.sum(-2, keepdims=True)
    heads = np.einsum("...kq,...k->...", attention, values)
    active = heads + bias > 0
    lifted = np.where(active, heads + bias, 0)
    f = lifted[..., 0, :] - lifted[..., 1, :]
    return Response(attention, heads, active, f, 1 / (1 + np.exp(samples.label * f)))


def velocity(
    task: Mixture, neurons, scores, key_self, query_self, bias: float, kind: str = "all"
) -> dict[str, np.ndarray]:
    """Gradient flow of neurons, scores and self-scores (B.1, B.2), in the expectation over a kind of
    sample."""
    samples, weight = task.population(), task.kinds()[kind]
    seen = respond(task, neurons, scores, bias)
    pulled = (weight * samples.label * seen.error)[..., None, :] * seen.active * np.array([[1.0], [-1.0]])
    values = neurons[..., samples.signal] * samples.sign
    mean = np.einsum("...kq,...k->...q", seen.attention, values)
    moved = seen.attention * (values[..., :, None] - mean[..., None, :]) * pulled[..., None, None]
    onto = np.zeros((*samples.signal.shape, neurons.shape[-1]))
    at = np.asarray(samples.signal)[..., None]
    np.put_along_axis(onto, at, np.asarray(samples.sign)[..., None], -1)  # the tokens themselves
    d_neurons = np.einsum("...nkq,...n,nkd->...d", seen.attention, pulled, onto)
    pull = np.einsum("nkd,...nkq,nqe->...de", onto, moved, onto)
    turned = np.swapaxes(pull, -1, -2)
    transposed = np.swapaxes(scores, -1, -2)
    return {
        "neurons": d_neurons,
        "scores": key_self @ pull + pull @ query_self,
        "key_self": scores @ turned + pull @ transposed,
        "query_self": transposed @ pull + turned @ scores,
    }
