"""Limit models that predict the measurements with no fitted constant. Time is scaled: tau = A t with A = s1^2
m m1.

All take attention as uniform, alpha as constant and the path through W as nothing. With n -> infinity three
numbers are left, G of the two targets and of the common word; with n samples that own their irrelevant words,
seven."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import minimize
from scipy.special import expit

SEVEN = ("x", "z", "r1", "r2", "r4", "c12", "c31")


def three_numbers(until: float = 100.0) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The limit of many samples: times, and G1 = G2, G3, their derivatives and the losses of the types along
    them."""

    def outputs(G):
        x, z = G
        return 2 * x + z, x + z, z  # F of types 1, 2 and 3, 4

    def velocity(_, G):
        one, two, four = outputs(G)
        right, single, none = expit(-one) / 2, expit(two) / 6, expit(four) / 6
        return [right - single, right - 2 * single - none]

    times = np.geomspace(1e-2, until, 400)
    x, z = solve_ivp(velocity, (0, until), [0, 0], t_eval=times, rtol=1e-9, atol=1e-12).y
    moving = np.array([velocity(0, G) for G in zip(x, z)]).T
    one, two, four = outputs((x, z))
    losses = {"1": np.logaddexp(0, -one), "2": np.logaddexp(0, two), "4": np.logaddexp(0, four)}
    return times, {
        "G1": x,
        "G3": z,
        "dG1": moving[0],
        "dG3": moving[1],
        "right": (one > 0) & (two < 0) & (four < 0),
    } | losses


def _seven_errors(y: np.ndarray) -> tuple[tuple, tuple]:
    """Outputs of types 1, 2 and 3, 4, and the errors of their samples."""
    x, z, r1, r2, r4 = y[:5]
    F = 2 * x + z + r1, x + z + r2, z + r4
    return F, (expit(-F[0]), expit(F[1]), expit(F[2]))


def _seven_velocity(y: np.ndarray, n: float, L: int) -> list[float]:
    x, z = y[:2]
    (F1, F2, _), (g1, g2, g4) = _seven_errors(y)
    return [
        g1 / 2 - g2 / 6,
        g1 / 2 - (2 * g2 + g4) / 6,
        (L - 3) * g1 / n,
        -(L - 2) * g2 / n,
        -(L - 1) * g4 / n,
        g1 * (x - F1 / L),
        g1 * (z - F1 / L) - g2 * (z - F2 / L) / 3,
    ]


def seven_number_path(samples: float, length: int, target_loss: float) -> tuple[np.ndarray, np.ndarray]:
    """Training with private random tokens, to the target loss: scaled times, and the seven numbers along
    them.

    x and z are G of a target and of the common word, r the sum over a type's own tokens, c the scores'
    changes in units of s0^2 sqrt(m) / (A L)."""

    def reached(_, y):
        (F1, F2, F4), _ = _seven_errors(y)
        return np.logaddexp(0, -F1) / 2 + np.logaddexp(0, F2) / 3 + np.logaddexp(0, F4) / 6 - target_loss

    reached.terminal = True
    found = solve_ivp(
        lambda _, y: _seven_velocity(y, samples, length),
        (0, 1e7),
        np.zeros(len(SEVEN)),
        events=reached,
        rtol=1e-9,
        atol=1e-12,
    )
    return found.t, found.y


def seven_numbers(samples: float, length: int, target_loss: float) -> dict[str, float]:
    """What the seven-number model expects of the flow at the target loss."""
    times, path = seven_number_path(samples, length, target_loss)
    end = path[:, -1]
    moving, (_, (g1, g2, _)) = _seven_velocity(end, samples, length), _seven_errors(end)
    return {
        "scaled_time": float(times[-1]),
        "balance": float(-moving[1] / moving[0]),
        "errors": float(g2 / 3 / g1),
        "c12": float(end[5]),
        "c31": float(end[6]),
    }


def margin_direction(samples: int, length: int) -> dict[str, float]:
    """The max-margin direction when every sequence owns its irrelevant words.

    Minimises 2 x^2 + z^2 + n1 r1^2/(L-3) + 2 n2 r2^2/(L-2) + n4 r4^2/(L-1) subject to 2x + z + r1 >= 1, -(x +
    z + r2) >= 1 and
    -(z + r4) >= 1. `balance` is -dG3/dG1 in that direction, `errors` the ratio of the summed errors of types
    2 and 1, and
    `slope` that of 1/loss in scaled time."""
    n1, n2 = samples / 2, samples / 6
    cost = np.array([2.0, 1.0, n1 / (length - 3), 2 * n2 / (length - 2), n2 / (length - 1)])
    rows = np.array([[2.0, 1, 1, 0, 0], [-1, -1, 0, -1, 0], [0, -1, 0, 0, -1]])
    found = minimize(
        lambda w: cost @ w**2,
        np.array([1.0, -1.5, 0.1, -0.1, -0.1]),
        jac=lambda w: 2 * cost * w,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda w: rows @ w - 1, "jac": lambda w: rows},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    x, z, r1, r2, _ = found.x
    # Own words collect their own sequence's errors only.
    errors1, errors2 = (r1 * n1 / (length - 3), -r2 * n2 / (length - 2))
    return {"balance": -z / x, "errors": errors2 / errors1, "slope": 1 / (cost @ found.x**2)}
