"""Blocks of a residual stream that are unit vectors. Each names a symbol at a level, as in Theorem 4 of the
composition paper. The functions run on arrays of jax and of numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stagewise.lazy import numpy_of

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from stagewise.models.attention_only import Kind


def own_symbols(sigma: Int[Kind, "batch level symbol"]) -> Int[Kind, "batch level symbol"]:
    """Return the symbol j for every token (i, j)."""
    xp = numpy_of(sigma)
    return xp.broadcast_to(xp.arange(sigma.shape[-1]), sigma.shape)


def names_of(
    symbols: Sequence[Int[Kind, "batch level symbol"]], shifts: Sequence[int]
) -> Int[Kind, "batch token blocks"]:
    """Return the number of the unit vector in each block of each token. At token (i, j) it names symbols[i,
    j] at level i + shift."""
    xp, (k, N) = numpy_of(symbols[0]), symbols[0].shape[-2:]
    named = [(np.arange(k)[:, None] + shift) % k * N + each for each, shift in zip(symbols, shifts)]
    return xp.stack([each.reshape(*each.shape[:-2], k * N) for each in named], -1)


def ideal_stream(
    hops: Sequence[Int[Kind, "batch level symbol"]], sigma: Int[Kind, "batch level symbol"]
) -> tuple[list[Int[Kind, "batch level symbol"]], tuple[int, ...]]:
    """Return the symbols and shifts of Theorem 4's stream, in which block l + 1 names hop_i^r(j) at level i +
    r - 1, for r = 2^(l-1)."""
    return [own_symbols(sigma), sigma, *hops], (0, 0, *(2**layer - 1 for layer in range(len(hops))))


def embed(
    sigma: Int[Kind, "batch level symbol"], dtype: type | np.dtype = np.float32
) -> Float[Kind, "batch token 2 width"]:
    """Return blocks 0 and 1 of Theorem 4: at token (i, j) the unit vectors of (i, j) and of (i,
    sigma_i(j))."""
    return blocks_of([own_symbols(sigma), sigma], (0, 0), dtype)


def blocks_of(
    symbols: Sequence[Int[Kind, "batch level symbol"]],
    shifts: Sequence[int],
    dtype: type | np.dtype = np.float32,
) -> Float[Kind, "batch token blocks width"]:
    """Return blocks as unit vectors; `names_of` says which unit vector each block is."""
    named: Any = names_of(symbols, shifts)
    return (named[..., None] == np.arange(named.shape[1])).astype(dtype)


def ideal_blocks(
    hops: Sequence[Int[Kind, "batch level symbol"]],
    sigma: Int[Kind, "batch level symbol"],
    dtype: type | np.dtype = np.float32,
) -> Float[Kind, "batch token blocks width"]:
    """Return the stream of `ideal_stream` as unit vectors."""
    return blocks_of(*ideal_stream(hops, sigma), dtype)
