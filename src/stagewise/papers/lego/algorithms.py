"""Algorithms 1 and 2 on the whole of Definition 3.5, by gradient descent over all sentences: what the closed
forms shorten.

Slow on purpose. The step is a learning rate per sentence; attention's blocks other than (4, 3) and (4, 4)
stay zero (Assumption 3.5)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from stagewise.papers.lego.plain import Language, loss


def learn_one_step(
    language: Language,
    weights: Float[Array, "d m 5 d"],
    slot: int,
    rate: float,
    steps: int,
    constants: dict,
    seen: tuple[int, ...] = (1, 2, 3, 4, 5),
):
    """Stage 1 of both: neurons of one slot on chains of length 1, at uniform attention. `seen` are the slots
    that move (Assumption B.1 has 2 and 5)."""
    variables, actions, values = language.every_sentence(1)
    clauses, target = (
        language.clauses(variables, actions, values, 0),
        language.target(variables, values, 1, slot),
    )
    still = jnp.zeros((5, language.size, 5, language.size))
    moves = np.isin(np.arange(1, 6), seen).astype(float)[:, None]

    def step(weights, _):
        return weights - rate * moves * jax.grad(loss)(weights, still, clauses, target, constants), None

    return jax.lax.scan(step, weights, length=steps)[0]


def learn_attention(
    language: Language,
    weights: Float[Array, "d m 5 d"],
    scores: Float[Array, "5 d 5 d"],
    answers: tuple[int, ...],
    rate: float,
    steps: int,
    constants: dict,
):
    """Stage 2: scores on the values of some answers of chains of length 2, both for Algorithm 1 and the
    second for Algorithm 2."""
    variables, actions, values = language.every_sentence(2)
    given = [
        (
            language.clauses(variables, actions, values, answer - 1),
            language.target(variables, values, answer, 5),
        )
        for answer in answers
    ]
    trained = np.zeros((5, 1, 5, 1))
    trained[3, 0, 2, 0] = trained[3, 0, 3, 0] = 1

    def total(scores):
        return sum(loss(weights, scores, clauses, target, constants) for clauses, target in given)

    def step(scores, _):
        return scores - rate * trained * jax.grad(total)(scores), None

    return jax.lax.scan(step, scores, length=steps)[0]
