"""The paper's smooth ReLU, in the form of Definition 3.4 and in that of Assumption B.2, and its clipping."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from stagewise.papers.lego import closed


def smooth_relu(
    x: Float[Array, "*n"], rho: Float[Array, ""] | float, q: Float[Array, ""] | float
) -> Float[Array, "*n"]:
    """Definition 3.4, see `closed.py`."""
    return closed.smooth_relu(x, rho, q, jnp)


def smooth_relu_b2(
    x: Float[Array, "*n"],
    rho: Float[Array, ""] | float,
    q: Float[Array, ""] | float,
    slope: Float[Array, ""] | float,
    top: Float[Array, ""] | float,
) -> Float[Array, "*n"]:
    """Assumption B.2: the same to the right of 0 and up to `top`, a small parabola and a line of `slope` to
    its left, constant beyond.

    As printed it jumps at -slope, where the parabola has half the line's value; the line is lowered by that
    half here."""
    right = rho * (jnp.clip(x, 0, rho) / rho) ** q / q + jnp.clip(x - rho, 0, top - rho)
    parabola = jnp.clip(x, -slope, 0) ** 2 / 2
    line = slope * jnp.clip(-x - slope, 0, top - slope)
    return right + parabola + line


def clipped(
    x: Float[Array, "*n"], top: Float[Array, ""] | float, width: Float[Array, ""] | float
) -> Float[Array, "*n"]:
    """min(x, top), rounded over `width` so that a flow has no corner; sharp at width 0."""
    soft = top - width * jax.nn.softplus((top - x) / jnp.where(width > 0, width, 1.0))
    return jnp.where(width > 0, soft, jnp.minimum(x, top))
