"""Adam with clipped gradients and a falling learning rate. Its state is a dict, like all other states."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

Weights = dict[str, Array | np.ndarray]
AdamState = dict  # "count", "mean" and "square": the steps taken, and the moments of every weight


def begin(weights: Weights) -> AdamState:
    """The state before the first step, on the host."""
    zeros = {name: np.zeros_like(value) for name, value in weights.items()}
    return {"count": np.zeros((), np.int32), "mean": zeros, "square": dict(zeros)}


def step(
    weights: Weights, gradients: Weights, state: AdamState, rate: Float[Array, ""], gradient_clip: float
) -> tuple[Weights, AdamState]:
    """One step of Adam (0.9, 0.999, 1e-8, no weight decay), after scaling gradients down to norm
    `gradient_clip`."""
    clipped, _ = optax.clip_by_global_norm(gradient_clip).update(gradients, optax.EmptyState())
    before = optax.ScaleByAdamState(state["count"], state["mean"], state["square"])
    moves, after = optax.scale_by_adam().update(clipped, before)
    assert isinstance(after, optax.ScaleByAdamState)
    moved = jax.tree.map(lambda w, move: w - rate.astype(w.dtype) * move, weights, moves)
    return moved, {"count": after.count, "mean": after.mu, "square": after.nu}


def linear_decay(rate: Float[Array, ""], step: Int[Array, ""], steps: Float[Array, ""]) -> Float[Array, ""]:
    """Return the learning rate at a step. It falls linearly from `rate` to zero over `steps` steps."""
    return rate * jnp.clip(1 - step / steps, 0, 1)


def cosine_decay(
    rate: Float[Array, ""], last: Float[Array, ""], step: Int[Array, ""], steps: Float[Array, ""]
) -> Float[Array, ""]:
    """Return the learning rate at a step. It falls from `rate` to `last` over `steps` steps, along half a
    cosine wave."""
    return last + (rate - last) * (1 + jnp.cos(jnp.pi * jnp.clip(step / steps, 0, 1))) / 2
