"""Verdicts by one rule: a claim holds if the 95 % interval lies wholly on the side it says, fails if wholly
on the other, and is inconclusive otherwise. Shares use Wilson's interval, medians the bootstrap, trends a
fitted slope.

A value that is not known, or only to lie beyond a bound (`bounds.censored`), is judged as the least and as
the largest that it may be: it may leave a claim open, never turn it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from stagewise.lab.judge.bounds import Bounds, censored, ends
from stagewise.lab.judge.verdict import (
    BROKEN,
    FAILS,
    HOLDS,
    INCONCLUSIVE,
    OUTCOMES,
    UNTESTED,
    Interval,
    Verdict,
    all_of,
    exactly,
    given,
    judged,
    undecided,
    untested,
)

__all__ = [
    "BROKEN",
    "FAILS",
    "HOLDS",
    "INCONCLUSIVE",
    "OUTCOMES",
    "UNTESTED",
    "Bounds",
    "Interval",
    "Verdict",
    "all_of",
    "censored",
    "difference_of_shares",
    "every_seed",
    "exactly",
    "median_interval",
    "median_over_seeds",
    "share_of_seeds",
    "slope",
    "undecided",
    "untested",
]
LEAST_SEEDS = 6  # for a bootstrap interval


def share_of_seeds(
    name: str, happened: Any, *, more_than: float = 0.5, less_than: float | None = None, missing: Any = False
) -> Verdict:
    """The share of seeds in which something happened, against one half unless said otherwise.

    `missing` marks seeds that have no value (they diverged): they count against the claim. Of a seed that is
    known within bounds only, such as `censored(time, above=budget) < 100`, it may have happened or not."""
    figure = _figure("share_of_seeds", happened)
    low, high = ends(happened) if isinstance(happened, Bounds) else 2 * (np.asarray(happened, bool),)
    low, high = (np.where(missing, less_than is not None, part > 0).ravel() for part in (low, high))
    seeds = low.size
    least, most = _wilson(low), _wilson(high)
    measured = Interval((least.value + most.value) / 2, least.low, most.high)
    figure |= {
        "values": _plain(low) if np.array_equal(low, high) else [_plain(low), _plain(high)],
        "given": {"more_than": more_than} if less_than is None else {"less_than": less_than},
    }
    bounds = (more_than, math.inf) if less_than is None else (-math.inf, less_than)
    verdict = judged(measured, seeds, *bounds, figure, name)
    if seeds < 2:
        return _too_few(verdict, 2)
    return _cut_off(verdict, int((low != high).sum()))


def every_seed(name: str, happened: Any) -> Verdict:
    """For what a statement says of all runs, or of nearly all: holds only if it happened in every seed, and
    they are enough for a share above one half. One seed that fails leaves it open; it fails if the share
    does."""
    verdict = share_of_seeds(name, happened)
    failed = int(np.size(happened) - np.sum(np.asarray(happened, bool)))
    figures = {name: dict(verdict.figures[name]) | {"rule": "every_seed", "given": {}}}
    if verdict.outcome == HOLDS and failed:
        return replace(
            verdict,
            outcome=INCONCLUSIVE,
            why=f"not in {failed} of {np.size(happened)} seeds",
            margin=0.0,
            decides="no number of seeds can make it hold, since some failed; it fails if most do",
            figures=figures,
        )
    return replace(verdict, figures=figures)


def difference_of_shares(name: str, first: Any, second: Any, *, more_than: float = 0.0) -> Verdict:
    """How much larger the share of one group's seeds is than another's, with Newcombe's interval, made of the
    two Wilson intervals."""
    one, other = (_wilson(np.asarray(group, bool).ravel()) for group in (first, second))
    p, q = one.value, other.value
    measured = Interval(
        float(p - q),
        float(p - q - np.hypot(p - one.low, other.high - q)),
        float(p - q + np.hypot(one.high - p, q - other.low)),
    )
    figure = {
        "rule": "difference_of_shares",
        "seeds": [_labels(first), _labels(second)],
        "values": [_plain(np.asarray(group, bool).ravel()) for group in (first, second)],
        "given": {"more_than": more_than},
    }
    return judged(measured, int(min(np.size(first), np.size(second))), more_than, math.inf, figure, name)


def median_over_seeds(
    name: str, values: Any, *, at_least: float = -math.inf, at_most: float = math.inf
) -> Verdict:
    """The median over seeds. A seed whose value is missing (it diverged, it never got there) may have any:
    the claim can hold only if it would with the worst, and fail only if it would with the best."""
    figure = _figure("median_over_seeds", values) | {"given": given(at_least, at_most)}
    low, high = (part.ravel() for part in ends(values))
    least, most = median_interval(low), median_interval(high)
    known = low == high
    middle = (
        least.value
        if least.value == most.value
        else float(np.median(low[known]))
        if known.any()
        else math.nan
    )
    measured = Interval(middle, least.low, most.high)
    figure["values"] = _plain(low) if np.array_equal(low, high) else [_plain(low), _plain(high)]
    verdict = judged(measured, int(low.size), at_least, at_most, figure, name)
    if low.size < LEAST_SEEDS:
        return _too_few(verdict, LEAST_SEEDS)
    return _cut_off(verdict, int((low != high).sum()))


def median_interval(values: np.ndarray, resamples: int = 2000) -> Interval:
    """Percentile bootstrap of the median, the same every time for the same values."""
    drawn = np.random.default_rng(0).integers(0, values.size, (resamples, values.size))
    with np.errstate(invalid="ignore"):
        medians = np.sort(np.median(values[drawn], axis=1))
        middle = float(np.median(values))
    return Interval(
        middle, float(medians[int(0.025 * resamples)]), float(medians[int(0.975 * resamples) - 1])
    )


def slope(name: str, x: Any, y: Any, *, at_least: float = -math.inf, at_most: float = math.inf) -> Verdict:
    """The slope of y on x by least squares, with its interval.

    `y` is one value for each x (a deterministic curve): the interval is that of the fit. Or it is an array
    (seed, x), where a seed's values may hang together: every seed is fitted, and the interval is that of the
    mean over seeds."""
    from scipy.stats import t

    labels = _labels(y) if np.ndim(y) == 2 else []
    x, y = np.asarray(x, float), np.asarray(y, float)
    seeds = len(y) if y.ndim == 2 else "exact"
    if not np.all(np.isfinite(y)):
        return Verdict(
            INCONCLUSIVE,
            {name: Interval(math.nan, -math.inf, math.inf)},
            seeds,
            "some points are missing",
            margin=0.0,
            decides="a larger budget: some points of the trend were not reached",
        )
    if y.ndim == 2:
        fits = np.array([_fit(x, row)[0] for row in y])
        middle, error, freedom = fits.mean(), fits.std(ddof=1) / np.sqrt(len(fits)), len(fits) - 1
    else:
        middle, error = _fit(x, y)
        freedom = len(x) - 2
    half = float(t.ppf(0.975, freedom) * error) if freedom > 0 else math.inf
    measured = Interval(float(middle), float(middle - half), float(middle + half))
    figure = {
        "rule": "slope",
        "seeds": labels,
        "values": [_plain(row) for row in y] if y.ndim == 2 else _plain(y),
        "x": _plain(x),
        "given": given(at_least, at_most),
    }
    verdict = judged(measured, len(y), at_least, at_most, figure, name)
    if seeds == "exact":
        more = "more points along the trend" if verdict.outcome == INCONCLUSIVE else ""
        return replace(verdict, seeds="exact", decides=more)
    return verdict


def _fit(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The slope of a straight line and its standard error; a constant has none, and scipy none to give."""
    from scipy.stats import linregress

    fit: Any = linregress(x, y)
    return fit.slope, 0.0 if np.ptp(y) == 0 else fit.stderr


