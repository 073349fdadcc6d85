"""GPT-2: pre-norm blocks, learned positions, a head tied to the embedding. Any depth, any number of heads.

Weights of all blocks are stacked along a first axis, named and laid out (inputs by outputs) as Hugging Face's GPT-2 has them,
so that the two can be exchanged: see `to_hugging_face` and `from_hugging_face`."""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from stagewise.errors import require

EPSILON = 1e-5


@dataclass(frozen=True)
class Shape:
    """The sizes of a GPT. `inner` is the width of the multilayer perceptron, four times the width unless given."""

    layers: int = 1
    heads: int = 1
    width: int = 720
    vocabulary: int = 2
    positions: int = 64
    inner: int = 0

    def __post_init__(self):
        for name in ("layers", "heads", "width", "vocabulary", "positions"):
            value = getattr(self, name)
            require(value >= 1, f"model: {name} must be at least 1, not {value} (set --model.{name})")
        require(self.inner >= 0, f"model: inner must not be negative, not {self.inner} (set --model.inner)")
        require(
            self.width % self.heads == 0,
            f"model: {self.heads} heads do not divide a width of {self.width} (set --model.heads or --model.width)",
        )

    @property
    def hidden(self) -> int:
        return self.inner or 4 * self.width


def normalise(x: Float[Array, "*n D"], scale: Float[Array, " D"], bias: Float[Array, " D"]) -> Float[Array, "*n D"]:
    """Layer norm."""
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + EPSILON) * scale + bias


