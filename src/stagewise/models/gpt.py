"""GPT-2: pre-norm blocks, learned positions, a head tied to the embedding. Any depth, any number of heads.

Weights of all blocks are stacked along a first axis, named and laid out (inputs by outputs) as in Hugging
Face's GPT-2, so that the two can be exchanged (`exchange.py`). `answers.py` computes the same model, but only
what a loss reads."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from math import sqrt
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from stagewise.models.sizes import Shape

EPSILON = 1e-5


def normalise(
    x: Float[Array | np.ndarray, "*n D"],
    scale: Float[Array | np.ndarray, " D"],
    bias: Float[Array | np.ndarray, " D"],
) -> Float[Array, "*n D"]:
    """Layer norm."""
    centred: Any = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + EPSILON) * scale + bias


def causal_softmax(
    scores: Float[Array, "*n query key"], queries: slice = slice(None)
) -> Float[Array, "*n query key"]:
    """Attention over the places up to the query's own."""
    places = jnp.arange(scores.shape[-1])
    return jax.nn.softmax(jnp.where(places[None, :] <= places[queries][:, None], scores, -jnp.inf), axis=-1)


Drop = Callable[[Array], Array]


def nothing(x: Array) -> Array:
    """No dropout."""
    return x


def dropout(rate: float, key: Key[Array, ""]) -> Drop:
    """Return dropout as GPT-2 applies it in training: to embeddings, to attention, and to what each half of a
    block adds. Every call draws anew."""
    calls = count()

    def drop(x: Array) -> Array:
        kept = jax.random.bernoulli(jax.random.fold_in(key, next(calls)), 1 - rate, x.shape)
        return jnp.where(kept, x / (1 - rate), 0)

    return drop


