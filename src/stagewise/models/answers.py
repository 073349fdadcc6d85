"""A faster way to compute exactly a GPT's logits: only at the places that a loss reads, and only what these
places need."""

from __future__ import annotations

from math import sqrt

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from stagewise.models.gpt import GPT, Drop, causal_softmax, nothing


def answers(
    model: GPT, tokens: Int[Array, "batch length"], first: int
) -> Float[Array, "batch asked vocabulary"]:
    """Return the logits at the places from `first` on, for sequences of two kinds of tokens.

    This is exactly the plain model, with its operations in another order. At its place a binary token has one
    of two embeddings, so the keys, values and queries of the first block come from tables over (place, bit),
    with the output projection multiplied into the values. In the last block only the places asked for go
    through attention and the perceptron."""
    asked = slice(first, None)
    x = _first_block(model, tokens, _needed(model, 0, asked))
    for layer in range(1, model.layers):
        x = _block(model, layer, x, _needed(model, layer, asked))
    return model.read_out(x)


def answers_with_dropout(
    model: GPT, tokens: Int[Array, "batch length"], first: int, drop: Drop
) -> Float[Array, "batch asked vocabulary"]:
    """Return the same logits in training with dropout. Dropout makes embeddings differ from sample to sample,
    so tables cannot hold them."""
    asked = slice(first, None)
    x = drop(model.wte[tokens] + model.wpe[: tokens.shape[-1]])
    for layer in range(model.layers):
        x = _block(model, layer, x, _needed(model, layer, asked), drop)
    return model.read_out(x)


def patterns(model: GPT, tokens: Int[Array, "batch length"]) -> Float[Array, "batch layer head query key"]:
    """Return the attention of every layer, head and place, for sequences of two kinds of tokens. The
    perceptron of the last block is never run."""
    every = slice(None)
    found = [_first_pattern(model, tokens, every)]
    x = _first_block(model, tokens, every) if model.layers > 1 else None
    for layer in range(1, model.layers):
        assert x is not None
        q, k, _ = model.queries_keys_values(layer, x)
        found.append(model.pattern(q, k))
        x = _block(model, layer, x, every) if layer < model.layers - 1 else x
    return jnp.stack(found, axis=1)


def _needed(model: GPT, layer: int, asked: slice) -> slice:
    """The places that later layers, or the loss, read."""
    return asked if layer == model.layers - 1 else slice(None)


def _block(
    model: GPT, layer: int, x: Float[Array, "batch place D"], places: slice, drop: Drop = nothing
) -> Float[Array, "batch asked D"]:
    moved, _ = model.attend(layer, x, places, drop)
    return model.think(layer, x[:, places] + moved, drop)


def _table(model: GPT, length: int) -> Float[Array | np.ndarray, "place bit D"]:
    return model.wpe[:length, None] + model.wte[None, :2]


def _first_pattern(
    model: GPT, tokens: Int[Array, "batch length"], queries: slice
) -> Float[Array, "batch head query key"]:
    q, k, _ = model.queries_keys_values(0, _table(model, tokens.shape[1]))
    scores = jnp.einsum("qahd,kbhd->habqk", q[queries], k) / sqrt(q.shape[-1])
    (s00, s01), (s10, s11) = jnp.moveaxis(scores, 0, 2)
    asks, seen = _bits(tokens, q.dtype)[:, None, queries, None], _bits(tokens, q.dtype)[:, None, None, :]
    picked = s00 + seen * (s01 - s00) + asks * (s10 - s00) + asks * seen * (s11 - s10 - s01 + s00)
    return causal_softmax(picked, queries)


def _first_block(
    model: GPT, tokens: Int[Array, "batch length"], queries: slice
) -> Float[Array, "batch asked D"]:
    table = _table(model, tokens.shape[1])
    *_, v = model.queries_keys_values(0, table)
    by_head = model.attn_c_proj_weight[0].reshape(model.heads, -1, table.shape[-1])
    # For each head, bit and place: what a token adds to the output of a query that looks at it.
    values = jnp.einsum("tbhd,hde->hbte", v, by_head)
    pattern, seen = _first_pattern(model, tokens, queries), _bits(tokens, table.dtype)[:, None, None, :]
    split = jnp.stack([pattern * (1 - seen), pattern * seen], axis=2)  # by the bit that is looked at
    moved = jnp.einsum("nhbqk,hbke->nqe", split, values) + model.attn_c_proj_bias[0]
    at = jnp.where(tokens[:, queries, None] > 0, table[queries, 1], table[queries, 0])
    return model.think(0, at + moved)


def _bits(tokens: Int[Array, "batch length"], dtype) -> Float[Array, "batch length"]:
    return tokens.astype(dtype)
