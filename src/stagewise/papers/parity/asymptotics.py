"""Assumption 2 and Lemma 5 as arithmetic in log n: from which n on each inequality holds."""

from __future__ import annotations

from math import inf, log

import numpy as np

from stagewise.papers.parity.lemmas import FAILURE

SMALL = log(0.01)  # `tends to zero` is taken as `below 0.01`, as the proofs use it


def first_sizes(dimension_power: float = 1.1, epsilon: float = 1.0) -> dict[str, float]:
    """log10 of the first n from which on each inequality of Lemma 5 holds, at the worse end of the range of
    k; inf if it never does.

    All in logarithms: x = ln n goes up to 10^60."""
    x = np.geomspace(2, 1e60, 6000)
    held = [_inequalities(x, power, dimension_power, epsilon) for power in (4.0, 5.0)]
    return {name: _first(x, held[0][name] & held[1][name]) / log(10) for name in held[0]}


def _first(x: np.ndarray, holds: np.ndarray) -> float:
    """Where it begins to hold for good."""
    if not holds[-1]:
        return inf
    broken = np.flatnonzero(~holds)
    return float(x[broken[-1] + 1]) if len(broken) else float(x[0])


def _inequalities(
    x: np.ndarray, power: float, dimension_power: float, epsilon: float
) -> dict[str, np.ndarray]:
    """Logarithms are kept as (multiple of ln n, rest), for ln n is so large that the rest would be lost
    beside it."""
    L = np.log(x + log(1 / FAILURE))  # ln ln(n / delta)

    def of(multiple: float, rest) -> np.ndarray:
        return np.stack([np.full_like(x, multiple), rest + np.zeros_like(x)])

    def value(logarithm: np.ndarray) -> np.ndarray:
        return logarithm[0] * x + logarithm[1]

    def number(value: float) -> np.ndarray:
        return of(0, log(value))

    n, k = of(1, 0), of(1, -power * L)
    d, m = k + of(0, dimension_power * L), k + number(2)
    B = n + of(0, 20 * L) + number(1.28e7 / epsilon**2)
    eta0, eta2 = m + B / 2 + number(epsilon / 100) - of(0, L), k + number(4 * epsilon / 3)
    log_bmn, log_300mnb, log_300nb, log_400mn = (
        of(0, np.log(value(q)))
        for q in (
            B + m + n + number(1 / FAILURE),
            m + n + B + number(300 / FAILURE),
            n + B + number(300 / FAILURE),
            m + n + number(400 / FAILURE),
        )
    )
    return {
        "k_at_least_1": value(k) >= 0,
        "1_d_below_n": value(d - n) < 0,
        "1_B_below_nk": value(B - n - k) < 0,
        "2": value(number(2) + k - d + log_bmn) / 2 < SMALL,
        "3a": value(k + log_300mnb - B) / 2 < SMALL,
        "3b": value(number(2) + k + log_400mn - d) / 2 < SMALL,
        "3c": value(number(2) + n + k + log_300mnb - B - d) / 2 < SMALL,
        "4": (value(eta0 - number(3 * epsilon / 80) - m - B / 2 + log_300nb / 2) <= 0)
        & (value(eta0 - m - n - number(epsilon / 120)) <= 0),
        "5": value(2 * log_300mnb + n + (n + k) / 2 - d - (B + d) / 2) < SMALL,
        "6": value(2 * eta0 - number(256) - m - 2 * n) > np.log(40 * x),
        "7": value(eta2 - eta0) < SMALL,
        "8": value(number(2) + eta0 - number(5) - n - eta2) < 0,
    }
