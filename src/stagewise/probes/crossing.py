"""When something happened: first crossings of recorded curves."""

from __future__ import annotations

import numpy as np

from stagewise.lazy import xr


def first_below(curve: xr.DataArray, threshold: float, along: str = "step") -> xr.DataArray:
    """Return where a recorded curve first goes below a threshold; NaN if it never does. Between two records
    the curve is taken as a straight line.

    It misleads where a curve dips and comes back between two records: record densely where that may
    happen."""
    return _first(-curve, -threshold, along)


def first_above(curve: xr.DataArray, threshold: float, along: str = "step") -> xr.DataArray:
    """Return where a recorded curve first goes above a threshold; NaN if it never does. Between two records
    the curve is taken as a straight line."""
    return _first(curve, threshold, along)


def _first(curve: xr.DataArray, threshold: float, along: str) -> xr.DataArray:
    position = curve[along].astype(float)

    def one(values: np.ndarray, at: np.ndarray) -> float:
        above = values > threshold
        if not above.any():
            return np.nan
        i = int(np.argmax(above))
        if i == 0:
            return float(at[0])
        share = (threshold - values[i - 1]) / (values[i] - values[i - 1])
        return float(at[i - 1] + share * (at[i] - at[i - 1]))

    return xr.apply_ufunc(one, curve, position, input_core_dims=[["record"], ["record"]], vectorize=True)
