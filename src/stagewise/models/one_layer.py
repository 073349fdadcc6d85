"""A one-layer transformer that sums over all positions, in two forms: with its weights, and with the few
arrays that its output depends on."""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from stagewise.precision import in_double


class _OneLayer(eqx.Module):
    """What both forms share: every word looks at every word, and the outputs of all of them are added up."""

    @abstractmethod
    def token_scores(self, tokens: Int[Array, " length"]) -> Float[Array, "key query"]:
        """Attention score of every pair of words, before the softmax."""

    @abstractmethod
    def token_values(self, tokens: Int[Array, " length"]) -> Float[Array, " length"]:
        """G of every word: what the word adds to the output where a query looks at it."""

    @in_double
    def __call__(self, tokens: Int[Array, " length"]) -> Float[Array, ""]:
        """F(X)."""
        return jnp.einsum(
            "kq,k->", jax.nn.softmax(self.token_scores(tokens), axis=0), self.token_values(tokens)
        )

    @in_double
    def attention(self, tokens: Int[Array, " length"]) -> dict[str, Float[Array, "query key"]]:
        """Attention patterns by name; each row is a query and sums to one."""
        return {"head": jax.nn.softmax(self.token_scores(tokens), axis=0).T}


class OneLayer(_OneLayer):
    """F(X) = sum over queries of a^T W W_V X softmax((W_K X)^T W_Q x / sqrt(m)): linear neurons with fixed
    output signs a."""

    W: Float[Array, "m1 m"]
    WV: Float[Array, "m d"]
    WK: Float[Array, "m d"]
    WQ: Float[Array, "m d"]
    signs: Float[Array, " m1"]

    def token_scores(self, tokens):
        return self.WK[:, tokens].T @ self.WQ[:, tokens] / jnp.sqrt(self.WK.shape[0])

    def token_values(self, tokens):
        return self.signs @ self.W @ self.WV[:, tokens]


class ScoredOneLayer(_OneLayer):
    """The same function, held as G [d] and S = W_K^T W_Q [d, d] of a network of width m."""

    G: Float[Array, " d"]
    S: Float[Array, "d d"]
    width: Float[Array, ""]

    def token_scores(self, tokens):
        return self.S[tokens[:, None], tokens[None, :]] / jnp.sqrt(self.width)

    def token_values(self, tokens):
        return self.G[tokens]
