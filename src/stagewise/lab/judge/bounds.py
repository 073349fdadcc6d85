"""Values that a budget or a ceiling cut off: bounds, which may leave a claim open but never turn it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Bounds:
    """Values that are known to lie between `low` and `high`; most are known, and both are the same.

    Arithmetic keeps the bounds: a time that lies above 6000, over one of 20, lies above 300."""

    __array_ufunc__ = None  # a plain array in front lets us do the arithmetic
    low: Any  # arrays of one shape, numpy's or xarray's
    high: Any

    @property
    def open(self) -> np.ndarray:
        """Which values are not known."""
        return ~(np.asarray(self.low, float) == np.asarray(self.high, float))

    def with_each(self, function: Callable[[Any], Any]) -> Bounds:
        """Both ends through a function that never falls: a selection, a logarithm, a mean over records."""
        return Bounds(function(self.low), function(self.high))

    def __neg__(self) -> Bounds:
        return Bounds(-self.high, -self.low)

    def __add__(self, other: Any) -> Bounds:
        return self._corners(other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> Bounds:
        return self._corners(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Bounds:
        return _as_bounds(other) - self

    def __mul__(self, other: Any) -> Bounds:
        return self._corners(other, lambda a, b: a * b)

    def __truediv__(self, other: Any) -> Bounds:
        return self._corners(other, lambda a, b: a / b)

    def __rtruediv__(self, other: Any) -> Bounds:
        return _as_bounds(other) / self

    __radd__, __rmul__ = __add__, __mul__

    def __abs__(self) -> Bounds:
        least = np.maximum(np.maximum(self.low, -self.high), 0)
        return Bounds(least, np.maximum(abs(self.low), abs(self.high)))

    def __lt__(self, other: Any) -> Bounds:
        """Surely, and possibly, below: 0 and 1 as bounds."""
        other = _as_bounds(other)
        return Bounds((self.high < other.low) * 1.0, (self.low < other.high) * 1.0)

    def __gt__(self, other: Any) -> Bounds:
        return _as_bounds(other) < self

    def _corners(self, other: Any, operation: Callable[[Any, Any], Any]) -> Bounds:
        """Of an operation that is monotone in each part, the least and the largest over all ends."""
        other = _as_bounds(other)
        with np.errstate(invalid="ignore", divide="ignore"):
            found = [operation(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        low, high = found[0], found[0]
        for each in found[1:]:
            low, high = np.fmin(low, each), np.fmax(high, each)
        return Bounds(low, high)


def censored(values: Any, *, above: Any = np.inf) -> Bounds:
    """Values as bounds: one that is missing (NaN), or as large as can be seen, lies above `above`.

    A time that never came within a budget of 6000 steps is `censored(time, above=6000)`; a length that was
    reached, of at most 160 tested, is `censored(reach, above=160)`."""
    values = values if hasattr(values, "dims") else np.asarray(values, float)
    cut = np.isnan(values) | (values >= above)
    if hasattr(values, "where"):
        return Bounds(values.where(~cut, above), values.where(~cut, np.inf))
    return Bounds(np.where(cut, above, values), np.where(cut, np.inf, values))


def ends(values: Any) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest that each value may be; of a missing one nothing is known."""
    if isinstance(values, Bounds):
        return np.asarray(values.low, float), np.asarray(values.high, float)
    plain = np.asarray(values, float)
    return np.where(np.isnan(plain), -np.inf, plain), np.where(np.isnan(plain), np.inf, plain)


def _as_bounds(value: Any) -> Bounds:
    return value if isinstance(value, Bounds) else Bounds(value, value)
