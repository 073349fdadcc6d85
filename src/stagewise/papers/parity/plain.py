"""The paper's one-layer transformer with plain weights A and W, by automatic differentiation: what the table
form is tested against."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from stagewise.papers.parity.theory import Sequences


@partial(jax.jit, static_argnames="first")
def outputs(weights: dict, embeddings: np.ndarray, signs: np.ndarray, data: Sequences, first: int):
    """out [sample, query] of the network with weights A [d, d], W1 and W2 [neuron, d]."""
    X = jnp.asarray(embeddings)[data.embedded()]  # [sample, place, d]
    asked, places = X[:, first:], jnp.arange(X.shape[1])
    scores = jnp.einsum("njd,de,nie->nij", X, weights["A"], asked)
    seen = places[None, :] <= places[first:, None]
    attended = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), -1) @ X
    return jax.nn.relu(asked @ weights["W1"].T + attended @ weights["W2"].T) @ signs


def loss(weights: dict, embeddings, signs, data: Sequences, first: int, kind: str):
    """Summed over the places asked, averaged over the batch."""
    signed = (1 - 2 * data.labels) * outputs(weights, embeddings, signs, data, first)
    return data.share @ jnp.sum(signed if kind == "linear" else jnp.maximum(0, 1 + signed), 1)


@partial(jax.jit, static_argnames=("first", "kind"))
def step(
    weights: dict, embeddings, signs, data: Sequences, first: int, kind: str, rate: float
) -> tuple[dict, dict]:
    """One step of descent, and the gradient."""
    gradient = jax.grad(loss)(weights, embeddings, signs, data, first, kind)
    return jax.tree.map(lambda w, g: w - rate * g, weights, gradient), gradient
