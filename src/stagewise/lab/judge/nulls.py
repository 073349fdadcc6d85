"""Nulls: data on which a claim must not hold, made without training, to see how often its judge is fooled.

A null takes what a claim's judge is given and a random generator, and gives back something of the same shape
that says nothing for the claim: labels shuffled within every seed, seeds of an arm on which the claim is
false, a formula with a random factor. A judge at the 95 % level may call one in twenty `holds`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stagewise.lab.judge.verdict import BROKEN, HOLDS, Interval
from stagewise.lazy import xr

ALLOWED = 0.05  # share of false `holds` that a 95 % interval has by itself
TRIALS = 100
Needs = dict[str, Any]


@dataclass(frozen=True)
class Null:
    """What it is, in words, and how it is made. `needs` are further runs to draw from, plans or studies."""

    what: str
    make: Callable[[Needs, Mapping[str, Any], np.random.Generator], Needs]
    needs: Mapping[str, Any]


@dataclass(frozen=True)
class Calibration:
    """How often a judge said `holds` on its null."""

    what: str
    holds: int
    trials: int

    @property
    def share(self) -> Interval:
        from scipy.stats import binomtest

        found = binomtest(self.holds, self.trials).proportion_ci(0.95, "wilson")
        return Interval(self.holds / self.trials, float(found.low), float(found.high))

    @property
    def defect(self) -> str:
        """What is wrong, if the judge is surely fooled more often than its level allows."""
        if self.share.low <= ALLOWED:
            return ""
        return f"holds on {self.holds} of {self.trials} nulls ({self.what})"

    def to_json(self) -> dict[str, Any]:
        return {"what": self.what, "holds": self.holds, "of": self.trials}


def calibrated(
    judge: Callable[..., Any], null: Null, given: Needs, arms: Mapping[str, Any], trials: int = TRIALS
) -> Calibration:
    """Put a judge to its null, so many times; the same generator for all machines."""
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):  # of what is nonsense by intent
        outcomes = [_outcome(judge, null.make(dict(given), arms, rng)) for _ in range(trials)]
    return Calibration(null.what, outcomes.count(HOLDS), trials)


def _outcome(judge: Callable[..., Any], given: Needs) -> str:
    """The outcome on a null. A judge may break on data that make no sense; then it was not fooled."""
    try:
        return judge(**given).outcome
    except (ArithmeticError, ValueError, IndexError):
        return BROKEN


def shuffled(need: str, *along: str, what: str = "") -> Null:
    """The labels along some dimensions dealt out anew in every seed: what was measured stays, and of what is
    chance. Labels along several dimensions are shuffled as one."""

    def make(given: Needs, arms: Mapping[str, Any], rng: np.random.Generator) -> Needs:
        data = given[need]
        seeds = range(data.sizes.get("seed", 1))
        parts = [_shuffled(data.isel(seed=[i]) if "seed" in data.dims else data, along, rng) for i in seeds]
        return given | {need: xr.concat(parts, "seed") if "seed" in data.dims else parts[0]}

    told = what or f"labels along {' and '.join(along)} shuffled in every seed"
    return Null(told, make, {})


def scrambled(*needs: str, what: str = "") -> Null:
    """All that was recorded dealt out anew in every seed, over times and labels: the same numbers, and no
    order in them."""

    def make(given: Needs, arms: Mapping[str, Any], rng: np.random.Generator) -> Needs:
        return given | {need: _scrambled(given[need], rng) for need in needs}

    return Null(what or "all recorded numbers shuffled over times and labels, in every seed", make, {})


def _scrambled(data: Any, rng: np.random.Generator) -> Any:
    def one(values: Any) -> Any:
        if not np.issubdtype(values.dtype, np.floating):
            return values
        ordered = values.transpose("seed", ...) if "seed" in values.dims else values.expand_dims("seed")
        rows = ordered.values.reshape(ordered.sizes["seed"], -1)
        mixed = rng.permuted(rows, axis=1).reshape(ordered.shape)
        found = ordered.copy(data=mixed)
        return found if "seed" in values.dims else found.isel(seed=0)

    return data.map(one, keep_attrs=True)


def _shuffled(data: Any, along: tuple[str, ...], rng: np.random.Generator) -> Any:
    for dim in along:
        order = rng.permutation(data.sizes[dim])
        moved = data.isel({dim: order})
        data = moved.assign_coords({name: data[name] for name in data.coords if dim in data[name].dims})
    return data


def from_arm(need: str, arm: Any, what: str) -> Null:
    """Seeds drawn with replacement from an arm on which the claim is false: untrained weights for something
    that is learned, an arm that learns for something that stays stuck."""

    def make(given: Needs, arms: Mapping[str, Any], rng: np.random.Generator) -> Needs:
        data = arms[need]
        chosen = rng.integers(0, data.sizes["seed"], given[need].sizes["seed"])
        return given | {need: data.isel(seed=chosen)}

    return Null(what, make, {need: arm})


def perturbed(need: str, by: float = 0.1, what: str = "") -> Null:
    """A number of a formula, or all that was recorded, off by a random factor: an identity must notice.

    The factor is exp(u) with u uniform in +-`by`, other than 1 by at least a tenth of that."""

    def make(given: Needs, arms: Mapping[str, Any], rng: np.random.Generator) -> Needs:
        value = given[need]
        if isinstance(value, (int, float)):
            return given | {need: value * float(_factors(rng, by, ()))}
        return given | {need: _off(value, by, rng)}

    return Null(what or f"{need} off by a random factor of up to {by:.0%}", make, {})


def _off(data: Any, by: float, rng: np.random.Generator) -> Any:
    return data.map(
        lambda values: (
            values * _factors(rng, by, values.shape) if np.issubdtype(values.dtype, np.floating) else values
        ),
        keep_attrs=True,
    )


def _factors(rng: np.random.Generator, by: float, shape: tuple[int, ...]) -> np.ndarray:
    return np.exp(rng.choice([-1.0, 1.0], shape) * rng.uniform(by / 10, by, shape))


def replaced(what: str, **draw: Callable[[np.random.Generator], Any]) -> Null:
    """Some needs drawn at random: another constant, another set of labels."""

    def make(given: Needs, arms: Mapping[str, Any], rng: np.random.Generator) -> Needs:
        return given | {name: one(rng) for name, one in draw.items()}

    return Null(what, make, {})
