"""A one-layer decoder that reads clauses: the experiment model of the LEGO paper (Section 7).

A clause is five tokens. Its query, key and value are sums of what the token in each slot contributes. A
clause is not normalised before attention, so a contribution depends only on the token and its slot: all
contributions are tables over tokens, computed once in each step whatever the size of the batch. Only answers
have queries, and only the variable and the value are read from what they write. `plain` is the same model
written out clause by clause."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from stagewise.models.sizes import Clauses


@runtime_checkable
class Sentences(Protocol):
    """What the decoder reads: predicate l has variables[l], actions[l - 1], variables[l - 1], and answer l
    has answered[l], values[l]."""

    @property
    def variables(self) -> Int[Array, "batch answers"]: ...

    @property
    def actions(self) -> Int[Array, "batch length"]: ...

    @property
    def answered(self) -> Int[Array, "batch answers"]: ...

    @property
    def values(self) -> Int[Array, "batch answers"]: ...

    @property
    def length(self) -> int: ...

    def _replace(self, **changes: Array) -> Sentences: ...


class Answers(NamedTuple):
    """Logits of the answers 1..L: which variable, and which value."""

    variables: Float[Array, "batch length variables"]
    values: Float[Array, "batch length values"]


class Tables(NamedTuple):
    """What a token contributes to queries, keys and values, by the slot it stands in: [tokens, parts, D]."""

    result: Array  # slot 1, variables: keys and values
    action: Array  # slot 2
    source: Array  # slot 3, variables
    variable: Array  # slot 4: queries, keys and values
    value: Array  # slot 5


class ClauseDecoder(eqx.Module):
    """A decoder, given by its weights. The embedding of the blank token is zero. Tokens are numbered in the
    order variables, actions, values.

    `positions` has an embedding for each place, which acts as a sixth token of every clause. It is empty
    without position encodings."""

    tokens: Float[Array | np.ndarray, "tokens E"]
    queries: Float[Array | np.ndarray, "2 E D"]
    keys: Float[Array | np.ndarray, "5 E D"]
    contents: Float[Array | np.ndarray, "5 E D"]
    skip: Float[Array | np.ndarray, "skipped E D"]
    out: Float[Array | np.ndarray, "D D"]
    up: Float[Array | np.ndarray, "D inner"]
    up_bias: Float[Array | np.ndarray, " inner"]
    down: Float[Array | np.ndarray, "inner D"]
    down_bias: Float[Array | np.ndarray, " D"]
    variable_head: Float[Array | np.ndarray, "D variables"]
    value_head: Float[Array | np.ndarray, "D values"]
    positions: Float[Array | np.ndarray, "places E"]
    position_maps: Float[Array | np.ndarray, "maps E D"]
    heads: int = eqx.field(static=True)

    def __call__(
        self,
        sentences: Sentences,
        length: Int[Array, ""] | None = None,
        raised: Float[Array, "query key"] | None = None,
    ) -> Answers:
        """Return the logits of the answers 1..L, each computed from the predicates and from the earlier
        answers as they stand in the sentence.

        `length` is the length of the chain if it is shorter than the arrays; `raised` is added to the
        attention scores, to see what that changes."""
        answers, clauses = self._clauses(sentences, length)
        pattern = self.attend(answers[:, :, 0], clauses[:, :, 0], seen(sentences.length, length), raised)
        return self.read_out(pattern, clauses[:, :, 1], answers)

    def attention(
        self, sentences: Sentences, length: Int[Array, ""] | None = None
    ) -> Float[Array, "batch head query key"]:
        """Return the attention of answers 0..L-1; the keys are predicates 1..L, then answers 0..L-1."""
        answers, clauses = self._clauses(sentences, length)
        return self.attend(answers[:, :, 0], clauses[:, :, 0], seen(sentences.length, length))

    def _clauses(self, s: Sentences, length: Int[Array, ""] | None):
        """Return the answers 0..L-1, which ask, and the keys and contents of all clauses before the last
        answer. Answers stand right behind the predicates that are there."""
        tables = self.tables()
        places = jnp.arange(s.length) + (s.length if length is None else length)
        answers = self.answers(tables, s.answered[:, :-1], s.values[:, :-1], places)
        return answers, jnp.concatenate([self.predicates(tables, s), answers[:, :, 1:3]], axis=1)

    def tables(self) -> Tables:
        variables, values = self.variable_head.shape[1], self.value_head.shape[1]
        x, g, y = jnp.split(self.tokens, [variables, len(self.tokens) - values])

        def project(tokens, *maps):
            return jnp.einsum("te,ped->tpd", tokens, jnp.stack(maps))

        answer = [
            (self.queries[i], self.keys[3 + i], self.contents[3 + i], *self.skip[i : i + 1]) for i in range(2)
        ]
        predicate = [(self.keys[i], self.contents[i]) for i in range(3)]
        return Tables(
            project(x, *predicate[0]),
            project(g, *predicate[1]),
            project(x, *predicate[2]),
            project(x, *answer[0]),
            project(y, *answer[1]),
        )

    def predicates(self, tables: Tables, s: Sentences) -> Float[Array, "batch length 2 D"]:
        """Keys and contents of the predicates."""
        held = (
            tables.result[s.variables[:, 1:]] + tables.action[s.actions] + tables.source[s.variables[:, :-1]]
        )
        return held + self.placed(jnp.arange(s.length))[:, 1:]

    def answers(
        self,
        tables: Tables,
        variables: Int[Array, "batch n"],
        values: Int[Array, "batch n"],
        places: Int[Array, " n"],
    ) -> Float[Array, "batch n parts D"]:
        """Return the queries, keys and contents of answers at these places, and with `skip` also what each
        answer adds to the output of attention."""
        held = tables.variable[variables] + tables.value[values]
        return held.at[:, :, :3].add(self.placed(places))

    def placed(self, places: Int[Array, " n"]) -> Float[Array, "#n #3 #D"]:
        """What each place adds to queries, keys and contents."""
        if not len(self.positions):
            return jnp.zeros((1, 3, 1), self.tokens.dtype)
        return jnp.einsum("pe,med->pmd", jnp.asarray(self.positions)[places], self.position_maps)

    def attend(
        self,
        query: Float[Array, "batch query D"],
        keys: Float[Array, "batch key D"],
        visible: Bool[Array, "query key"],
        raised=None,
    ):
        """Attention patterns [batch, head, query, key]."""
        query, keys = self.by_head(query), self.by_head(keys)
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, keys) / sqrt(query.shape[-1])
        scores = scores if raised is None else scores + raised
        return jax.nn.softmax(jnp.where(visible, scores, -jnp.inf), axis=-1)

    def by_head(self, x: Float[Array, "*n D"]) -> Float[Array, "*n head d"]:
        return x.reshape(*x.shape[:-1], self.heads, -1)

    def read_out(
        self,
        pattern: Float[Array, "batch head query key"],
        contents: Float[Array, "batch key D"],
        answers: Float[Array, "batch query parts D"],
    ) -> Answers:
        """Return the logits: the output of attention goes through the perceptron, then through the variable
        head and the value head."""
        mixed = jnp.einsum("bhqk,bkhd->bqhd", pattern, self.by_head(contents))
        x = mixed.reshape(*mixed.shape[:2], -1) @ self.out
        if len(self.skip):
            x = x + answers[:, :, 3]
        x = x + jax.nn.relu(x @ self.up + self.up_bias) @ self.down + self.down_bias
        return Answers(x @ self.variable_head, x @ self.value_head)

    def weights(self) -> dict[str, Array | np.ndarray]:
        """The trained arrays by name."""
        return {name: value for name, value in vars(self).items() if name != "heads"}


def seen(room: int, length: Int[Array, ""] | None = None) -> Bool[Array, "query key"]:
    """Say which clauses answer l sees: the predicates that are there, and the answers up to itself."""
    place = jnp.arange(room)
    there = jnp.broadcast_to(place < (room if length is None else length), (room, room))
    return jnp.concatenate([there, place[None, :] <= place[:, None]], axis=1)


def draw(
    shape: Clauses, variables: int, actions: int, values: int, rng: np.random.Generator, dtype=np.float32
) -> ClauseDecoder:
    """Draw a decoder as it starts. Weights are normal, scaled so that activations keep their size; token
    embeddings have the scale `token_scale`."""
    E, D = shape.embedding, shape.width

    def normal(scale, *size):
        return (scale * rng.standard_normal(size, np.float32)).astype(dtype)

    return ClauseDecoder(
        tokens=normal(shape.token_scale, variables + actions + values, E),
        queries=normal(E**-0.5, 2, E, D),
        keys=normal(E**-0.5, 5, E, D),
        contents=normal(E**-0.5, 5, E, D),
        skip=normal(E**-0.5, 2 if shape.skip else 0, E, D),
        out=normal(D**-0.5, D, D),
        up=normal((2 / D) ** 0.5, D, shape.inner),
        up_bias=np.zeros(shape.inner, dtype),
        down=normal(shape.inner**-0.5, shape.inner, D),
        down_bias=np.zeros(D, dtype),
        variable_head=normal(D**-0.5, D, variables),
        value_head=normal(D**-0.5, D, values),
        positions=position_table(shape, normal).astype(dtype),
        position_maps=normal(E**-0.5, 3 if shape.encoding != "none" else 0, E, D),
        heads=shape.heads,
    )


def position_table(shape: Clauses, normal) -> np.ndarray:
    """Return the embeddings of places. Learned ones start like token embeddings; sinusoidal ones are the
    usual waves, scaled to the size of token embeddings."""
    if shape.encoding == "none":
        return np.zeros((0, shape.embedding))
    if shape.encoding == "learned":
        return normal(shape.token_scale, shape.places, shape.embedding)
    rates = 10000.0 ** (-np.arange(0, shape.embedding, 2) / shape.embedding)
    angle = np.arange(shape.places)[:, None] * rates
    return (
        shape.token_scale
        * sqrt(2)
        * np.stack([np.sin(angle), np.cos(angle)], -1).reshape(shape.places, -1)[:, : shape.embedding]
    )


def plain(
    model: ClauseDecoder, sentences: Sentences, order: Int[np.ndarray, " length"] | None = None
) -> tuple[Answers, Float[Array, "batch head query key"]]:
    """Compute the same model the usual way: clauses are embedded slot by slot and joined, every clause is
    projected and attends to itself and to all before it, and the whole model runs at every place.

    Returns the logits of the answers, and the attention of answers 0..L-1. `order` says which predicate
    stands at which place."""
    s, E = sentences, model.tokens.shape[1]
    variables, values = model.variable_head.shape[1], model.value_head.shape[1]
    actions = len(model.tokens) - variables - values
    blank = jnp.zeros((*s.actions.shape, E), model.tokens.dtype)
    x, g, y = (
        (lambda i: model.tokens[i]),
        (lambda i: model.tokens[variables + i]),
        (lambda i: model.tokens[variables + actions + i]),
    )
    predicates = jnp.concatenate(
        [x(s.variables[:, 1:]), g(s.actions), x(s.variables[:, :-1]), blank, blank], -1
    )
    answers = jnp.concatenate([blank, blank, blank, x(s.answered[:, :-1]), y(s.values[:, :-1])], -1)
    clauses = jnp.concatenate([predicates if order is None else predicates[:, order], answers], axis=1)
    queries = jnp.concatenate([jnp.zeros((3, *model.queries.shape[1:]), model.queries.dtype), model.queries])
    q, k, v = (clauses @ maps.reshape(5 * E, -1) for maps in (queries, model.keys, model.contents))
    if len(model.positions):
        placed = [model.positions[: clauses.shape[1]] @ maps for maps in model.position_maps]
        q, k, v = q + placed[0], k + placed[1], v + placed[2]
    q, k, v = (model.by_head(part) for part in (q, k, v))
    place = jnp.arange(clauses.shape[1])
    scores = jnp.where(
        place[None, :] <= place[:, None], jnp.einsum("bqhd,bkhd->bhqk", q, k) / sqrt(q.shape[-1]), -jnp.inf
    )
    pattern = jax.nn.softmax(scores, -1)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", pattern, v)
    h = mixed.reshape(*mixed.shape[:2], -1) @ model.out
    if len(model.skip):
        h = h + clauses[..., 3 * E :] @ model.skip.reshape(2 * E, -1)
    h = h + jax.nn.relu(h @ model.up + model.up_bias) @ model.down + model.down_bias
    asked = h[:, s.length :]
    return Answers(asked @ model.variable_head, asked @ model.value_head), pattern[:, :, s.length :]
