"""Stage 1 in closed form: the perceptron learns one step while attention is uniform (Sections 6.1, B and C).

Answering x1 needs predicate 1 and answer 0, which uniform attention weighs by one half each. So neuron r of
value j sees mu + (V[j, r, g] + V[j, r, y]) / 2, the population is all pairs (g, y), and the vocabulary enters
through sigma0, mu, B and the other classes alone, which stay where they start and are lumped in the
normaliser. Any vocabulary size costs the same (R1 of our reading)."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from stagewise.papers.lego.activation import clipped, smooth_relu, smooth_relu_b2
from stagewise.papers.lego.closed import least_loss
from stagewise.training.flow import Motion


def cross_entropy(
    outputs: Float[Array, "*n values"], target: Int[Array | np.ndarray, "*n"], constants: dict, neurons: int
) -> Float[Array, "*n"]:
    """-log p of the target among all classes: the values by their outputs, the rest of the vocabulary with
    what neurons give at their bias.

    Taken from the others' odds, so that losses far below rounding of the outputs keep their digits."""
    rest = jnp.log(constants["vocabulary"] - outputs.shape[-1]) + neurons * smooth_relu(
        jnp.asarray(constants["bias"]), constants["rho"], constants["q"]
    )
    aimed = jnp.arange(outputs.shape[-1]) == target[..., None]
    others = jax.nn.logsumexp(jnp.where(aimed, -jnp.inf, outputs), -1)
    return jax.nn.softplus(jnp.logaddexp(others, rest) - jnp.where(aimed, outputs, 0).sum(-1))


@dataclass(frozen=True)
class OneStep(Motion):
    """V [value, neuron, action or value], moved by the loss of all pairs. `table` is the group's,
    hashable."""

    table: tuple[tuple[int, ...], ...]
    neurons: int
    form: str = "3.4"  # of the activation: see `activate`

    def activate(self, x: Float[Array, "*n"], constants: dict) -> Float[Array, "*n"]:
        """Definition 3.4 or Assumption B.2."""
        if self.form == "3.4":
            return smooth_relu(x, constants["rho"], constants["q"])
        return smooth_relu_b2(
            x, constants["rho"], constants["q"], 1 / constants["vocabulary"], constants["top"]
        )

    @property
    def pairs(self) -> tuple[Int[np.ndarray, "actions values"], int]:
        table = np.array(self.table)
        return table, len(table)

    def outputs(
        self, weights: Float[Array, "j r tokens"], constants: dict
    ) -> Float[Array, "actions values j"]:
        """F_j for every pair (g, y)."""
        _, actions = self.pairs
        of_action, of_value = weights[..., :actions], weights[..., actions:]
        seen = constants["bias"] + (of_action[..., :, None] + of_value[..., None, :]) / 2
        return jnp.moveaxis(
            clipped(self.activate(seen, constants).sum(1), constants["top"], constants["clip_width"]), 0, -1
        )

    def loss(self, weights: dict, constants: dict) -> Float[Array, ""]:
        table, _ = self.pairs
        return jnp.mean(
            cross_entropy(self.outputs(weights["V"], constants), jnp.asarray(table), constants, self.neurons)
        )

    def velocity(self, weights, constants, samples):
        """Minus the gradient by weights, as features move: turned by the embedding's Gram matrix, which is
        the identity if orthonormal."""
        gradient, (_, actions) = jax.grad(self.loss)(weights, constants)["V"], self.pairs
        turned = [
            gradient[..., :actions] @ constants["gram_actions"],
            gradient[..., actions:] @ constants["gram_values"],
        ]
        return {"V": -jnp.concatenate(turned, -1)}

    def measure(self, weights, constants):
        outputs, (table, _) = self.outputs(weights["V"], constants), self.pairs
        right = jnp.mean(jnp.argmax(outputs, -1) == jnp.asarray(table))
        return {"loss": self.loss(weights, constants), "accuracy": right, "V": weights["V"]}

    def watched(self, weights, constants):
        return {
            "excess": self.loss(weights, constants)
            / least_loss(constants["vocabulary"], constants["top"], jnp)
        }

    def samples(self, kind):
        return np.ones(1)

    @property
    def dims(self):
        return {"loss": (), "accuracy": (), "V": ("value", "neuron", "token")}

    @property
    def coords(self):
        table, actions = self.pairs
        tokens = [f"g{g}" for g in range(actions)] + [f"y{y}" for y in range(table.shape[1])]
        return {
            "value": np.arange(table.shape[1]),
            "neuron": np.arange(self.neurons),
            "token": np.array(tokens),
        }
