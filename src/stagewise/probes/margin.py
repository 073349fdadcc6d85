"""Maximum margin: how well a set of signed features can be separated through the origin."""

from __future__ import annotations

import numpy as np


def maximum_margin(features: np.ndarray, tolerance: float = 1e-13) -> float:
    """Return max over unit u of min over rows z of u.z: the distance from the origin to the convex hull of
    the rows.

    Rows are label times feature. Zero means that they cannot be separated. Small values mislead: near the
    square root of the rounding error, below about 1e-7, a margin cannot be told from none. The problem is
    solved exactly, as a least-distance problem by non-negative least squares (Lawson and Hanson)."""
    from scipy.optimize import nnls

    system = np.vstack([features.T, np.ones(len(features))])
    target = np.zeros(len(system))
    target[-1] = 1
    shares, residual = nnls(system, target)
    if residual < tolerance or shares.sum() == 0:
        return 0.0
    return float(np.linalg.norm(features.T @ (shares / shares.sum())))
