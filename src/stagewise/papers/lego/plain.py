"""Definition 3.5 written out: one-hot tokens, clauses of five slots, one score matrix, neurons for every slot
and token.

Slow on purpose: it is what the closed forms and the gradient formulas are checked against, at a few
variables."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations, product

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from stagewise.papers.lego.activation import clipped, smooth_relu


@dataclass(frozen=True)
class Language:
    """Tokens are variables, actions, values and the blank, in this order; the blank's embedding is zero."""

    variables: int
    table: tuple[tuple[int, ...], ...]

    @property
    def maps(self) -> np.ndarray:
        return np.array(self.table)

    @property
    def actions(self) -> int:
        return len(self.table)

    @property
    def values(self) -> int:
        return len(self.table[0])

    @property
    def size(self) -> int:
        """d."""
        return self.variables + self.actions + self.values + 1

    def where(self, kind: str) -> slice:
        """The numbers of the tokens of a kind, `actions` or `values`."""
        first = self.variables if kind == "actions" else self.variables + self.actions
        return slice(first, first + getattr(self, kind))

    def every_sentence(self, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Variables, actions and values of all sentences of a length."""
        named = list(permutations(range(self.variables), length + 1))
        rows = [
            (x, g, y)
            for x in named
            for g in product(range(self.actions), repeat=length)
            for y in range(self.values)
        ]
        variables, actions, first = (np.array(column) for column in zip(*rows))
        passed = [first]
        for step in range(length):
            passed.append(self.maps[actions[:, step], passed[-1]])
        return variables, actions, np.stack(passed, 1)

    def clauses(
        self, variables: np.ndarray, actions: np.ndarray, values: np.ndarray, answered: int
    ) -> np.ndarray:
        """Predicates 1..L and answers 0..answered, embedded: [n, clauses, 5, d]."""
        n, length = actions.shape
        tokens = np.full((n, length + answered + 1, 5), self.size - 1)
        tokens[:, :length, 0], tokens[:, :length, 1], tokens[:, :length, 2] = (
            variables[:, 1:],
            self.variables + actions,
            variables[:, :-1],
        )
        tokens[:, length:, 3] = variables[:, : answered + 1]
        tokens[:, length:, 4] = self.variables + self.actions + values[:, : answered + 1]
        embedding = np.eye(self.size)
        embedding[-1] = 0
        return embedding[tokens]

    def target(self, variables: np.ndarray, values: np.ndarray, step: int, slot: int) -> np.ndarray:
        """The token that answer `step` has in a slot, from 1 to 5."""
        tokens = {4: variables[:, step], 5: self.variables + self.actions + values[:, step]}
        return tokens.get(slot, np.full(len(variables), self.size - 1))


def attention(
    scores: Float[Array, "5 d 5 d"], clauses: Float[Array | np.ndarray, "n clause 5 d"]
) -> Float[Array, "n clause"]:
    """Of the last clause on all, Z_j' Q Z_k without scaling."""
    return jax.nn.softmax(jnp.einsum("npa,paqb,nkqb->nk", clauses[:, -1], scores, clauses), axis=-1)


def activations(
    weights: Float[Array, "d m 5 d"], attended: Float[Array | np.ndarray, "n 5 d"], bias: float
) -> Float[Array, "n d m"]:
    """Lambda of every token's neurons in one slot."""
    return jnp.einsum("jmpa,npa->njm", weights, attended) + bias


def loss(
    weights: Float[Array, "d m 5 d"],
    scores: Float[Array, "5 d 5 d"],
    clauses: Float[Array | np.ndarray, "n clause 5 d"],
    target: Int[Array | np.ndarray, " n"],
    constants: dict,
):
    """Cross-entropy of one slot, mean over sentences."""
    attended = jnp.einsum("nk,nkpa->npa", attention(scores, clauses), clauses)
    raw = smooth_relu(
        activations(weights, attended, constants["bias"]), constants["rho"], constants["q"]
    ).sum(-1)
    outputs = clipped(raw, constants["top"], constants["clip_width"])
    return jnp.mean(jax.nn.logsumexp(outputs, -1) - jnp.take_along_axis(outputs, target[:, None], -1)[:, 0])
