"""Attention features (equation 2): what a linear classifier on top of frozen attention gets to see."""

from __future__ import annotations

import numpy as np

from stagewise.lazy import xr
from stagewise.papers.mixture.appendix_b import respond
from stagewise.papers.mixture.readings import TWO_GROUPS, setting
from stagewise.probes.margin import maximum_margin


def signed_features(neurons: np.ndarray, scores: np.ndarray, bias: float) -> np.ndarray:
    """y F(X) of every sample: the attended tokens of the + head, minus those of the - head, and the bias,
    gated by ReLUs.

    Shape (..., sample, 2 * signals + 1)."""
    samples, seen = TWO_GROUPS.population(), respond(TWO_GROUPS, neurons, scores, bias)
    tokens = np.zeros((*samples.signal.shape, 4))
    at = np.asarray(samples.signal)[..., None]
    np.put_along_axis(tokens, at, np.asarray(samples.sign)[..., None], -1)
    gathered = np.einsum("...hnkq,nkd->...hnd", seen.attention, tokens) * seen.active[..., None]
    on = seen.active * bias
    parts = [gathered[..., 0, :, :], -gathered[..., 1, :, :], (on[..., 0, :] - on[..., 1, :])[..., None]]
    return np.concatenate(parts, -1) * samples.label[:, None]


def margins(trajectory: xr.Dataset, kind: str) -> xr.DataArray:
    """Maximum margin of the features of a kind of sample, at every record of every seed."""
    neurons = trajectory.neurons.transpose(..., "head", "signal")
    scores = trajectory.scores.transpose(..., "head", "key", "query")
    features = signed_features(neurons.values, scores.values, setting(trajectory, "bias"))[
        ..., TWO_GROUPS.kinds()[kind] > 0, :
    ]
    flat = features.reshape(-1, *features.shape[-2:])
    found = np.array([maximum_margin(one) for one in flat]).reshape(features.shape[:-2])
    return neurons.isel(head=0, signal=0, drop=True).copy(data=found)
