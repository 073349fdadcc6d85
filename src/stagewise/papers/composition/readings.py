"""What claims and figures read off trajectories."""

from __future__ import annotations

import numpy as np

from stagewise.lazy import xr


def least_sizes(runs: xr.Dataset, axis: str, stage: str) -> np.ndarray:
    """[seed, axis]: the size from which on every query looks at the right key; NaN if none is enough."""
    right = runs.right.isel(record=0).sel(stage=stage).transpose("seed", axis, "size").values >= 1
    sizes = np.append(runs["size"].values, np.nan)
    wrong = np.where(~right, np.arange(right.shape[-1]) + 1, 0).max(-1)
    return sizes[wrong]


def first_record_at(accuracy: xr.DataArray, level: float) -> np.ndarray:
    """[seed, hops]: the record at which an accuracy is first reached; after the last if never."""
    reached = accuracy.transpose("seed", "hops", "record").values >= level
    return np.where(reached.any(-1), reached.argmax(-1), reached.shape[-1])
