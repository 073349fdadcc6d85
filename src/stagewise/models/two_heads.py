"""The symmetric two-headed transformer in two forms: with its weights, and with its scores."""

from __future__ import annotations

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from stagewise.precision import in_double


def attend(scores: Float[Array, "... key query"]) -> Float[Array, "... key query"]:
    """Softmax over keys. Rows are keys and columns are queries, as the paper writes its scores."""
    return jax.nn.softmax(scores, axis=-2)


def head_outputs(
    values: Float[Array, "2 *n key"], scores: Float[Array, "2 *n key query"]
) -> Float[Array, " 2 *n"]:
    """H_h(X) = sum over queries and keys of attention times w_h . x_key."""
    return jnp.einsum("...kq,...k->...", attend(scores), values)


def contrast(heads: Float[Array, " 2 *n"], bias: Float[ArrayLike, ""]) -> Float[Array, "*n"]:
    """f = relu(H₊ + b) − relu(H₋ + b), equation (1)."""
    positive, negative = jax.nn.relu(heads + bias)
    return positive - negative


class _TwoHeads(eqx.Module):
    """What both forms share. Each form says how it scores pairs of tokens."""

    neurons: eqx.AbstractVar[Float[Array, "2 d"]]
    bias: eqx.AbstractVar[Float[Array, ""]]

    @abstractmethod
    def token_scores(self, tokens: Float[Array, "length d"]) -> Float[Array, "2 key query"]:
        """Attention score of every pair of tokens in both heads."""

    @in_double
    def __call__(self, tokens: Float[Array, "length d"]) -> Float[Array, ""]:
        return contrast(head_outputs(self.neurons @ tokens.T, self.token_scores(tokens)), self.bias)

    @in_double
    def attention(self, tokens: Float[Array, "length d"]) -> dict[str, Float[Array, "query key"]]:
        """Attention patterns by name; each row is a query and sums to one."""
        positive, negative = jnp.swapaxes(attend(self.token_scores(tokens)), -1, -2)
        return {"head+": positive, "head-": negative}


class TwoHeads(_TwoHeads):
    """Weights as the paper writes them: one neuron, one key matrix and one query matrix for each head; a
    fixed bias."""

    neurons: Float[Array, "2 d"]
    keys: Float[Array, "2 m d"]
    queries: Float[Array, "2 m d"]
    bias: Float[Array, ""]

    def token_scores(self, tokens):
        return jnp.einsum("hmd,kd,hme,qe->hkq", self.keys, tokens, self.queries, tokens)


class ScoredTwoHeads(_TwoHeads):
    """The same function of a sequence, with the score matrices W_K^T W_Q in place of keys and queries. It
    therefore stands for any width, also an infinite one."""

    neurons: Float[Array, "2 d"]
    scores: Float[Array, "2 d d"]  # row: key signal, column: query signal
    bias: Float[Array, ""]

    def token_scores(self, tokens):
        return jnp.einsum("kd,hde,qe->hkq", tokens, self.scores, tokens)

    def widened(self, dimension: int) -> ScoredTwoHeads:
        """Return the same model for tokens in a larger space; it does not see the added dimensions."""
        more = dimension - self.neurons.shape[-1]
        neurons, scores = (
            jnp.pad(self.neurons, ((0, 0), (0, more))),
            jnp.pad(self.scores, ((0, 0), (0, more), (0, more))),
        )
        return ScoredTwoHeads(neurons=neurons, scores=scores, bias=self.bias)
