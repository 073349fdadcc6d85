"""Blocks of a residual stream that are unit vectors: each names a symbol at a level, as in Theorem 4 of the
composition paper. Runs on arrays of jax and of numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stagewise.lazy import numpy_of

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from stagewise.models.attention_only import Kind


def own_symbols(sigma: Int[Kind, "batch level symbol"]) -> Int[Kind, "batch level symbol"]:
    """j at every token (i, j)."""
    xp = numpy_of(sigma)
    return xp.broadcast_to(xp.arange(sigma.shape[-1]), sigma.shape)


def names_of(
    symbols: Sequence[Int[Kind, "batch level symbol"]], shifts: Sequence[int]
) -> Int[Kind, "batch token blocks"]:
    """Which unit vector each block of each token is: token (i, j) names symbols[i, j] at level i + shift."""
    xp, (k, N) = numpy_of(symbols[0]), symbols[0].shape[-2:]
    named = [(np.arange(k)[:, None] + shift) % k * N + each for each, shift in zip(symbols, shifts)]
    return xp.stack([each.reshape(*each.shape[:-2], k * N) for each in named], -1)


def ideal_stream(
    hops: Sequence[Int[Kind, "batch level symbol"]], sigma: Int[Kind, "batch level symbol"]
) -> tuple[list[Int[Kind, "batch level symbol"]], tuple[int, ...]]:
    """Symbols and shifts of Theorem 4's stream: block l + 1 names hop_i^r(j) at level i + r - 1, for r =
    2^(l-1)."""
    return [own_symbols(sigma), sigma, *hops], (0, 0, *(2**layer - 1 for layer in range(len(hops))))


def embed(
    sigma: Int[Kind, "batch level symbol"], dtype: type | np.dtype = np.float32
) -> Float[Kind, "batch token 2 width"]:
    """Blocks 0 and 1 of Theorem 4: token (i, j) is the unit vector of (i, j), then that of (i,
    sigma_i(j))."""
    return blocks_of([own_symbols(sigma), sigma], (0, 0), dtype)


def blocks_of(
    symbols: Sequence[Int[Kind, "batch level symbol"]],
    shifts: Sequence[int],
    dtype: type | np.dtype = np.float32,
) -> Float[Kind, "batch token blocks width"]:
    """Blocks of unit vectors, as names_of says which."""
    named: Any = names_of(symbols, shifts)
    return (named[..., None] == np.arange(named.shape[1])).astype(dtype)


def ideal_blocks(
    hops: Sequence[Int[Kind, "batch level symbol"]],
    sigma: Int[Kind, "batch level symbol"],
    dtype: type | np.dtype = np.float32,
) -> Float[Kind, "batch token blocks width"]:
    """That stream as unit vectors."""
    return blocks_of(*ideal_stream(hops, sigma), dtype)