class GPT(eqx.Module):
    """A GPT-2, given by its weights. Call it with token ids to get the logits of the next token at every
    place."""

    wte: Float[Array | np.ndarray, "vocabulary D"]
    wpe: Float[Array | np.ndarray, "positions D"]
    ln_1_weight: Float[Array | np.ndarray, "layers D"]
    ln_1_bias: Float[Array | np.ndarray, "layers D"]
    attn_c_attn_weight: Float[Array | np.ndarray, "layers D three_D"]
    attn_c_attn_bias: Float[Array | np.ndarray, "layers three_D"]
    attn_c_proj_weight: Float[Array | np.ndarray, "layers D D"]
    attn_c_proj_bias: Float[Array | np.ndarray, "layers D"]
    ln_2_weight: Float[Array | np.ndarray, "layers D"]
    ln_2_bias: Float[Array | np.ndarray, "layers D"]
    mlp_c_fc_weight: Float[Array | np.ndarray, "layers D hidden"]
    mlp_c_fc_bias: Float[Array | np.ndarray, "layers hidden"]
    mlp_c_proj_weight: Float[Array | np.ndarray, "layers hidden D"]
    mlp_c_proj_bias: Float[Array | np.ndarray, "layers D"]
    ln_f_weight: Float[Array | np.ndarray, " D"]
    ln_f_bias: Float[Array | np.ndarray, " D"]
    heads: int = eqx.field(static=True)
    causal: bool = eqx.field(static=True, default=True)

    @property
    def layers(self) -> int:
        return len(self.ln_1_weight)

    def __call__(
        self, tokens: Int[Array, "*batch length"], drop: Drop = nothing
    ) -> Float[Array, "*batch length vocabulary"]:
        states, _ = self.states(tokens, drop)
        return self.read_out(states[-1])

    def attention(self, tokens: Int[Array, "*batch length"]) -> dict[str, Float[Array, "*batch query key"]]:
        """Attention patterns by name; each row is a query and sums to one."""
        _, patterns = self.states(tokens)
        named = {
            f"layer{layer + 1}.head{head + 1}": (layer, head)
            for layer in range(self.layers)
            for head in range(self.heads)
        }
        return {name: patterns[layer][..., head, :, :] for name, (layer, head) in named.items()}

    def states(
        self, tokens: Int[Array, "*batch length"], drop: Drop = nothing
    ) -> tuple[list[Array], list[Array]]:
        """The residual stream after every layer, and every layer's attention [*batch, head, query, key]."""
        x, states, patterns = drop(self.wte[tokens] + self.wpe[: tokens.shape[-1]]), [], []
        for layer in range(self.layers):
            moved, pattern = self.attend(layer, x, drop=drop)
            x = self.think(layer, x + moved, drop)
            states.append(x)
            patterns.append(pattern)
        return states, patterns

    def attend(
        self,
        layer: int,
        x: Float[Array, "*batch length D"],
        queries: slice = slice(None),
        drop: Drop = nothing,
    ):
        """Return what attention adds at the places asked for, and its patterns there, [*batch, head, query,
        key]."""
        q, k, v = self.queries_keys_values(layer, x)
        pattern = self.pattern(q[..., queries, :, :], k, queries)
        mixed = jnp.einsum("...hqk,...khd->...qhd", drop(pattern), v)
        mixed = mixed.reshape(*mixed.shape[:-2], -1)
        return drop(mixed @ self.attn_c_proj_weight[layer] + self.attn_c_proj_bias[layer]), pattern

    def pattern(
        self,
        q: Float[Array, "*batch query head d"],
        k: Float[Array, "*batch key head d"],
        queries: slice = slice(None),
    ):
        """Return the attention of the places asked for, [*batch, head, query, key]."""
        scores = jnp.einsum("...qhd,...khd->...hqk", q, k) / sqrt(q.shape[-1])
        return causal_softmax(scores, queries) if self.causal else jax.nn.softmax(scores, axis=-1)

    def queries_keys_values(self, layer: int, x: Float[Array | np.ndarray, "*n D"]):
        """Queries, keys and values [*n, head, D / heads] of a block's input."""
        normed = normalise(x, self.ln_1_weight[layer], self.ln_1_bias[layer])
        joined = normed @ self.attn_c_attn_weight[layer] + self.attn_c_attn_bias[layer]
        return (part.reshape(*part.shape[:-1], self.heads, -1) for part in jnp.split(joined, 3, axis=-1))

    def think(self, layer: int, x: Float[Array, "*n D"], drop: Drop = nothing) -> Float[Array, "*n D"]:
        """Return the input plus what the block's multilayer perceptron adds to it."""
        normed = normalise(x, self.ln_2_weight[layer], self.ln_2_bias[layer])
        up = jax.nn.gelu(normed @ self.mlp_c_fc_weight[layer] + self.mlp_c_fc_bias[layer], approximate=True)
        return x + drop(up @ self.mlp_c_proj_weight[layer] + self.mlp_c_proj_bias[layer])

    def read_out(self, x: Float[Array, "*n D"]) -> Float[Array, "*n vocabulary"]:
        """Return the logits from the output of the last block."""
        return normalise(x, self.ln_f_weight, self.ln_f_bias) @ self.wte.T

    def weights(self) -> dict[str, Array | np.ndarray]:
        """The trained arrays by name."""
        return {name: value for name, value in vars(self).items() if name not in ("heads", "causal")}


def draw(
    shape: Shape,
    rng: np.random.Generator,
    scale: float = 0.02,
    embedding_scale: float = 0.02,
    dtype=np.float32,
) -> GPT:
    """Draw a model as GPT-2 starts: normal weights, output projections smaller by sqrt(2 layers), norms at
    one, biases at zero."""
    L, D, hidden = shape.layers, shape.width, shape.hidden

    def normal(scale, *size):
        return (scale * rng.standard_normal(size, np.float32)).astype(dtype)

    def ones(*size):
        return np.ones(size, dtype)

    def zeros(*size):
        return np.zeros(size, dtype)

    out = scale / sqrt(2 * L)
    return GPT(
        wte=normal(embedding_scale, shape.vocabulary, D),
        wpe=normal(embedding_scale, shape.positions, D),
        ln_1_weight=ones(L, D),
        ln_1_bias=zeros(L, D),
        attn_c_attn_weight=normal(scale, L, D, 3 * D),
        attn_c_attn_bias=zeros(L, 3 * D),
        attn_c_proj_weight=normal(out, L, D, D),
        attn_c_proj_bias=zeros(L, D),
        ln_2_weight=ones(L, D),
        ln_2_bias=zeros(L, D),
        mlp_c_fc_weight=normal(scale, L, D, hidden),
        mlp_c_fc_bias=zeros(L, hidden),
        mlp_c_proj_weight=normal(out, L, hidden, D),
        mlp_c_proj_bias=zeros(L, D),
        ln_f_weight=ones(D),
        ln_f_bias=zeros(D),
        heads=shape.heads,
    )
