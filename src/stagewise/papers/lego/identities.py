"""Gradient formulas and closed forms beside the plain model, at random weights: relative differences."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from stagewise.papers.lego import gradients, plain
from stagewise.papers.lego.closed import SCORES, ideal_features
from stagewise.papers.lego.one_step import OneStep
from stagewise.papers.lego.retrieval import SLOTS, Retrieval
from stagewise.papers.lego.two_steps import TwoSteps, lane
from stagewise.training.program import INITIAL, generator

FORMULAS = (
    "fact_a",
    "lemma_a",
    "fact_b",
    "fact_d",
    "lemma_d",
    "one_step",
    "retrieval",
    "two_steps",
    "lemma_a_unweighted",
    "fact_b_without_loss",
    "fact_d_not_centred",
)
DIMS = {name: () for name in FORMULAS}
"""The last three are the formulas perturbed, as controls: logits all equal, half of the gradient, Xi not
centred."""


def measure(settings, seed: int) -> dict[str, Array]:
    rng = generator(seed, INITIAL)
    d, values = language_of(settings).size, settings.action.values
    drawn = {
        "weights": 0.3 * rng.standard_normal((d, settings.neurons, 5, d)),
        "scores": 0.5 * rng.standard_normal((5, d, 5, d)),
        "off_ideal": 0.1 * rng.standard_normal((values, values, settings.action.actions + values)),
        "four": rng.standard_normal(4),
    }
    return compared(settings, drawn)


def language_of(settings) -> plain.Language:
    return plain.Language(settings.variables, settings.table)


@partial(jax.jit, static_argnums=0)
def compared(settings, drawn: dict[str, Array]) -> dict[str, Array]:
    language, constants = language_of(settings), settings.constants() | {"clip_width": 0.3}
    return (
        first_stage(settings, language, drawn["weights"], constants)
        | second_stage(settings, language, drawn["weights"], drawn["scores"], constants)
        | {"two_steps": four_numbers(settings, language, drawn["off_ideal"], drawn["four"], constants)}
    )


def apart(found: Float[Array, "*n"], expected: Float[Array, "*n"]) -> Float[Array, ""]:
    """The largest difference over the largest entry."""
    return jnp.abs(found - expected).max() / jnp.abs(expected).max()


def first_stage(settings, language: plain.Language, weights: Array, constants: dict) -> dict[str, Array]:
    """Facts A.1 and B.1, Lemmas A.1 and A.2, and the closed form of stage 1, at uniform attention."""
    still = jnp.zeros((5, language.size, 5, language.size))
    variables, actions, values = language.every_sentence(1)
    clauses, copied, answer = (
        language.clauses(variables, actions, values, 0),
        variables[:, 1],
        language.target(variables, values, 1, 5),
    )
    auto = -jax.grad(plain.loss)(weights, still, clauses, copied, constants)
    fact = gradients.of_neurons(weights, still, clauses, copied, constants)
    lemma, unweighted = (
        gradients.lemma_a(weights, clauses, copied, constants, weighted) for weighted in (True, False)
    )
    stacked = jnp.stack([lemma[slot] for slot in ("result", "action", "source", "answered")], 2)

    mine = weights * np.array([0, 1, 0, 0, 1])[:, None]  # Assumption B.1: neurons see actions and values only
    auto5 = -jax.grad(plain.loss)(mine, still, clauses, answer, constants)
    there, its = language.where("actions"), language.where("values")
    expected = jnp.concatenate([auto5[its, :, 1, there], auto5[its, :, 4, its]], -1)
    gained, lost = (part[its] for part in gradients.fact_b(mine, clauses, answer, constants, there, its))
    return {
        "fact_a": apart(fact, auto),
        "lemma_a": apart(stacked, auto[:, :, :4]),
        "lemma_a_unweighted": apart(unweighted["result"], auto[:, :, 0]),
        "fact_b": apart(gained - lost, expected),
        "fact_b_without_loss": apart(gained, expected),
        "retrieval": closed_retrieval(settings, language, weights, constants, auto),
        "one_step": closed_first_stage(settings, language, mine, constants, clauses, answer),
    }


def closed_retrieval(
    settings, language: plain.Language, weights: Array, constants: dict, auto: Array
) -> Array:
    """The flow of slot 4 against the plain model's gradient, by slot."""
    n, there, its = slice(0, language.variables), language.where("actions"), language.where("values")
    slots = dict(zip(SLOTS, enumerate((n, there, n, n, its))))
    motion = Retrieval(language.variables, language.actions, language.values, settings.neurons)
    moved = motion.velocity(
        {name: weights[:, :, slot, tokens] for name, (slot, tokens) in slots.items()}, constants, np.ones(1)
    )
    return jnp.max(
        jnp.stack([apart(moved[name], auto[:, :, slot, tokens]) for name, (slot, tokens) in slots.items()])
    )


