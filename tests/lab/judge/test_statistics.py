"""The one rule for verdicts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagewise.lab.judge.statistics import (
    all_of,
    every_seed,
    exactly,
    median_interval,
    median_over_seeds,
    share_of_seeds,
    slope,
)


@pytest.mark.parametrize(
    "times, seeds, outcome",
    [
        (4, 4, "holds"),
        (3, 3, "inconclusive"),
        (0, 8, "fails"),
        (4, 8, "inconclusive"),
        (1, 1, "inconclusive"),
    ],
)
def test_shares(times, seeds, outcome):
    assert share_of_seeds("x", [True] * times + [False] * (seeds - times)).outcome == outcome


def test_medians_need_six_seeds():
    assert median_over_seeds("x", [5.0] * 5, at_least=1).outcome == "inconclusive"
    assert median_over_seeds("x", [5.0] * 6, at_least=1).outcome == "holds"
    assert median_over_seeds("x", [5.0] * 6, at_most=1).outcome == "fails"


def test_a_seed_without_a_value_counts_against_the_claim():
    values = [5.0] * 4 + [np.nan] * 4
    assert median_over_seeds("x", values, at_least=1).outcome != "holds"
    assert median_over_seeds("x", values, at_most=10).outcome != "holds"


def test_missing_seeds_count_against_either_side():
    nothing = np.full(8, np.nan)
    assert share_of_seeds("x", nothing < 0.05, less_than=0.5, missing=np.isnan(nothing)).outcome == "fails"
    assert share_of_seeds("x", nothing < 0.05, missing=np.isnan(nothing)).outcome == "fails"


@given(st.lists(st.floats(-100, 100), min_size=6, max_size=40))
@settings(max_examples=30, deadline=None)
def test_the_interval_holds_the_median(values):
    interval = median_interval(np.array(values))
    assert interval.low <= interval.value <= interval.high


def test_slopes_recover_a_line_and_its_noise():
    x, noise = np.arange(10.0), np.random.default_rng(0).normal(size=(8, 10))
    assert slope("b", x, 2 * x, at_least=1.9, at_most=2.1).outcome == "holds"
    assert slope("b", x, 2 * x + noise, at_least=1.8, at_most=2.2).outcome == "holds"
    assert slope("b", x, 0 * x + noise, at_least=1).outcome == "fails"
    assert slope("b", x, np.where(x == 3, np.nan, x), at_least=0).outcome == "inconclusive"


def test_several_conditions():
    good, bad = exactly("a", 1, at_least=0), exactly("b", 1, at_most=0)
    assert all_of(good, good).outcome == "holds" and all_of(good, bad).outcome == "fails"
    unsure = share_of_seeds("c", [True, False])
    assert all_of(good, unsure).outcome == "inconclusive" and all_of(unsure, bad).outcome == "fails"
    assert all_of(good, unsure).seeds == 2


def test_difference_of_shares_is_newcombes():
    from stagewise.lab.judge.statistics import difference_of_shares

    measured = difference_of_shares("d", [True] * 56 + [False] * 14, [True] * 48 + [False] * 32).measured["d"]
    # Newcombe 1998, example (a), method 10.
    assert np.allclose([measured.value, measured.low, measured.high], [0.2, 0.0524, 0.3339], atol=5e-4)
    assert difference_of_shares("d", [True] * 20, [False] * 20).outcome == "holds"
    assert difference_of_shares("d", [False] * 20, [False] * 20).outcome == "inconclusive"


def test_what_is_said_of_every_seed_is_open_after_one_failure():
    assert every_seed("x", np.ones(5, bool)).outcome == "holds"
    one_failed = every_seed("x", np.arange(20) > 0)
    assert one_failed.outcome == "inconclusive" and "1 of 20" in one_failed.why
    assert every_seed("x", np.arange(20) > 15).outcome == "fails"


@given(st.lists(st.floats(-3, 3), min_size=6, max_size=30), st.floats(-2, 2))
@settings(max_examples=60, deadline=None)
def test_a_margin_of_one_decides(values, threshold):
    for bound in ({"at_least": threshold}, {"at_most": threshold}):
        verdict = median_over_seeds("x", values, **bound)
        sides = {"holds": verdict.margin >= 1, "fails": verdict.margin <= -1}
        assert sides.get(verdict.outcome, abs(verdict.margin) <= 1 + 1e-9), verdict


def test_margins_are_in_half_widths_and_in_decades():
    noise = np.random.default_rng(0).normal(10, 1, 50)
    near, far = (median_over_seeds("x", noise, at_least=least) for least in (9, 5))
    assert near.margin > 1 and far.margin == pytest.approx(
        (far.measured["x"].value - 5) / (far.measured["x"].value - far.measured["x"].low)
    )
    assert exactly("x", 1e-15, at_most=1e-12).margin == pytest.approx(3)
    assert exactly("x", 1e-9, at_most=1e-12).margin == pytest.approx(-3)
    assert exactly("x", 0.0, at_most=0.0).margin == 16 and exactly("x", 2, at_least=0.2).margin == 1
    assert all_of(exactly("a", 1e-15, at_most=1e-12), exactly("b", 1, at_least=0.1)).margin == 1


def test_an_open_verdict_says_how_many_seeds_would_decide_it():
    half = share_of_seeds("x", [True] * 6 + [False] * 4)
    needed = int(half.decides.split()[1])
    decided = share_of_seeds("x", [True] * int(0.6 * needed) + [False] * int(0.4 * needed))
    assert half.outcome == "inconclusive" and decided.margin == pytest.approx(1, rel=0.15)
    assert "at least 6 seeds" == median_over_seeds("x", [5.0] * 4, at_least=1).decides
    assert "on its threshold" in share_of_seeds("x", [True, False] * 8).decides