def _wilson(happened: np.ndarray) -> Interval:
    from scipy.stats import binomtest

    found = binomtest(int(happened.sum()), happened.size).proportion_ci(0.95, "wilson")
    return Interval(float(happened.mean()), float(found.low), float(found.high))


def _too_few(verdict: Verdict, least: int) -> Verdict:
    margin = max(-0.99, min(0.99, verdict.margin or 0.0))
    return replace(
        verdict, outcome=INCONCLUSIVE, why="too few seeds", margin=margin, decides=f"at least {least} seeds"
    )


def _cut_off(verdict: Verdict, count: int) -> Verdict:
    """Say of an open verdict that values were cut off, if that is so: more seeds may not help."""
    if not count or verdict.outcome != INCONCLUSIVE:
        return verdict
    why = f"{count} of {verdict.seeds} seeds have no value: they were cut off, or diverged"
    return replace(verdict, why=why, decides=f"a larger budget or range: {why}")


def _figure(rule: str, values: Any) -> dict[str, Any]:
    return {"rule": rule, "seeds": _labels(values.low if isinstance(values, Bounds) else values)}


def _labels(values: Any) -> list[int]:
    """Which seeds the values are of: by their coordinate, or counted where they have none."""
    coords = getattr(values, "coords", {})
    if "seed" in coords and getattr(values, "ndim", 0) >= 1 and "seed" in values.dims:
        return [int(seed) for seed in values["seed"].values]
    return []


def _plain(values: np.ndarray) -> list[float]:
    """Numbers for a file, to six digits: those of another machine agree to no more."""
    return [float(f"{value:.6g}") for value in np.asarray(values, float).ravel()]
