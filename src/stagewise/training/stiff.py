"""Stages of a stiff flow: fast directions come to rest early, while slow ones go on for a very long time.
Scipy's LSODA follows the flow, lane by lane."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from stagewise.training.stages import EVENT, GAVE_UP, NOT_FINITE, TIME_RAN_OUT


class _TooLong(Exception):
    pass


def solve(motion, records: int, most: int, fixed, weights, constants, threshold: float, limit: float):
    """Solve one stage of one lane. Returns final weights, duration, outcome, number of evaluations, record
    times and records, in the order of `_solve` in `flow.py`.

    `most` bounds how often the velocity is evaluated. If `records` is 0, nothing is measured."""
    moves, samples, chosen, sign, (relative, absolute) = fixed
    start, unpack = ravel_pytree(weights)
    start = np.asarray(start)
    held, names = (constants, samples, moves), tuple(sorted(chosen))
    times, evaluated = [0.0], 0
    states: list[Any] = [start]

    def velocity(t, y):
        nonlocal evaluated
        evaluated += 1
        if evaluated > most:
            raise _TooLong
        return np.asarray(_velocity(motion, unpack, y, *held))

    def distance(t, y):
        watched = _watched(motion, unpack, y, constants)
        return sign * sum(chosen[name] * float(watched[name]) for name in names) - threshold

    outcome = TIME_RAN_OUT
    before = distance(0, start)
    if not np.isfinite(before):
        outcome = NOT_FINITE
    elif before >= 0:
        outcome = EVENT
    elif limit > 0:
        try:
            outcome = _follow(velocity, distance, times, states, limit, relative, absolute)
        except _TooLong:
            outcome = GAVE_UP
    picked = np.round(np.linspace(0, len(times) - 1, records)).astype(int)
    found = (
        jax.tree.map(np.asarray, _measure(motion, unpack, np.stack([states[i] for i in picked]), constants))
        if records
        else {}
    )
    final = jax.tree.map(np.asarray, unpack(states[-1]))
    return (
        final,
        np.float64(times[-1]),
        np.int64(outcome),
        np.int64(evaluated),
        np.array([times[i] for i in picked]),
        found,
    )


def _follow(
    velocity, distance, times: list, states: list, limit: float, relative: float, absolute: float
) -> int:
    """Solve step by step, and add each step to `times` and `states`, so that what was reached is kept however
    the solve ends. Returns the outcome."""
    from scipy.integrate import LSODA
    from scipy.optimize import brentq

    solver = LSODA(velocity, 0.0, states[0], limit, rtol=relative, atol=absolute)
    while solver.status == "running":
        failed = solver.step()
        if failed or not np.all(np.isfinite(solver.y)):
            return GAVE_UP if np.all(np.isfinite(solver.y)) else NOT_FINITE
        if distance(solver.t, solver.y) >= 0:
            between = solver.dense_output()
            end: Any = brentq(
                lambda t: distance(t, between(t)),
                solver.t_old,
                solver.t,
                xtol=1e-12 * max(solver.t, 1e-300),
                rtol=np.float64(1e-12),
            )
            times.append(float(end))
            states.append(between(end))
            return EVENT
        times.append(float(solver.t))
        states.append(solver.y.copy())
    return TIME_RAN_OUT


@partial(jax.jit, static_argnums=(0, 1))
def _velocity(motion, unpack, y, constants, samples, moves):
    weights = unpack(y)
    velocity = motion.velocity(weights, constants, samples)
    return ravel_pytree({name: moves[name] * velocity[name] for name in weights})[0]


@partial(jax.jit, static_argnums=(0, 1))
def _watched(motion, unpack, y, constants):
    return motion.watched(unpack(y), constants)


@partial(jax.jit, static_argnums=(0, 1))
def _measure(motion, unpack, y, constants):
    return jax.lax.map(lambda state: motion.measure(unpack(state), constants), y)
