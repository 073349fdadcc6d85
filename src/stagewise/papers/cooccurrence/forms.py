"""The same flow in three forms side by side: plain weights, the six kinds of inner products of Appendix C,
and the compact closed system, all carried by the same steps, so that they can be compared at any time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from stagewise.models.one_layer import OneLayer
from stagewise.papers.cooccurrence import closed, initial
from stagewise.papers.cooccurrence.measured import COORDS
from stagewise.papers.cooccurrence.response import attend, outputs, pulls
from stagewise.tasks.cooccurrence import SPECIAL
from stagewise.training.loop import Rule

FORMS = ("weights", "six kinds", "compact")
WEIGHTS = ("W", "WV", "WK", "WQ")
SIX = ("H", "N", "S", "CV", "CK", "CQ")
COMPACT = (*closed.VALUES, *closed.ATTENTION)


# Plain weights: the loss differentiated automatically, the form to check all others against.


def plain_loss(weights: Mapping[str, ArrayLike], data: Mapping[str, Any]) -> Array:
    """Mean logistic loss over the training set."""
    model = OneLayer(
        **{name: jnp.asarray(weights[name]) for name in WEIGHTS}, signs=jnp.asarray(data["signs"])
    )
    return jnp.mean(jax.nn.softplus(-data["label"] * jax.vmap(model)(jnp.asarray(data["tokens"]))))


def plain_velocity(weights: Mapping[str, ArrayLike], data: Mapping[str, Any]) -> dict[str, Array]:
    """Gradient flow: minus the gradient of the loss in every weight."""
    return jax.tree.map(jnp.negative, jax.grad(plain_loss)({name: weights[name] for name in WEIGHTS}, data))


def inner_products(weights: dict[str, Any], signs: ArrayLike) -> dict[str, Any]:
    """The compact closed system's state, and the six kinds of Appendix C, of given weights."""
    W, V = weights["W"], weights["WV"]
    return initial.inner_products(weights | {"signs": signs}) | {"H": W @ V, "N": W @ W.T}


def six_kinds_velocity(state: dict[str, Array], data: dict[str, Array]) -> dict[str, Array]:
    """Appendix C: the six kinds of inner products move on their own."""
    a, G = data["signs"], state["H"].T @ data["signs"]
    b, M = pulls(G, state["S"], data)
    by_neurons, values = jnp.outer(a, state["H"] @ b), jnp.outer(b, G)
    return {
        "H": jnp.outer(a, state["CV"] @ b) + jnp.outer(state["N"] @ a, b),
        "N": by_neurons + by_neurons.T,
        "CV": values + values.T,
    } | closed.score_velocity(state, M, data)


def start(settings, seeds: np.ndarray) -> tuple[dict, dict]:
    """All three forms of each seed's start, and its constants."""
    lanes = [_lane(settings, int(seed)) for seed in seeds]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *lanes)


def _lane(settings, seed: int) -> tuple[dict, dict]:
    drawn = initial.draw_weights(settings, seed)
    constants = initial.data(settings, seed) | {"signs": drawn.pop("signs")}
    kinds = inner_products(drawn, constants["signs"])
    return {
        "weights": drawn,
        "six kinds": {name: kinds[name] for name in SIX},
        "compact": {name: kinds[name] for name in COMPACT},
    }, constants


@dataclass(frozen=True)
class SideBySide(Rule):
    """Runge-Kutta steps of all three forms of a network of a given size, and what the loss reads in each."""

    size: tuple[int, ...]

    @property
    def dims(self):
        return {
            "loss": ("form",),
            "G": ("form", "word"),
            "alpha": ("form",),
            "scores": ("form", "key", "query"),
            "value_self": ("form", "key", "query"),
            "value_invariant": ("form",),
            "score_invariant": ("form",),
        }

    @property
    def coords(self):
        return {name: COORDS[name] for name in ("word", "key", "query")} | {"form": np.array(FORMS)}

    def step(self, state, constants, key):
        def velocity(state):
            flows = (plain_velocity, six_kinds_velocity, closed.velocity)
            return {form: flow(state[form], constants) for form, flow in zip(FORMS, flows)}

        def along(state, speed, time):
            return jax.tree.map(lambda x, v: x + time * v, state, speed)

        # The four stages of the classical method: where to look, and how much it counts.
        def stage(carry, part):
            (speed, total), (ahead, counts) = carry, part
            speed = velocity(along(state, speed, ahead * constants["step"]))
            return (speed, along(total, speed, counts * constants["step"])), None

        rest = jax.tree.map(jnp.zeros_like, state)
        (_, moved), _ = jax.lax.scan(
            stage, (rest, state), (jnp.array([0, 0.5, 0.5, 1]), jnp.array([1, 2, 2, 1]) / 6)
        )
        return moved

    def measure(self, state, constants, key):
        a, six = constants["signs"], state["six kinds"]
        forms = (
            inner_products(state["weights"], a),
            six | {"G": six["H"].T @ a, "alpha": a @ six["N"] @ a},
            state["compact"],
        )
        return jax.tree.map(lambda *forms: jnp.stack(forms), *(_brief(form, constants) for form in forms))


def _brief(state, data):
    F = outputs(
        attend(state["S"], data["tokens"], data["present"], data["width"]), state["G"], data["tokens"]
    )
    return {
        "loss": data["weight"] @ jax.nn.softplus(-data["label"] * F),
        "G": state["G"][:SPECIAL],
        "alpha": state["alpha"],
        "scores": state["S"][:SPECIAL, :SPECIAL],
        "value_self": state["CV"][:SPECIAL, :SPECIAL],
        "value_invariant": state["alpha"] - data["neurons"] * jnp.trace(state["CV"]),
        "score_invariant": jnp.trace(state["CK"]) - jnp.trace(state["CQ"]),
    }
