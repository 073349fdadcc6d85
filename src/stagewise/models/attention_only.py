"""An attention-only transformer whose residual stream is a row of blocks (Definition 3 of the composition
paper).

Each layer has one head and adds the head's output to the stream; there is no norm and no perceptron. Value
matrices only move blocks: layer l copies one block of the token it looks at into a new block. The stream is
therefore a list of blocks that grows by one in each layer, and a layer's key-query matrix is only as large as
the blocks that are there (`stream`). `dense` is Definition 3 as it is written, with matrices d by d. The
functions run on arrays of jax, for training, and on arrays of numpy, to look at constructions of many sizes
without compiling each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from stagewise.lazy import numpy_of
from stagewise.models.blocks import embed
from stagewise.precision import in_double

AnyArray = Array | np.ndarray
Kind = TypeVar("Kind", bound=AnyArray)  # arrays of jax or of numpy, whichever were given
Scores = Sequence[AnyArray]
"""One key-query matrix for each layer, over the blocks that the layer sees. Rows are keys, columns are
queries."""


class AttentionOnly(eqx.Module):
    """A model, given by its weights. Call it with the permutations sigma that a sequence shows to get the
    logits at every token, for every number of hops."""

    layers: tuple[Array | np.ndarray, ...]  # key-query matrices
    readouts: Float[Array | np.ndarray, "task blocks width symbol"]

    @in_double
    def __call__(self, sigma: Int[AnyArray, "batch level symbol"]) -> Float[Array, "batch token task symbol"]:
        blocks, _ = stream(embed(sigma), self.layers)
        return read_out(blocks, self.readouts)

    @in_double
    def attention(
        self, sigma: Int[AnyArray, "batch level symbol"]
    ) -> dict[str, Float[AnyArray, "batch query key"]]:
        """Attention patterns by name; each row is a query and sums to one."""
        _, patterns = stream(embed(sigma), self.layers)
        return {f"layer{layer + 1}": pattern for layer, pattern in enumerate(patterns)}


def softmax(scores: Float[AnyArray, "*n key"]) -> Float[AnyArray, "*n key"]:
    if not isinstance(scores, np.ndarray):
        return jax.nn.softmax(scores, axis=-1)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def attend(
    seen: Float[AnyArray, "batch token wide"], scores: Float[AnyArray, "wide wide"]
) -> Float[AnyArray, "batch query key"]:
    """Return the attention of each query of a layer over all keys; there is no scale and no mask."""
    return softmax((seen @ scores.T) @ seen.swapaxes(-1, -2))


def stream(
    first: Float[Kind, "batch token blocks width"], scores: Scores, copied: Sequence[int] | None = None
) -> tuple[Kind, list[Kind]]:
    """Return all blocks [batch, token, blocks, width] and the patterns [batch, query, key] of every layer.

    Layer l, counted from 1, copies block l of the token it looks at, or the block that `copied` names."""
    batch, tokens, held, width = first.shape
    seen: Any = first.reshape(batch, tokens, held * width)
    patterns: list[Any] = []
    for layer, matrix in enumerate(scores):
        pattern = attend(seen, matrix)
        source = held + layer - 1 if copied is None else copied[layer]
        moved = pattern @ seen[..., source * width : (source + 1) * width]
        seen = numpy_of(seen).concatenate([seen, moved], axis=-1)
        patterns.append(pattern)
    return seen.reshape(batch, tokens, -1, width), patterns


def read_out(
    blocks: Float[AnyArray, "*n blocks width"], readouts: Float[AnyArray, "task blocks width symbol"]
) -> Float[Array, "*n task symbol"]:
    """Return the logits of every task (a number of hops), read from all blocks."""
    return jnp.einsum("...bw,lbws->...ls", blocks, readouts)


def dense(
    X: Float[AnyArray, "d token"],
    key_query: Sequence[Float[AnyArray, "d d"]],
    output_value: Sequence[Float[AnyArray, "d d"]],
) -> Float[AnyArray, "d token"]:
    """Definition 3 to the letter: X + W_OV X softmax(X^T W_KQ X), the softmax by columns."""
    for W_KQ, W_OV in zip(key_query, output_value):
        X = X + W_OV @ X @ softmax((X.T @ W_KQ @ X).T).T
    return X


def as_dense(
    first: Float[AnyArray, "token 2 width"], scores: Scores
) -> tuple[AnyArray, list[np.ndarray], list[np.ndarray]]:
    """Return X(0), W_KQ and W_OV of the same model for `dense`, in d = width (L + 2) dimensions."""
    tokens, held, width = first.shape
    d = width * (held + len(scores))
    X = numpy_of(first).pad(first.reshape(tokens, -1).T, ((0, d - held * width), (0, 0)))
    key_query = [np.pad(matrix, (0, d - len(matrix))) for matrix in scores]
    places = np.eye(held + len(scores))
    output_value = [
        np.kron(np.outer(places[layer + held], places[layer + held - 1]), np.eye(width))
        for layer in range(len(scores))
    ]
    return X, key_query, output_value
