"""Verdicts: an outcome, the figures behind it, how far they lie from the threshold, and what would decide an
open one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

OUTCOMES = "holds", "fails", "inconclusive", "untested", "broken"
HOLDS, FAILS, INCONCLUSIVE, UNTESTED, BROKEN = OUTCOMES  # broken: a run or a judge that raised, not a result
MOST_MARGIN = 99.0  # half widths; an interval of no width is no nearer to certainty than that
MOST_DECADES = 16.0  # between an error and its threshold: double precision has no more digits
MANY_SEEDS = 10_000  # who would need more has an effect as large as its threshold


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
    """What was found of a claim.

    `margin` is how far the measured value lies from its threshold, positive on the claim's side: in half
    widths of its interval, so that 1 and more holds and -1 and less fails; for an exact check in decades
    between error and threshold. Of several conditions it is the least.

    `figures` are what the rules judged, by name: a rule, its thresholds, and a value for each seed. More
    seeds are added to them, and the rules applied again (`stagewise.lab.judge.evidence`)."""

    outcome: str
    measured: Mapping[str, Interval]
    seeds: int | str  # `exact` where nothing is random
    why: str = ""
    margin: float | None = None
    decides: str = ""  # of an open verdict: what would decide it
    figures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def also(self, **figures: float | Interval) -> Verdict:
        """The same verdict with further figures shown beside it."""
        shown = {
            name: value if isinstance(value, Interval) else Interval.exact(value)
            for name, value in figures.items()
        }
        return replace(self, measured=dict(self.measured) | shown)

    def left_open(self, why: str, decides: str) -> Verdict:
        """The same figures, but they decide nothing, for this reason; `decides` says what would."""
        return replace(self, outcome=INCONCLUSIVE, why=why, decides=decides, figures={})


def undecided(why: str, decides: str, seeds: int | str = 0) -> Verdict:
    """A verdict of nothing measured: why, and what would decide the claim."""
    return Verdict(INCONCLUSIVE, {}, seeds, why, decides=decides)


def untested(why: str, decides: str) -> Verdict:
    """A claim that cannot be run: why, and what it would take."""
    return Verdict(UNTESTED, {}, 0, why, decides=decides)


def all_of(*verdicts: Verdict) -> Verdict:
    """Several conditions at once: fails if one fails, holds if all hold."""
    outcomes = [verdict.outcome for verdict in verdicts]
    outcome = next((o for o in (UNTESTED, FAILS, INCONCLUSIVE) if o in outcomes), HOLDS)
    measured = {name: value for verdict in verdicts for name, value in verdict.measured.items()}
    figures = {name: value for verdict in verdicts for name, value in verdict.figures.items()}
    numbers = [verdict.seeds for verdict in verdicts if verdict.seeds != "exact"]
    margins = [verdict.margin for verdict in verdicts if verdict.margin is not None]
    return Verdict(
        outcome,
        measured,
        min(numbers) if numbers else "exact",
        "; ".join(verdict.why for verdict in verdicts if verdict.why),
        min(margins, default=None),
        "; ".join(dict.fromkeys(v.decides for v in verdicts if v.decides and outcome != HOLDS)),
        figures if all(verdict.figures for verdict in verdicts) else {},
    )


def exactly(name: str, value: float, *, at_least: float = -math.inf, at_most: float = math.inf) -> Verdict:
    """A deterministic check: an identity, a closed form, an infinite-width system."""
    value = float(value)
    return Verdict(
        HOLDS if at_least <= value <= at_most else FAILS,
        {name: Interval.exact(value)},
        "exact",
        margin=min(_decades(value, at_least), _decades(at_most, value)),
        figures={name: {"rule": "exactly", "values": value, "given": given(at_least, at_most)}},
    )


def judged(
    measured: Interval, seeds: int, at_least: float, at_most: float, figure: Mapping[str, Any], name: str
) -> Verdict:
    """By the one rule: holds if the interval lies wholly on the claim's side, fails if on the other."""
    outcome, margin = side(measured, at_least, at_most), margin_of(measured, at_least, at_most)
    low, high = {HOLDS: (1.0, MOST_MARGIN), FAILS: (-MOST_MARGIN, -1.0)}.get(outcome, (-1.0, 1.0))
    margin = min(max(margin, low), high)  # where an interval just touches its threshold
    decides = seeds_needed(seeds, margin) if outcome == INCONCLUSIVE else ""
    return Verdict(
        outcome, {name: measured}, seeds, margin=margin, decides=decides, figures={name: dict(figure)}
    )


def side(measured: Interval, at_least: float, at_most: float) -> str:
    if at_least <= measured.low and measured.high <= at_most:
        return HOLDS
    return FAILS if measured.high < at_least or measured.low > at_most else INCONCLUSIVE


def margin_of(measured: Interval, at_least: float, at_most: float) -> float:
    """How far a value lies from its nearest threshold, in half widths of its interval on that side."""
    above = _half_widths(
        measured.value - at_least, measured.value - measured.low, measured.high - measured.value
    )
    below = _half_widths(
        at_most - measured.value, measured.high - measured.value, measured.value - measured.low
    )
    return min(above, below)


def seeds_needed(seeds: int, margin: float) -> str:
    """How many seeds would decide an open verdict, if what was measured stays as it is: an interval narrows
    like the root of their number."""
    if abs(margin) * MANY_SEEDS**0.5 < seeds**0.5:
        return f"more than {MANY_SEEDS} seeds: what is measured lies on its threshold"
    return f"about {max(seeds + 1, math.ceil(seeds / margin**2))} seeds"


def given(at_least: float, at_most: float) -> dict[str, float]:
    """Thresholds by name, those that bound."""
    both = {"at_least": at_least, "at_most": at_most}
    return {name: float(value) for name, value in both.items() if math.isfinite(value)}


def _half_widths(distance: float, towards: float, away: float) -> float:
    """A distance from a threshold; positive ones are measured by the half of the interval towards it."""
    if math.isnan(distance):
        return 0.0
    half = towards if distance >= 0 else away
    if math.isinf(half):
        return 0.0 if math.isfinite(distance) else MOST_MARGIN
    if half <= 0:
        return 0.0 if distance == 0 else math.copysign(MOST_MARGIN, distance)
    return max(-MOST_MARGIN, min(MOST_MARGIN, distance / half))


def _decades(larger: float, smaller: float) -> float:
    """log10 of larger over smaller; where a sign or a zero allows none, as much as there can be."""
    if math.isnan(larger) or math.isnan(smaller):
        return -MOST_DECADES
    if larger > 0 and smaller > 0 and not (math.isinf(larger) or math.isinf(smaller)):
        return max(-MOST_DECADES, min(MOST_DECADES, math.log10(larger / smaller)))
    return MOST_DECADES if larger >= smaller else -MOST_DECADES
