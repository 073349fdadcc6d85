"""The exact closed system: training seen through inner products of weights instead of weights.

Write W = [W_K, W_Q] for one head, restricted to the 2K signals, and let `gram` = W^T W, a 4K x 4K matrix
whose blocks are the key self-scores, the scores and the query self-scores. With G = -dLoss/dscores, the
gradient of the weights is W turned by a symmetric matrix,

    dW = W J,   J = [[0, G], [G^T, 0]]

so the inner products move on their own, whatever the width (Appendix B.2 in matrix form):

    flow:     d gram/dt = J gram + gram J
    descent:  gram <- (1 + e J) gram (1 + e J)

Nothing is approximated. Infinite width differs in its start alone: gram = omega^2 times the identity (Lemma
C.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from stagewise.models.two_heads import contrast
from stagewise.tasks.mixture import Mixture
from stagewise.training.flow import Motion
from stagewise.training.loop import Rule
from stagewise.training.stages import StagedStep

AnyArray = Array | np.ndarray
Weights = Mapping[str, AnyArray]  # neurons [2, 2K] and gram [2, 4K, 4K]
Kind = TypeVar("Kind", bound=AnyArray)
KINDS = ("all", "consistent", "conflicting")


def blocks(gram: Float[Kind, "*b double double"]) -> tuple[Kind, Kind, Kind]:
    """Key self-scores, scores (row: key, column: query) and query self-scores."""
    n, square = gram.shape[-1] // 2, cast(Any, gram)
    return square[..., :n, :n], square[..., :n, n:], square[..., n:, n:]


def outputs(
    task: Mixture,
    neurons: Float[AnyArray, "2 n"],
    scores: Float[AnyArray, "2 n n"],
    bias: Float[ArrayLike, ""],
):
    """Head outputs and f on the whole population, by looking scores up instead of multiplying embeddings.

    Samples are the last axis, so that inner loops are long; scores never come near where exp would
    overflow."""
    samples = task.population()
    signal, sign = samples.signal.T, samples.sign.T  # [token, sample]
    values = neurons[:, signal] * sign
    # [head, key, query, sample]
    raised = jnp.exp(scores[:, signal[:, None], signal[None]] * (sign[:, None] * sign[None]))
    heads = jnp.sum(jnp.sum(raised * values[:, :, None], 1) / jnp.sum(raised, 1), 1)
    return heads, contrast(heads, bias)


def sample_losses(task: Mixture, neurons, scores, bias) -> Float[Array, " samples"]:
    """log(1 + exp(-y f)) of every sample."""
    return jax.nn.softplus(-task.population().label * outputs(task, neurons, scores, bias)[1])


def pull(task: Mixture, weights: Weights, bias, samples: Float[AnyArray, " samples"]):
    """Minus the gradient of the expected loss with respect to neurons and scores."""
    _, scores, _ = blocks(weights["gram"])

    def gain(neurons, scores):
        return -samples @ sample_losses(task, neurons, scores, bias)

    return jax.grad(gain, (0, 1))(weights["neurons"], scores)


def turning(pull_on_scores: Float[Array, "2 n n"]) -> Float[Array, "2 2*n 2*n"]:
    """J = [[0, G], [G^T, 0]] of each head."""
    nothing = jnp.zeros_like(pull_on_scores)
    return jnp.block([[nothing, pull_on_scores], [jnp.swapaxes(pull_on_scores, -1, -2), nothing]])


def measure(task: Mixture, weights: Weights, bias) -> dict[str, AnyArray]:
    """Losses by kind of sample, the share of samples classified rightly, and every inner product."""
    keys, scores, queries = blocks(weights["gram"])
    samples = task.population()
    losses = sample_losses(task, weights["neurons"], scores, bias)
    kinds = task.kinds()
    right = samples.label * outputs(task, weights["neurons"], scores, bias)[1] > 0
    return {
        "loss": jnp.stack([kinds[kind] @ losses for kind in KINDS]),
        "accuracy": samples.weight @ right.astype(float),
        "neurons": weights["neurons"],
        "scores": scores,
        "key_self": keys,
        "query_self": queries,
    }


def dims() -> dict[str, tuple[str, ...]]:
    square = ("head", "key", "query")
    return {
        "loss": ("kind",),
        "accuracy": (),
        "neurons": ("head", "signal"),
        "scores": square,
        "key_self": square,
        "query_self": square,
    }


def coords(task: Mixture) -> dict[str, np.ndarray]:
    signals = np.array(task.signals)
    return {
        "kind": np.array(KINDS),
        "head": np.array(["+", "-"]),
        "signal": signals,
        "key": signals,
        "query": signals,
    }


@dataclass(frozen=True)
class Closed(Motion, StagedStep):
    """The closed system in motion: by gradient flow, or by gradient descent with the constants' learning
    rates."""

    task: Mixture

    def velocity(self, weights, constants, samples):
        pull_on_neurons, pull_on_scores = pull(self.task, weights, constants["bias"], samples)
        half = turning(pull_on_scores) @ weights["gram"]
        return {"neurons": pull_on_neurons, "gram": half + jnp.swapaxes(half, -1, -2)}

    def descend(self, weights, constants, key, moves, samples):
        pull_on_neurons, pull_on_scores = pull(self.task, weights, constants["bias"], samples)
        turn = jnp.eye(weights["gram"].shape[-1]) + moves["gram"] * constants["attention_rate"] * turning(
            pull_on_scores
        )
        return {
            "neurons": weights["neurons"] + moves["neurons"] * constants["neuron_rate"] * pull_on_neurons,
            "gram": turn @ weights["gram"] @ turn,
        }

    def measure(self, weights, constants):
        return measure(self.task, weights, constants["bias"])

    def watched(self, weights, constants):
        """`headroom`: how far the + head is from switching off on the consistent negative sample of group
        1."""
        samples, groups = self.task.population(), self.task.groups
        _, scores, _ = blocks(weights["gram"])
        heads, _ = outputs(self.task, weights["neurons"], scores, constants["bias"])
        losses = sample_losses(self.task, weights["neurons"], scores, constants["bias"])
        negative = (
            (samples.signal[:, 0] == 0) & (samples.label < 0) & (samples.agreeing == self.task.length - 2)
        )
        kinds = self.task.kinds()
        return {
            "headroom": heads[0, int(np.argmax(negative))] + constants["bias"],
            "consistent_loss": kinds["consistent"] @ losses,
            "loss": kinds["all"] @ losses,
            "score": scores[0, 0, groups],
        }

    def samples(self, kind):
        return self.task.kinds()[kind]

    @property
    def dims(self):
        return dims()

    @property
    def coords(self):
        return coords(self.task)


@dataclass(frozen=True)
class JointDescent(Rule):
    """Gradient descent of all weights on all samples."""

    closed: Closed
    stops: bool = False

    def step(self, weights, constants, key):
        return self.closed.descend(
            weights, constants, key, {"neurons": 1.0, "gram": 1.0}, self.closed.samples("all")
        )

    def measure(self, weights, constants, key):
        return self.closed.measure(weights, constants)

    def done(self, measured, constants):
        return measured["loss"][0] < constants["stop_at_loss"]

    @property
    def dims(self):
        return self.closed.dims

    @property
    def coords(self):
        return self.closed.coords
