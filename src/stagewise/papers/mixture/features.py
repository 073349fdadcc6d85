"""Attention features (equation 2): what a linear classifier on top of frozen attention gets to see."""

from __future__ import annotations

import numpy as np

from stagewise.lazy import xr
from stagewise.papers.mixture import recorded
from stagewise.papers.mixture.appendix_b import respond
from stagewise.probes.margin import maximum_margin


def signed_features(neurons: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """y F(X) of every sample: the attended tokens of the + head, minus those of the - head, and the bias, gated by ReLUs.

    Shape (..., sample, 2 * signals + 1)."""
    samples, seen = recorded.TWO_GROUPS.population(), respond(recorded.TWO_GROUPS, neurons, scores, recorded.BIAS)
    tokens = np.zeros((*samples.signal.shape, 4))
    np.put_along_axis(tokens, samples.signal[..., None], samples.sign[..., None], -1)
    gathered = np.einsum("...hnkq,nkd->...hnd", seen.attention, tokens) * seen.active[..., None]
    on = seen.active * recorded.BIAS
    parts = [gathered[..., 0, :, :], -gathered[..., 1, :, :], (on[..., 0, :] - on[..., 1, :])[..., None]]
    return np.concatenate(parts, -1) * samples.label[:, None]


def margins(trajectory: xr.Dataset, kind: str) -> np.ndarray:
    """Maximum margin of the features of a kind of sample, over the trajectory's leading dimensions."""
    return _margins(trajectory.neurons.values, trajectory.scores.values, kind)


def initial_margins(initial_scale: float, width: int, seeds: int, kind: str) -> np.ndarray:
    """The same at the start of training, of each seed."""
    from stagewise.papers.mixture import initial
    from stagewise.papers.mixture.experiments import JointTraining

    start = initial.gram(JointTraining(initial_scale=initial_scale, width=width), np.arange(seeds))
    return _margins(start["neurons"], start["gram"][..., :4, 4:], kind)


def _margins(neurons: np.ndarray, scores: np.ndarray, kind: str) -> np.ndarray:
    features = signed_features(neurons, scores)[..., recorded.TWO_GROUPS.kinds()[kind] > 0, :]
    flat = features.reshape(-1, *features.shape[-2:])
    return np.array([maximum_margin(one) for one in flat]).reshape(features.shape[:-2])