class GPT(eqx.Module):
    """A GPT-2 by its weights. Call it with token ids to get the logits of every next token."""

    wte: Float[Array, "vocabulary D"]
    wpe: Float[Array, "positions D"]
    ln_1_weight: Float[Array, "layers D"]
    ln_1_bias: Float[Array, "layers D"]
    attn_c_attn_weight: Float[Array, "layers D three_D"]
    attn_c_attn_bias: Float[Array, "layers three_D"]
    attn_c_proj_weight: Float[Array, "layers D D"]
    attn_c_proj_bias: Float[Array, "layers D"]
    ln_2_weight: Float[Array, "layers D"]
    ln_2_bias: Float[Array, "layers D"]
    mlp_c_fc_weight: Float[Array, "layers D hidden"]
    mlp_c_fc_bias: Float[Array, "layers hidden"]
    mlp_c_proj_weight: Float[Array, "layers hidden D"]
    mlp_c_proj_bias: Float[Array, "layers D"]
    ln_f_weight: Float[Array, " D"]
    ln_f_bias: Float[Array, " D"]
    heads: int = eqx.field(static=True)

    @property
    def layers(self) -> int:
        return len(self.ln_1_weight)

    def __call__(self, tokens: Int[Array, " length"]) -> Float[Array, "length vocabulary"]:
        x, _ = self._run(tokens)
        return normalise(x, self.ln_f_weight, self.ln_f_bias) @ self.wte.T

    def attention(self, tokens: Int[Array, " length"]) -> dict[str, Float[Array, "query key"]]:
        """Attention patterns by name; each row is a query and sums to one."""
        _, patterns = self._run(tokens)
        return {f"layer{layer + 1}.head{head + 1}": pattern[head] for layer, pattern in enumerate(patterns) for head in range(self.heads)}

    def _run(self, tokens):
        x, patterns = self.wte[tokens] + self.wpe[: len(tokens)], []
        for layer in range(self.layers):
            moved, pattern = self.attend(layer, x)
            x = self.think(layer, x + moved)
            patterns.append(pattern)
        return x, patterns

    def attend(self, layer: int, x: Float[Array, "length D"], queries: slice = slice(None)):
        """What attention adds at the places asked for, and its patterns [head, query, key] there."""
        length, D = x.shape
        q, k, v = self.keys_and_all(layer, x)
        q = q[queries]
        scores = jnp.einsum("qhd,khd->hqk", q, k) / np.sqrt(D // self.heads)
        earlier = jnp.arange(length)[None, :] <= jnp.arange(length)[queries][:, None]
        pattern = jax.nn.softmax(jnp.where(earlier, scores, -jnp.inf), axis=-1)
        mixed = jnp.einsum("hqk,khd->qhd", pattern, v).reshape(-1, D)
        return mixed @ self.attn_c_proj_weight[layer] + self.attn_c_proj_bias[layer], pattern

    def keys_and_all(self, layer: int, x: Float[Array, "*n D"]):
        """Queries, keys and values [*n, head, D / heads] of a block's input."""
        normed = normalise(x, self.ln_1_weight[layer], self.ln_1_bias[layer])
        joined = normed @ self.attn_c_attn_weight[layer] + self.attn_c_attn_bias[layer]
        return (part.reshape(*part.shape[:-1], self.heads, -1) for part in jnp.split(joined, 3, axis=-1))

    def think(self, layer: int, x: Float[Array, "*n D"]) -> Float[Array, "*n D"]:
        """The block's multilayer perceptron, added to its input."""
        normed = normalise(x, self.ln_2_weight[layer], self.ln_2_bias[layer])
        up = jax.nn.gelu(normed @ self.mlp_c_fc_weight[layer] + self.mlp_c_fc_bias[layer], approximate=True)
        return x + up @ self.mlp_c_proj_weight[layer] + self.mlp_c_proj_bias[layer]

    def weights(self) -> dict[str, Array]:
        """The trained arrays by name."""
        return {name: value for name, value in vars(self).items() if name != "heads"}


def draw(shape: Shape, key: Key[Array, ""], scale: float = 0.02, embedding_scale: float = 0.02) -> GPT:
    """GPT-2's start: normal weights, output projections smaller by sqrt(2 layers), norms at one, biases at zero."""
    L, D, hidden = shape.layers, shape.width, shape.hidden
    keys = iter(jax.random.split(key, 6))

    def normal(scale, *size):
        return scale * jax.random.normal(next(keys), size, float)

    out = scale / np.sqrt(2 * L)
    return GPT(
        wte=normal(embedding_scale, shape.vocabulary, D), wpe=normal(embedding_scale, shape.positions, D),
        ln_1_weight=jnp.ones((L, D)), ln_1_bias=jnp.zeros((L, D)),
        attn_c_attn_weight=normal(scale, L, D, 3 * D), attn_c_attn_bias=jnp.zeros((L, 3 * D)),
        attn_c_proj_weight=normal(out, L, D, D), attn_c_proj_bias=jnp.zeros((L, D)),
        ln_2_weight=jnp.ones((L, D)), ln_2_bias=jnp.zeros((L, D)),
        mlp_c_fc_weight=normal(scale, L, D, hidden), mlp_c_fc_bias=jnp.zeros((L, hidden)),
        mlp_c_proj_weight=normal(out, L, hidden, D), mlp_c_proj_bias=jnp.zeros((L, D)),
        ln_f_weight=jnp.ones(D), ln_f_bias=jnp.zeros(D), heads=shape.heads,
    )  # fmt: skip


def answers(model: GPT, tokens: Int[Array, "batch length"], first: int) -> Float[Array, "batch asked vocabulary"]:
    """Logits at the places from `first` on, for sequences of two kinds of tokens, with nothing computed that they do not read.

    Exactly the plain model, reordered. A binary token at a place has one of two embeddings, so keys, values and queries of the
    first block come from tables over (place, bit), with the output projection folded into the values; in the last block
    only the places asked for go through attention and the perceptron."""
    last = model.layers - 1
    asked = slice(first, None)
    x = _first_block(model, tokens, asked if last == 0 else slice(None))
    for layer in range(1, model.layers):
        places = asked if layer == last else slice(None)
        moved = jax.vmap(lambda one: model.attend(layer, one, places)[0])(x)
        x = model.think(layer, x[:, places] + moved)
    return normalise(x, model.ln_f_weight, model.ln_f_bias) @ model.wte.T


def _first_block(model: GPT, tokens: Int[Array, "batch length"], queries: slice) -> Float[Array, "batch asked D"]:
    batch, length = tokens.shape
    table = model.wpe[:length, None] + model.wte[None, :2]  # [place, bit, D]
    q, k, v = model.keys_and_all(0, table)
    D = table.shape[-1]
    by_head = model.attn_c_proj_weight[0].reshape(model.heads, -1, D)
    values = jnp.einsum("tbhd,hde->hbte", v, by_head)  # what a bit adds to the output where a head looks at it
    scores = jnp.einsum("qahd,kbhd->habqk", q[queries], k) / np.sqrt(D // model.heads)
    earlier = jnp.arange(length)[None, :] <= jnp.arange(length)[queries][:, None]
    bit = tokens.astype(table.dtype)
    asks, seen = bit[:, None, queries, None], bit[:, None, None, :]
    (s00, s01), (s10, s11) = jnp.moveaxis(scores, 0, 2)
    picked = s00 + seen * (s01 - s00) + asks * (s10 - s00) + asks * seen * (s11 - s10 - s01 + s00)
    pattern = jax.nn.softmax(jnp.where(earlier, picked, -jnp.inf), axis=-1)  # [batch, head, query, key]
    split = jnp.stack([pattern * (1 - seen), pattern * seen], axis=2)  # by the bit that is looked at
    moved = jnp.einsum("nhbqk,hbke->nqe", split, values) + model.attn_c_proj_bias[0]
    at = jnp.where(bit[:, queries, None] > 0, table[queries, 1], table[queries, 0])
    return model.think(0, at + moved)


def to_hugging_face(model: GPT) -> dict[str, np.ndarray]:
    """The weights under Hugging Face's names for GPT2LMHeadModel; its head is tied to the embedding."""
    named = {"transformer.wte.weight": model.wte, "transformer.wpe.weight": model.wpe,
             "transformer.ln_f.weight": model.ln_f_weight, "transformer.ln_f.bias": model.ln_f_bias}  # fmt: skip
    for name, stacked in model.weights().items():
        if name.startswith(("ln_1", "ln_2", "attn", "mlp")):
            for layer in range(model.layers):
                named[f"transformer.h.{layer}.{_dotted(name)}"] = stacked[layer]
    return {name: np.asarray(value) for name, value in named.items()}


def from_hugging_face(named: dict[str, np.ndarray], heads: int) -> GPT:
    """A GPT of the weights of a GPT2LMHeadModel, by its names."""
    layers = len({name.split(".")[2] for name in named if name.startswith("transformer.h.")})
    fields = {}
    for name in GPT.__dataclass_fields__:
        if name in ("wte", "wpe"):
            fields[name] = jnp.asarray(named[f"transformer.{name}.weight"])
        elif name.startswith("ln_f"):
            fields[name] = jnp.asarray(named[f"transformer.{_dotted(name)}"])
        elif name != "heads":
            fields[name] = jnp.stack([jnp.asarray(named[f"transformer.h.{layer}.{_dotted(name)}"]) for layer in range(layers)])
    return GPT(**fields, heads=heads)


def _dotted(name: str) -> str:
    """attn_c_proj_weight -> attn.c_proj.weight, ln_1_bias -> ln_1.bias."""
    part, _, kind = name.rpartition("_")
    for room in ("attn_", "mlp_"):
        part = part.replace(room, room[:-1] + ".", 1) if part.startswith(room) else part
    return f"{part}.{kind}"
