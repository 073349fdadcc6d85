"""How weights start: neurons at zero (or Gaussian), keys and queries Gaussian, drawn from each seed's own stream."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int, Key

from stagewise.training.program import INITIAL, stream


def numbers(values: dict[str, float], lanes: int) -> dict[str, np.ndarray]:
    """The same numbers in every lane."""
    return {name: np.full(lanes, float(value)) for name, value in values.items()}


def gram(settings, seeds: np.ndarray, neuron_scale: float = 0.0) -> dict[str, np.ndarray]:
    """Neurons and the inner products of [W_K, W_Q] on the signals; at infinite width these are known (Lemma C.1)."""
    signals = 2 * settings.task.groups
    if settings.width == "infinite":
        unit = np.broadcast_to(np.eye(2 * signals), (len(seeds), 2, 2 * signals, 2 * signals))
    else:
        unit = np.stack([_unit_gram(signals, settings.width, seed) for seed in seeds])
    return {"neurons": neuron_scale * _unit_neurons(signals, seeds), "gram": settings.initial_scale**2 * unit}


def weights(settings, seeds: np.ndarray, neuron_scale: float = 0.0) -> dict[str, np.ndarray]:
    """The weights themselves, the same draw as `gram` on the signals and zero elsewhere, where nothing ever moves."""
    signals, outside = 2 * settings.task.groups, settings.task.embedding_dimension - 2 * settings.task.groups
    both = settings.initial_scale * np.stack([_unit_weights(signals, settings.width, seed) for seed in seeds])
    pad = [(0, 0)] * 3 + [(0, outside)]
    neurons = np.pad(neuron_scale * _unit_neurons(signals, seeds), pad[1:])
    return {"neurons": neurons, "keys": np.pad(both[..., :signals], pad), "queries": np.pad(both[..., signals:], pad)}


def _unit_neurons(signals: int, seeds: np.ndarray) -> np.ndarray:
    return np.stack([_normal(jax.random.fold_in(stream(seed, INITIAL), NEURONS), (2, signals)) for seed in seeds])


_normal = partial(jax.jit, static_argnums=1)(lambda key, shape: jax.random.normal(key, shape, float))

# Keys and queries are drawn a few rows at a time, so that one compilation serves every width.
ROWS, NEURONS = 16, 2**31 - 1


def _rows(key: Key[Array, ""], part: Int[Array, ""], signals: int, width: Int[Array, ""]) -> Float[Array, "2 rows {2*signals}"]:
    """Some rows of [W_K, W_Q] of both heads, at scale 1/sqrt(m); rows beyond the width are zero."""
    drawn = jax.random.normal(jax.random.fold_in(key, part), (2, ROWS, 2 * signals), float)
    there = part * ROWS + jnp.arange(ROWS) < width
    return drawn * there[:, None] / jnp.sqrt(width)


@partial(jax.jit, static_argnums=0)
def _unit_gram(signals: int, width: Int[ArrayLike, ""], seed: Int[ArrayLike, ""]) -> Float[Array, "2 {2*signals} {2*signals}"]:
    def add(part, total):
        rows = _rows(stream(seed, INITIAL), part, signals, width)
        return total + jnp.swapaxes(rows, -1, -2) @ rows

    return jax.lax.fori_loop(0, -(-width // ROWS), add, jnp.zeros((2, 2 * signals, 2 * signals)))


def _unit_weights(signals: int, width: int, seed: Int[ArrayLike, ""]) -> Float[np.ndarray, "2 {width} {2*signals}"]:
    key, parts = stream(seed, INITIAL), range(-(-width // ROWS))
    return np.concatenate([_rows(key, jnp.asarray(part), signals, jnp.asarray(width)) for part in parts], 1)[:, :width]
