"""Plain weights: the loss of the one-layer transformer, differentiated automatically. The form to check all
others against."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike

from stagewise.models.one_layer import OneLayer
from stagewise.papers.cooccurrence.initial import inner_products as compact

WEIGHTS = ("W", "WV", "WK", "WQ")


def loss(weights: dict[str, ArrayLike], data: dict[str, ArrayLike]) -> Array:
    """Mean logistic loss over the training set."""
    model = OneLayer(
        **{name: jnp.asarray(weights[name]) for name in WEIGHTS}, signs=jnp.asarray(data["signs"])
    )
    return jnp.mean(jax.nn.softplus(-data["label"] * jax.vmap(model)(jnp.asarray(data["tokens"]))))


def velocity(weights: dict[str, ArrayLike], data: dict[str, ArrayLike]) -> dict[str, Array]:
    """Gradient flow: minus the gradient of the loss in every weight."""
    return jax.tree.map(jnp.negative, jax.grad(loss)({name: weights[name] for name in WEIGHTS}, data))


def inner_products(weights: dict[str, ArrayLike], signs: ArrayLike) -> dict[str, ArrayLike]:
    """The compact closed system's state, and the six kinds of Appendix C, of given weights."""
    W, V = weights["W"], weights["WV"]
    return compact(weights | {"signs": signs}) | {"H": W @ V, "N": W @ W.T}
