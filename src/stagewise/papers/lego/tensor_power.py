"""Tensor power sequences: whoever is a little ahead wins all (Lemmas B.12 and B.13, Corollary B.1)."""

from __future__ import annotations

import numpy as np


def race(
    power: int, ahead: float, behind: float, head_start: float, goal: float, rate: float, noise: float = 0.0
) -> tuple[float, float]:
    """x grows by rate E(xi + x)^(q-1), y by `head_start` times that of its own, until x reaches the goal: the
    time, in units of the rate, and y then.

    The rate is taken relative to x's own growth, so that every step moves x by the share `rate`; this is the
    flow for a small one."""
    x, y, time = ahead, behind, 0.0
    nodes, weights = np.polynomial.hermite_e.hermegauss(power // 2 + 1)
    weights = weights / weights.sum()

    def grown(value):
        return float(weights @ (noise * nodes + value) ** (power - 1)) if noise else value ** (power - 1)

    while x < goal and y < 10 * goal:  # or y ran away, and is lost sight of
        step = rate * x / grown(x)
        x, y, time = x + step * grown(x), y + step * head_start * grown(y), time + step
    return time, y


def hitting_time(power: int, start: float, goal: float) -> float:
    """Of the flow x' = x^(q-1): (x0^-(q-2) - A^-(q-2)) / (q - 2), which tends to 1 / ((q-2) x0^(q-2))."""
    return (start ** -(power - 2) - goal ** -(power - 2)) / (power - 2)


def loser(power: int, ahead: float, behind: float, head_start: float, goal: float) -> float:
    """y when x reaches the goal, in the flow: y0 (1 - S (y0/x0)^(q-2) (1 - (x0/A)^(q-2)))^(-1/(q-2));
    infinite if y got there first."""
    left = 1 - head_start * (behind / ahead) ** (power - 2) * (1 - (ahead / goal) ** (power - 2))
    return behind * left ** (-1 / (power - 2)) if left > 0 else np.inf