def closed_first_stage(
    settings,
    language: plain.Language,
    weights: Array,
    constants: dict,
    clauses: np.ndarray,
    answer: np.ndarray,
) -> Array:
    """The flow of features against the plain model's gradient, with the classes that are no values at their
    bias."""
    there, its = language.where("actions"), language.where("values")
    resting = jnp.zeros_like(weights).at[its].set(weights[its])
    auto = -jax.grad(plain.loss)(
        resting, jnp.zeros((5, language.size, 5, language.size)), clauses, answer, constants
    )[its]
    features = jnp.concatenate([resting[its, :, 1, there], resting[its, :, 4, its]], -1)
    grams = {"gram_actions": np.eye(language.actions), "gram_values": np.eye(language.values)}
    motion = OneStep(language.table, settings.neurons, "3.4")
    moved = motion.velocity(
        {"V": features}, constants | grams | {"vocabulary": float(language.size)}, np.ones(1)
    )["V"]
    return apart(moved, jnp.concatenate([auto[:, :, 1, there], auto[:, :, 4, its]], -1))


def second_stage(
    settings, language: plain.Language, weights: Array, scores: Array, constants: dict
) -> dict[str, Array]:
    """Fact D.1, Lemmas D.1 and D.2, at both answers of chains of length 2."""
    variables, actions, values = language.every_sentence(2)
    found = []
    for step in (1, 2):
        clauses, target = (
            language.clauses(variables, actions, values, step - 1),
            language.target(variables, values, step, 5),
        )
        auto = -jax.grad(plain.loss, argnums=1)(weights, scores, clauses, target, constants)
        lemma = gradients.lemma_d(weights, scores, clauses, target, constants)
        fact, not_centred = (
            gradients.of_scores(weights, scores, clauses, target, constants, centred)
            for centred in (True, False)
        )
        both = jnp.stack([auto[3, :, 2], auto[3, :, 3]])
        found.append(
            {
                "fact_d": apart(fact, auto),
                "lemma_d": apart(jnp.stack(lemma), both),
                "fact_d_not_centred": apart(not_centred, auto),
            }
        )
    return jax.tree.map(jnp.maximum, *found)


def four_numbers(settings, language: plain.Language, off_ideal: Array, four: Array, constants: dict) -> Array:
    """At scores with one diagonal and one off-diagonal entry in each block: the reduced velocities against
    the plain gradient's sums."""
    n, table, (variables, actions, values) = language.variables, language.maps, language.every_sentence(2)
    there, its, eye, off = language.where("actions"), language.where("values"), np.eye(n), 1 - np.eye(n)
    features = ideal_features(table, constants["top"]) + off_ideal
    weights = jnp.zeros((language.size, language.values, 5, language.size))
    weights = (
        weights.at[its, :, 1, there]
        .set(features[..., : language.actions])
        .at[its, :, 4, its]
        .set(features[..., language.actions :])
    )
    scores = jnp.zeros((5, language.size, 5, language.size))
    scores = (
        scores.at[3, :n, 2, :n]
        .set(four[0] * eye + four[2] * off)
        .at[3, :n, 3, :n]
        .set(four[1] * eye + four[3] * off)
    )
    summed, steps = jnp.zeros_like(scores), ((2, 1), (2, 2))
    for _, step in steps:
        clauses, target = (
            language.clauses(variables, actions, values, step - 1),
            language.target(variables, values, step, 5),
        )
        summed -= jax.grad(plain.loss, argnums=1)(weights, scores, clauses, target, constants)
    blocks = ((2, eye), (3, eye), (2, off), (3, off))
    # the mean velocity of one entry, in the reduced flow's unit of time, which is n times the model's
    expected = jnp.stack([n * (summed[3, :n, slot, :n] * mask).sum() / mask.sum() for slot, mask in blocks])
    motion = TwoSteps(len(steps), language.values)
    seen = lane(table, features, steps, 10**6, np.random.default_rng(0))  # all chains: nothing is drawn
    moved = motion.velocity(
        dict(zip(SCORES, four)),
        constants | {"vocabulary": float(language.size), "variables": float(n)} | seen,
        np.ones(1),
    )
    return apart(jnp.stack([moved[name] for name in SCORES]), expected)
