"""The same training in the weights themselves: the plain form that the closed system replaces."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import ArrayLike, Float

from stagewise.models.two_heads import TwoHeads
from stagewise.papers.mixture import closed
from stagewise.tasks.mixture import Mixture
from stagewise.training.loop import Rule


def as_model(weights: dict[str, ArrayLike], bias: Float[ArrayLike, ""]) -> TwoHeads:
    return TwoHeads(**{name: jnp.asarray(weight) for name, weight in weights.items()}, bias=jnp.asarray(bias))


@dataclass(frozen=True)
class WeightDescent(Rule):
    """Full-population gradient descent on neurons, keys and queries."""

    task: Mixture

    def step(self, weights, constants, key):
        samples = self.task.population()
        tokens = self.task.tokens(samples)

        def loss(weights):
            outputs = jax.vmap(as_model(weights, constants["bias"]))(tokens)
            return samples.weight @ jax.nn.softplus(-samples.label * outputs)

        rates = {
            name: constants["neuron_rate" if name == "neurons" else "attention_rate"] for name in weights
        }
        return jax.tree.map(
            lambda weight, slope, rate: weight - rate * slope, weights, jax.grad(loss)(weights), rates
        )

    def measure(self, weights, constants, key):
        """What the closed system measures, from the inner products of the weights on the signals."""
        signals = 2 * self.task.groups
        both = jnp.concatenate([weights["keys"][..., :signals], weights["queries"][..., :signals]], -1)
        inner = {"neurons": weights["neurons"][..., :signals], "gram": jnp.swapaxes(both, -1, -2) @ both}
        return closed.measure(self.task, inner, constants["bias"])

    @property
    def dims(self):
        return closed.dims()

    @property
    def coords(self):
        return closed.coords(self.task)
