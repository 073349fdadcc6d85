"""How weights start: neurons at zero (or Gaussian), keys and queries Gaussian, drawn from each seed's own
stream."""

from __future__ import annotations

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int, Key

from stagewise.training.program import INITIAL, stream


def constants(values: dict[str, float], lanes: int) -> dict[str, np.ndarray]:
    """The same constants in every lane."""
    return {name: np.full(lanes, float(value)) for name, value in values.items()}


def gram(settings, seeds: np.ndarray, neuron_scale: float = 0.0) -> dict[str, np.ndarray]:
    """Neurons and the inner products of [W_K, W_Q] on the signals; at infinite width these are known (Lemma
    C.1)."""
    signals = 2 * settings.task.groups
    width = 0 if settings.width == "infinite" else settings.width
    parts = [_draw(signals, width, part) for part in _handfuls(seeds)]
    neurons, unit = (np.concatenate([part[i] for part in parts])[: len(seeds)] for i in range(2))
    unit = np.broadcast_to(np.eye(2 * signals), unit.shape) if settings.width == "infinite" else unit
    return {"neurons": neuron_scale * neurons, "gram": settings.initial_scale**2 * unit}


def weights(settings, seeds: np.ndarray, neuron_scale: float = 0.0) -> dict[str, np.ndarray]:
    """The weights themselves, the same draw as `gram` on the signals and zero elsewhere, where nothing ever
    moves."""
    signals, outside = 2 * settings.task.groups, settings.task.embedding_dimension - 2 * settings.task.groups
    both = settings.initial_scale * np.stack([_unit_weights(signals, settings.width, seed) for seed in seeds])
    neurons = np.concatenate([_draw(signals, 0, part)[0] for part in _handfuls(seeds)])[: len(seeds)]
    pad = [(0, 0)] * 3 + [(0, outside)]
    return {
        "neurons": np.pad(neuron_scale * neurons, pad[1:]),
        "keys": np.pad(both[..., :signals], pad),
        "queries": np.pad(both[..., signals:], pad),
    }


# One compilation serves every width and every number of seeds: rows of keys and queries are drawn a few at a
# time, and seeds are taken by the handful, the last one filled up.
ROWS, HANDFUL, NEURONS = 16, 8, 2**31 - 1


def _handfuls(seeds: np.ndarray) -> np.ndarray:
    return np.pad(seeds, (0, -len(seeds) % HANDFUL), mode="edge").reshape(-1, HANDFUL)


def _normal(key: Key[Array, ""], *shape: int) -> Float[Array, "..."]:
    """Normal numbers, drawn in one row: the same bits, and a fifth of the time to compile."""
    return jax.random.normal(key, (math.prod(shape),), float).reshape(shape)


def _rows(
    key: Key[Array, ""], part: Int[Array, ""], signals: int, width: Int[Array, ""]
) -> Float[Array, "2 rows {2*signals}"]:
    """Some rows of [W_K, W_Q] of both heads, at scale 1/sqrt(m); rows beyond the width are zero."""
    drawn = _normal(jax.random.fold_in(key, part), 2, ROWS, 2 * signals)
    there = part * ROWS + jnp.arange(ROWS) < width
    return drawn * there[:, None] / jnp.sqrt(width)


@partial(jax.jit, static_argnums=0)
def _draw(signals: int, width: Int[Array, ""], seeds: Int[ArrayLike, " seed"]):
    """Neurons and Gram matrices of some seeds, all at scale one."""

    def draw(seed):
        key = stream(seed, INITIAL)

        def add(part, total):
            rows = _rows(key, part, signals, width)
            return total + jnp.swapaxes(rows, -1, -2) @ rows

        neurons = _normal(jax.random.fold_in(key, NEURONS), 2, signals)
        return neurons, jax.lax.fori_loop(0, -(-width // ROWS), add, jnp.zeros((2, 2 * signals, 2 * signals)))

    return jax.vmap(draw)(seeds)


@partial(jax.jit, static_argnums=(0, 1))
def _unit_weights(
    signals: int, width: int, seed: Int[ArrayLike, ""]
) -> Float[Array, "2 {width} {2*signals}"]:
    key, parts = stream(seed, INITIAL), jnp.arange(-(-width // ROWS))
    rows = jax.vmap(lambda part: _rows(key, part, signals, jnp.asarray(width)), out_axes=1)(parts)
    return rows.reshape(2, -1, rows.shape[-1])[:, :width]
