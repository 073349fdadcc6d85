"""Stage 2 in closed form: attention learns which clauses to read while the perceptron rests (Sections 6.2, D,
E and F).

By symmetry over variables all diagonal entries of Q43 are one number, and so on: four numbers describe
attention. An answer's scores are `predicate` at the predicate it needs, `answer` at itself,
`other_predicates` and `other_answers` elsewhere. Attention is then the same for every sentence, and what
neuron r of value j sees is linear in it: a fixed array times four weights (R2 of our reading)."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from stagewise.papers.lego.activation import clipped, smooth_relu
from stagewise.papers.lego.closed import SCORES, attention, chains, concentration, least_loss, seen_by_neurons
from stagewise.papers.lego.one_step import cross_entropy
from stagewise.training.flow import Motion


@dataclass(frozen=True)
class TwoSteps(Motion):
    """The four scores, moved by the losses of some answers. Which answers of how long chains, and what
    neurons see there, are constants of the lane: see `lane`."""

    answers: int
    neurons: int

    def loss_of(self, index: int, weights: dict, constants: dict) -> Float[Array, ""]:
        """The loss of one answer, slot 5."""
        paid = attention(weights, constants[f"length{index}"], constants[f"step{index}"], jnp)
        seen = constants["bias"] + constants[f"seen{index}"] @ jnp.stack([paid[name] for name in SCORES])
        outputs = clipped(
            smooth_relu(seen, constants["rho"], constants["q"]).sum(-1),
            constants["top"],
            constants["clip_width"],
        )
        return jnp.mean(cross_entropy(outputs, constants[f"target{index}"], constants, self.neurons))

    def loss(self, weights, constants):
        return sum(self.loss_of(index, weights, constants) for index in range(self.answers))

    def velocity(self, weights, constants, samples):
        gradient = jax.grad(self.loss)(weights, constants)
        rate = {
            "predicate": 1.0,
            "answer": 1.0,
            "other_predicates": 1 / (constants["variables"] - 1),
            "other_answers": 1 / (constants["variables"] - 1),
        }
        return {name: -rate[name] * gradient[name] for name in weights}

    def measure(self, weights, constants):
        length, step = constants[f"length{self.answers - 1}"], constants[f"step{self.answers - 1}"]
        (missed, gap), (first_missed, _) = (
            concentration(weights, length, step, jnp),
            concentration(weights, length, 1.0, jnp),
        )
        velocity = self.velocity(weights, constants, self.samples("all"))
        pushes = jnp.stack(
            [
                -jax.grad(self.loss_of, argnums=1)(index, weights, constants)["predicate"]
                for index in range(self.answers)
            ]
        )
        return {
            "loss": self.loss(weights, constants),
            "missed": missed,
            "gap": gap,
            "first_missed": first_missed,
            "predicate_velocity": velocity["predicate"],
            "answer_velocity": velocity["answer"],
            "push": pushes,
        } | weights

    def watched(self, weights, constants):
        loss = self.loss(weights, constants)
        return {
            "excess": loss / (self.answers * least_loss(constants["vocabulary"], constants["top"], jnp)),
            "log_loss": jnp.log(loss),
        }

    def samples(self, kind):
        return np.ones(1)

    @property
    def dims(self):
        named = ("loss", "missed", "gap", "first_missed", "predicate_velocity", "answer_velocity", *SCORES)
        return {name: () for name in named} | {"push": ("of_answer",)}

    @property
    def coords(self):
        # Both answers of a chain of length 2, or the second.
        return {"of_answer": np.arange(3 - self.answers, 3)}


def lane(
    table: np.ndarray,
    features: Array | np.ndarray,
    steps: tuple[tuple[int, int], ...],
    most: int,
    rng: np.random.Generator,
    firsts: int | None = None,
) -> dict:
    """The constants of a lane: what neurons see in the chains of each loss."""
    found = {}
    for index, (length, step) in enumerate(steps):
        xp = np if isinstance(features, np.ndarray) else jnp
        seen, target = seen_by_neurons(features, *chains(table, length, most, rng, firsts), step, xp)
        found |= {
            f"seen{index}": seen,
            f"target{index}": target,
            f"length{index}": np.float64(length),
            f"step{index}": np.float64(step),
        }
    return found
