"""Greedy rollout of a clause decoder: the model reads the answers that it wrote before."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array

from stagewise.models.clause_decoder import ClauseDecoder, Sentences


def rollout(model: ClauseDecoder, sentences: Sentences) -> Sentences:
    """Return the sentences with answers 1..L written by the model, one after the other. Keys and contents of
    earlier clauses are kept, so each clause is computed once."""
    tables, length = model.tables(), sentences.length
    predicates = model.predicates(tables, sentences)
    place = jnp.arange(2 * length)

    def write(state, step):
        clauses, variable, value = state
        asking = model.answers(tables, variable[:, None], value[:, None], jnp.array([length]) + step)
        clauses = jax.lax.dynamic_update_slice_in_dim(clauses, asking[:, :, 1:3], length + step, axis=1)
        pattern = model.attend(asking[:, :, 0], clauses[:, :, 0], (place <= length + step)[None])
        logits = model.read_out(pattern, clauses[:, :, 1], asking)
        variable, value = _largest(logits.variables[:, 0]), _largest(logits.values[:, 0])
        return (clauses, variable, value), (variable, value)

    start = (
        jnp.pad(predicates, ((0, 0), (0, length), (0, 0), (0, 0))),
        sentences.answered[:, 0],
        sentences.values[:, 0],
    )
    _, (variables, values) = jax.lax.scan(write, start, jnp.arange(length))
    return sentences._replace(
        answered=jnp.concatenate([sentences.answered[:, :1], variables.T], axis=1),
        values=jnp.concatenate([sentences.values[:, :1], values.T], axis=1),
    )


def _largest(logits: Array) -> Array:
    return jnp.argmax(logits, axis=-1).astype(jnp.int32)
