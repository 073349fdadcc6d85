"""First crossings of recorded curves."""

import numpy as np
import xarray as xr

from stagewise.probes.crossing import first_above, first_below


def curves(*rows, steps=(0, 10, 20, 40)):
    return xr.DataArray(list(rows), dims=("seed", "record"), coords={"step": ("record", list(steps))})


def test_crossings_are_interpolated():
    found = first_above(curves([0.0, 1.0, 2.0, 3.0], [5.0, 5.0, 5.0, 5.0], [0.0, 0.0, 0.0, 1.0]), 0.5)
    np.testing.assert_allclose(found, [5.0, 0.0, 30.0])


def test_what_never_happens_is_nan():
    assert np.isnan(first_above(curves([0.0, 0.1, 0.2, 0.3]), 0.5)).all()
    assert np.isnan(first_below(curves([1.0, np.nan, np.nan, np.nan]), 0.5)).all()


def test_below_is_above_mirrored():
    falling = curves([3.0, 2.0, 1.0, 0.0])
    np.testing.assert_allclose(first_below(falling, 1.5), first_above(-falling, -1.5))


def test_times_may_differ_between_seeds():
    curve = curves([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0]).assign_coords(
        time=(("seed", "record"), [[0, 1, 2, 3], [0, 10, 20, 30]])
    )
    np.testing.assert_allclose(first_above(curve, 1.5, along="time"), [1.5, 15.0])
