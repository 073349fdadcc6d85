"""The exact closed system: inner products of weights instead of weights.

The loss is a function of two objects: G (what each word adds to the output, a^T W W_V mu) and S (the scores
W_K^T W_Q, row key and column query). With b = -dLoss/dG and M = -dLoss/dS the gradients of the weights are
products with b and M (Appendix B), and the inner products G, alpha = |W^T a|^2, S, C_V, C_K, C_Q move on
their own, whatever m and m1 (Appendix C, contracted with a):

    dG = alpha b + m1 C_V b      d alpha = 2 m1 G.b         dC_V = b G^T + G b^T
    dS = M C_Q + C_K M           dC_K = M S^T + S M^T        dC_Q = M^T S + S^T M

Gradient descent adds the terms of second order in the step and is exact as well. M has an entry only where
two words stand in one sequence, so products with it go sequence by sequence.

Single neurons need not be known, but some can ride along: row j of H = W W_V and of N = W W^T moves with the
others only through b, so the flow follows a few rows exactly (`neuron_velocity`)."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from stagewise.papers.cooccurrence.measured import (
    COORDS,
    DIMS,
    LEARNING_DIMS,
    NEURON_DIMS,
    measure,
    measure_learning,
    measure_neurons,
)
from stagewise.papers.cooccurrence.response import attend, outputs, pulls, times, transposed_times
from stagewise.training.flow import Motion
from stagewise.training.loop import Rule

VALUES, ATTENTION, NEURONS = ("G", "alpha", "CV"), ("S", "CK", "CQ"), ("H", "Na", "N")
State = dict[str, Array]


def velocity(state: State, data: dict[str, Array]) -> State:
    """Gradient flow."""
    b, M = pulls(state["G"], state["S"], data)
    return value_velocity(state, b, data) | score_velocity(state, M, data)


def value_velocity(state: State, b: Array, data: dict[str, Array]) -> State:
    """Gradient flow of what the value path is made of."""
    G, m1 = state["G"], data["neurons"]
    values = jnp.outer(b, G)
    return {"G": state["alpha"] * b + m1 * state["CV"] @ b, "alpha": 2 * m1 * G @ b, "CV": values + values.T}


def score_velocity(state: State, M: Array, data: dict[str, Array]) -> State:
    """Gradient flow of the scores and of the self-scores of keys and queries."""
    S, tokens = state["S"], data["tokens"]
    keys, queries = times(M, tokens, S.T), transposed_times(M, tokens, S)
    return {
        "S": times(M, tokens, state["CQ"]) + transposed_times(M, tokens, state["CK"]).T,
        "CK": keys + keys.T,
        "CQ": queries + queries.T,
    }


def neuron_velocity(state: State, b: Array, data: dict[str, Array]) -> State:
    """Gradient flow of some rows of H = W W_V, of N a, and of N = W W^T between them."""
    a, along = data["signs"], state["H"] @ b
    pairs = jnp.outer(a, along)
    return {
        "H": jnp.outer(a, state["CV"] @ b) + jnp.outer(state["Na"], b),
        "Na": a * (state["G"] @ b) + data["neurons"] * along,
        "N": pairs + pairs.T,
    }


def descend(state: State, data: dict[str, Array], rate: Array) -> State:
    """One step of gradient descent on all weights, exactly."""
    b, M = pulls(state["G"], state["S"], data)
    G, S, CV, tokens, m1 = state["G"], state["S"], state["CV"], data["tokens"], data["neurons"]
    right, left = times(M, tokens, state["CQ"]), transposed_times(M, tokens, state["CK"]).T  # M C_Q and C_K M
    keys, queries = times(M, tokens, S.T), transposed_times(M, tokens, S)
    values = jnp.outer(b, G)
    return {
        "G": G + rate * (state["alpha"] * b + m1 * CV @ b) + rate**2 * m1 * (G @ b) * b,
        "alpha": state["alpha"] + 2 * rate * m1 * G @ b + rate**2 * m1**2 * b @ CV @ b,
        "CV": CV + rate * (values + values.T) + rate**2 * state["alpha"] * jnp.outer(b, b),
        "S": S + rate * (right + left) + rate**2 * times(M, tokens, queries.T),
        "CK": state["CK"] + rate * (keys + keys.T) + rate**2 * times(M, tokens, right.T).T,
        "CQ": state["CQ"] + rate * (queries + queries.T) + rate**2 * transposed_times(M, tokens, left),
    }


@dataclass(frozen=True)
class ClosedFlow(Motion):
    """The closed system in motion, with a few neurons. `clock` is a weight that counts time; everything that
    differs between runs, the training set included, is among the constants: one program serves all up to its
    size (vocabulary, samples, length)."""

    size: tuple[int, int, int]

    @property
    def dims(self):
        return DIMS | NEURON_DIMS

    @property
    def coords(self):
        return COORDS

    def velocity(self, weights, constants, samples):
        b, M = pulls(weights["G"], weights["S"], constants)
        values, followed = value_velocity(weights, b, constants), neuron_velocity(weights, b, constants)
        return values | followed | score_velocity(weights, M, constants) | {"clock": jnp.ones(())}

    def measure(self, weights, constants):
        b, M = pulls(weights["G"], weights["S"], constants)
        moving = value_velocity(weights, b, constants) | score_velocity(weights, M, constants)
        return measure(weights, moving, b, constants) | measure_neurons(weights, constants)

    def watched(self, weights, constants):
        F = outputs(
            attend(weights["S"], constants["tokens"], constants["present"], constants["width"]),
            weights["G"],
            constants["tokens"],
        )
        return {
            "loss": constants["weight"] @ jax.nn.softplus(-constants["label"] * F),
            "scaled_time": constants["speed"] * weights["clock"],
            "time": weights["clock"],
        }

    def samples(self, kind):
        return np.ones(1)  # the training set is among the constants, with its weights


@dataclass(frozen=True)
class ClosedDescent(Rule):
    """The closed system of a given size (vocabulary, samples, length), step by step."""

    size: tuple[int, int, int]

    @property
    def dims(self):
        return LEARNING_DIMS

    @property
    def coords(self):
        return {name: COORDS[name] for name in ("type", "word", "key", "query")}

    def step(self, weights, constants, key):
        return descend(weights, constants, constants["rate"])

    def measure(self, weights, constants, key):
        return measure_learning(weights, constants)
