"""The limit models against what is known of them, and T_0.5 and its like against curves made by hand."""

import numpy as np
import pytest
import xarray as xr

from stagewise.papers.cooccurrence.limits import (
    margin_direction,
    seven_number_path,
    seven_numbers,
    three_numbers,
)
from stagewise.papers.cooccurrence.readings import after_which


def test_three_numbers_do_what_the_reading_says():
    times, path = three_numbers(until=100.0)
    assert path["2"].max() == pytest.approx(0.8026, abs=2e-4)
    assert times[path["2"].argmax()] == pytest.approx(3.54, rel=0.03)
    assert times[np.argmax(-path["dG3"] > path["dG1"])] == pytest.approx(3.7, rel=0.04)
    assert times[np.argmax(path["right"])] == pytest.approx(13.66, rel=0.05)


def test_many_samples_have_the_max_margin_direction_of_three_features():
    said = margin_direction(10**7, 5)
    assert said["balance"] == pytest.approx(3 / 2, rel=1e-3) and said["errors"] == pytest.approx(
        5 / 7, rel=1e-3
    )
    assert said["slope"] == pytest.approx(1 / 17, rel=1e-3)


def test_seven_numbers_tend_to_the_three_and_to_the_max_margin_direction():
    times, path = seven_number_path(1e9, 5, 0.02)
    many, three = three_numbers(times[-1])
    np.testing.assert_allclose(np.interp(times[5:], many, three["G1"]), path[0][5:], atol=0.01)
    said = seven_numbers(60, 5, 1e-3)
    direction = margin_direction(60, 5)
    assert said["balance"] == pytest.approx(direction["balance"], rel=0.01)
    assert said["errors"] == pytest.approx(direction["errors"], rel=0.01)


def test_the_time_after_which_a_curve_stays_positive():
    time = xr.DataArray([[0.0, 1, 2, 3]] * 4, dims=("seed", "record"))
    curve = xr.DataArray(
        [[-1.0, 1, -1, 3], [1, 1, 1, 1], [1, 1, 1, -1], [-1, -1, 1, 1]], dims=("seed", "record")
    )
    np.testing.assert_allclose(after_which(curve, time), [2.25, 0, np.nan, 1.5])
