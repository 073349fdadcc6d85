"""What a network of given G and S does on sequences, and how the loss pulls at G and S (Appendix B).

Sequences are padded to a common length: words that are not `present` neither ask nor are looked at. So are
training sets: sequences of `weight` zero do not count."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int


def attend(
    S: Float[Array, "d d"],
    tokens: Int[Array, "n length"],
    present: Float[Array, " length"],
    width: Float[ArrayLike, ""],
):
    """Attention [n, key, query] in every sequence; columns of queries that are not there are zero."""
    scores = S[tokens[:, :, None], tokens[:, None, :]] / jnp.sqrt(width)
    return jax.nn.softmax(jnp.where(present[:, None] > 0, scores, -jnp.inf), axis=1) * present


def outputs(
    attention: Float[Array, "n key query"], G: Float[Array, " d"], tokens: Int[Array, "n length"]
) -> Float[Array, " n"]:
    """F of every sequence: the sum over queries of the G that each of them looks at."""
    return jnp.einsum("nkq,nk->n", attention, G[tokens])


def pulls(G: Float[Array, " d"], S: Float[Array, "d d"], data: dict[str, Array]):
    """b = -dLoss/dG [d], and M = -dLoss/dS as its entries [n, key, query] in each sequence."""
    tokens, label = data["tokens"], data["label"]
    attention = attend(S, tokens, data["present"], data["width"])
    pull = data["weight"] * label * jax.nn.sigmoid(-label * outputs(attention, G, tokens))
    values = G[tokens]
    mean = jnp.einsum("nkq,nk->nq", attention, values)
    M = attention * (values[:, :, None] - mean[:, None, :]) * (pull / jnp.sqrt(data["width"]))[:, None, None]
    b = jnp.zeros_like(G).at[tokens].add(attention.sum(-1) * pull[:, None])
    return b, M


def times(
    M: Float[Array, "n key query"], tokens: Int[Array, "n length"], C: Float[Array, "d e"]
) -> Float[Array, "d e"]:
    """M C, sequence by sequence."""
    return jnp.zeros_like(C).at[tokens].add(jnp.einsum("nkq,nqe->nke", M, C[tokens]))


def transposed_times(
    M: Float[Array, "n key query"], tokens: Int[Array, "n length"], C: Float[Array, "d e"]
) -> Float[Array, "d e"]:
    """M^T C, sequence by sequence."""
    return times(jnp.swapaxes(M, 1, 2), tokens, C)
