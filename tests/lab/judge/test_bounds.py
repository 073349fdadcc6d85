"""What a budget or a ceiling cuts off is a bound: it may leave a claim open, never turn it."""

import numpy as np
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from stagewise.lab.judge.bounds import Bounds, censored
from stagewise.lab.judge.statistics import median_over_seeds, share_of_seeds


def test_a_time_that_never_came_lies_above_the_budget():
    late, early = censored([np.nan] * 8, above=6000), np.full(8, 20.0)
    assert median_over_seeds("ratio", late / early, at_least=10).outcome == "holds"
    assert median_over_seeds("ratio", late / early, at_least=1000).outcome == "inconclusive"
    assert median_over_seeds("ratio", late / early, at_most=10).outcome == "fails"
    assert median_over_seeds("ratio", early / late, at_most=0.1).outcome == "holds"
    open_one = median_over_seeds("ratio", late / early, at_least=1000)
    assert "8 of 8" in open_one.why and "larger budget" in open_one.decides


def test_a_length_at_its_ceiling_is_no_length():
    reach = censored(xr.DataArray([160.0] * 15 + [80.0], dims="seed"), above=160)
    assert reach.open.tolist() == [True] * 15 + [False]
    assert median_over_seeds("reach", reach, at_most=170).outcome == "inconclusive"
    assert median_over_seeds("reach", reach, at_least=150).outcome == "holds"


def test_nothing_known_decides_nothing():
    for bound in ({"at_least": 1}, {"at_most": 1}):
        assert median_over_seeds("x", [np.nan] * 8, **bound).outcome == "inconclusive"
        assert median_over_seeds("x", [5.0, 0.1] * 4 + [np.nan] * 8, **bound).outcome == "inconclusive"


def test_a_share_of_what_may_have_happened():
    times = censored([100.0] * 6 + [np.nan] * 2, above=1000)
    assert share_of_seeds("early", times < 500).outcome == share_of_seeds("x", [1] * 6 + [0] * 2).outcome
    assert share_of_seeds("by 2000", censored([np.nan] * 8, above=1000) < 2000).outcome == "inconclusive"


@given(st.lists(st.tuples(st.floats(0.1, 99), st.floats(0, 9), st.floats(0, 1)), min_size=1, max_size=9))
@settings(max_examples=60, deadline=None)
def test_arithmetic_keeps_what_is_true_between_the_bounds(drawn):
    low, width, share = (np.array(part) for part in zip(*drawn))
    known, true = Bounds(low, low + width), low + share * width
    for found, truth in (
        (known + 3, true + 3),
        (7 - known, 7 - true),
        (known * 2, true * 2),
        (known / (known + 1), true / (true + 1)),
        (5 / known, 5 / true),
        (-known, -true),
        (abs(known - 5), abs(true - 5)),
        (known.with_each(np.log), np.log(true)),
    ):
        assert np.all(found.low <= truth + 1e-9) and np.all(truth <= found.high + 1e-9)


def test_a_plain_array_in_front_is_no_obstacle():
    found = np.array([6.0, 8.0]) / Bounds(np.array([1.0, 2.0]), np.array([2.0, 2.0]))
    assert found.low.tolist() == [3.0, 4.0] and found.high.tolist() == [6.0, 4.0]
    assert found.open.tolist() == [True, False]
