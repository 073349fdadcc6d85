"""Verdicts by one rule: a claim holds if the 95 % interval lies wholly on the side it says, fails if wholly
on the other, and is inconclusive otherwise. Shares use Wilson's interval, medians the bootstrap, trends a
fitted slope."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

OUTCOMES = "holds", "fails", "inconclusive", "untested", "broken"
HOLDS, FAILS, INCONCLUSIVE, UNTESTED, BROKEN = OUTCOMES  # broken: a run or a judge that raised, not a result
LEAST_SEEDS = 6  # for a bootstrap interval


@dataclass(frozen=True)
class Interval:
    """A measured value with its 95 % interval; for an exact check all three are the same."""

    value: float
    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> Interval:
        return cls(float(value), float(value), float(value))


@dataclass(frozen=True)
class Verdict:
    """An outcome, the figures behind it, and over how many seeds (or `exact`)."""

    outcome: str
    measured: Mapping[str, Interval]
    seeds: int | str
    why: str = ""

    def also(self, **figures: float | Interval) -> Verdict:
        """The same verdict with further figures shown beside it."""
        shown = {
            name: value if isinstance(value, Interval) else Interval.exact(value)
            for name, value in figures.items()
        }
        return Verdict(self.outcome, dict(self.measured) | shown, self.seeds, self.why)


def all_of(*verdicts: Verdict) -> Verdict:
    """Several conditions at once: fails if one fails, holds if all hold."""
    outcomes = [verdict.outcome for verdict in verdicts]
    outcome = next((o for o in (UNTESTED, FAILS, INCONCLUSIVE) if o in outcomes), HOLDS)
    measured = {name: value for verdict in verdicts for name, value in verdict.measured.items()}
    numbers = [verdict.seeds for verdict in verdicts if verdict.seeds != "exact"]
    why = "; ".join(verdict.why for verdict in verdicts if verdict.why)
    return Verdict(outcome, measured, min(numbers) if numbers else "exact", why)


def exactly(name: str, value: float, *, at_least: float = -math.inf, at_most: float = math.inf) -> Verdict:
    """A deterministic check: an identity, a closed form, an infinite-width system."""
    value = float(value)
    return Verdict(HOLDS if at_least <= value <= at_most else FAILS, {name: Interval.exact(value)}, "exact")


def share_of_seeds(
    name: str, happened: Any, *, more_than: float = 0.5, less_than: float | None = None, missing: Any = False
) -> Verdict:
    """The share of seeds in which something happened, against one half unless said otherwise.

    `missing` marks seeds that have no value (they diverged): they count against the claim."""
    from scipy.stats import binomtest

    happened = np.where(missing, less_than is not None, np.asarray(happened, bool))
    seeds, times = happened.size, int(happened.sum())
    wilson = binomtest(times, seeds).proportion_ci(0.95, "wilson")
    measured = Interval(times / seeds, float(wilson.low), float(wilson.high))
    if less_than is None:
        outcome = _side(measured, more_than, math.inf)
    else:
        outcome = _side(measured, -math.inf, less_than)
    return Verdict(outcome if seeds > 1 else INCONCLUSIVE, {name: measured}, seeds)


def every_seed(name: str, happened: Any) -> Verdict:
    """For what a statement says of all runs, or of nearly all: holds only if it happened in every seed, and
    they are enough for a share above one half. One seed that fails leaves it open; it fails if the share
    does."""
    verdict = share_of_seeds(name, happened)
    failed = int(np.size(happened) - np.sum(happened))
    open = verdict.outcome == HOLDS and failed
    return (
        Verdict(
            INCONCLUSIVE, verdict.measured, verdict.seeds, f"not in {failed} of {np.size(happened)} seeds"
        )
        if open
        else verdict
    )


def difference_of_shares(name: str, first: Any, second: Any, *, more_than: float = 0.0) -> Verdict:
    """How much larger the share of one group's seeds is than another's, with Newcombe's interval, made of the
    two Wilson intervals."""
    from scipy.stats import binomtest

    shares = []
    for group in (np.asarray(first, bool), np.asarray(second, bool)):
        wilson = binomtest(int(group.sum()), group.size).proportion_ci(0.95, "wilson")
        shares.append((group.mean(), wilson.low, wilson.high))
    (p, low, high), (q, lower, higher) = shares
    measured = Interval(
        float(p - q),
        float(p - q - np.hypot(p - low, higher - q)),
        float(p - q + np.hypot(high - p, q - lower)),
    )
    return Verdict(
        _side(measured, more_than, math.inf), {name: measured}, int(min(np.size(first), np.size(second)))
    )


def median_over_seeds(
    name: str, values: Any, *, at_least: float = -math.inf, at_most: float = math.inf
) -> Verdict:
    """The median over seeds. A seed that has no value (it diverged, it never got there) counts against the
    claim."""
    values = np.asarray(values, float).ravel()
    worst = math.inf if at_most < math.inf else -math.inf
    values = np.where(np.isnan(values), worst, values)
    measured = median_interval(values)
    outcome = _side(measured, at_least, at_most)
    if values.size < LEAST_SEEDS:
        outcome = INCONCLUSIVE
    return Verdict(
        outcome, {name: measured}, int(values.size), "" if values.size >= LEAST_SEEDS else "too few seeds"
    )


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

    x, y = np.asarray(x, float), np.asarray(y, float)
    seeds = len(y) if y.ndim == 2 else "exact"
    if not np.all(np.isfinite(y)):
        return Verdict(
            INCONCLUSIVE, {name: Interval(math.nan, -math.inf, math.inf)}, seeds, "some points are missing"
        )
    if y.ndim == 2:
        fits = np.array([_fit(x, row)[0] for row in y])
        middle, error, freedom = fits.mean(), fits.std(ddof=1) / np.sqrt(len(fits)), len(fits) - 1
    else:
        middle, error = _fit(x, y)
        freedom = len(x) - 2
    half = float(t.ppf(0.975, freedom) * error) if freedom > 0 else math.inf
    measured = Interval(float(middle), float(middle - half), float(middle + half))
    return Verdict(_side(measured, at_least, at_most), {name: measured}, seeds)


def _fit(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The slope of a straight line and its standard error; a constant has none, and scipy none to give."""
    from scipy.stats import linregress

    fit: Any = linregress(x, y)
    return fit.slope, 0.0 if np.ptp(y) == 0 else fit.stderr


def _side(measured: Interval, at_least: float, at_most: float) -> str:
    if at_least <= measured.low and measured.high <= at_most:
        return HOLDS
    return FAILS if measured.high < at_least or measured.low > at_most else INCONCLUSIVE
