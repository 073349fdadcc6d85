"""Slot 4 in stage 1: the perceptron learns to copy the variable that the predicate names first (Section
6.1.1, Appendix A).

Every token class has its neurons, which see half the sum of what the predicate (x1, g, x0) and the answer
(x0, y) hold. The population is all sentences of length 1, laid out along the axes x1, x0 and (g, y);
sentences with x0 = x1 do not exist and weigh nothing (R5 of our reading)."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from stagewise.papers.lego.activation import clipped, smooth_relu
from stagewise.papers.lego.closed import least_loss
from stagewise.training.flow import Motion

SLOTS = ("result", "action", "source", "answered", "value")


@dataclass(frozen=True)
class Retrieval(Motion):
    """Weights [class, neuron, token] by slot. Classes are all tokens: variables, actions, values, the
    blank."""

    variables: int
    actions: int
    values: int
    neurons: int

    @property
    def tokens(self) -> dict[str, int]:
        return dict(zip(SLOTS, (self.variables, self.actions, self.variables, self.variables, self.values)))

    @property
    def classes(self) -> int:
        return self.variables + self.actions + self.values + 1

    def log_odds(self, weights: dict, constants: dict) -> Float[Array, "x1 x0 g y class"]:
        """Outputs of every class for every sentence."""
        w = {name: jnp.moveaxis(weights[name], -1, 0) for name in SLOTS}  # [token, class, neuron]
        first = w["result"][:, None, None, None] + (w["source"] + w["answered"])[None, :, None, None]
        seen = (
            constants["bias"]
            + (first + w["action"][None, None, :, None] + w["value"][None, None, None, :]) / 2
        )
        return clipped(
            smooth_relu(seen, constants["rho"], constants["q"]).sum(-1),
            constants["top"],
            constants["clip_width"],
        )

    def losses(self, weights, constants) -> Float[Array, "x1 x0 g y"]:
        outputs = self.log_odds(weights, constants)
        aimed = (jnp.arange(self.classes) == jnp.arange(self.variables)[:, None])[:, None, None, None, :]
        others = jax.nn.logsumexp(jnp.where(aimed, -jnp.inf, outputs), -1)
        return jax.nn.softplus(others - jnp.where(aimed, outputs, 0).sum(-1))

    def there(self) -> np.ndarray:
        """The weight of each sentence: 0 where both variables are the same."""
        different = 1 - np.eye(self.variables)
        return (different / different.sum())[:, :, None, None] / (self.actions * self.values)

    def loss(self, weights, constants):
        return jnp.sum(self.there() * self.losses(weights, constants))

    def velocity(self, weights, constants, samples):
        return jax.tree.map(lambda g: -g, jax.grad(self.loss)(weights, constants))

    def measure(self, weights, constants):
        """The diagonal is what class j gives to j as the first variable; everything else is what should stay
        small."""
        n = self.variables
        # [variable, neuron]
        diagonal = jnp.moveaxis(weights["result"][:n], 1, 2)[jnp.arange(n), jnp.arange(n)]
        off = jnp.where(jnp.eye(n, dtype=bool)[:, None, :], 0, weights["result"][:n])
        right = jnp.argmax(self.log_odds(weights, constants), -1) == jnp.arange(n)[:, None, None, None]
        active = jnp.where(diagonal >= constants["rho"], diagonal, 0).sum(-1)
        return {
            "loss": self.loss(weights, constants),
            "accuracy": jnp.sum(self.there() * right),
            "diagonal": diagonal.max(-1),
            "active": active,
            "off_diagonal": jnp.abs(off).max(),
            "by_action": jnp.abs(weights["action"][:n]).max(),
            "by_value": jnp.abs(weights["value"][:n]).max(),
            "by_source": jnp.maximum(
                jnp.abs(weights["source"][:n]).max(), jnp.abs(weights["answered"][:n]).max()
            ),
            "others": jnp.abs(weights["result"][n:]).max(),
        }

    def watched(self, weights, constants):
        return {"excess": self.loss(weights, constants) / least_loss(self.classes, constants["top"], jnp)}

    def samples(self, kind):
        return np.ones(1)

    @property
    def dims(self):
        return {"diagonal": ("variable",), "active": ("variable",)} | {
            name: ()
            for name in ("loss", "accuracy", "off_diagonal", "by_action", "by_value", "by_source", "others")
        }

    @property
    def coords(self):
        return {"variable": np.arange(self.variables)}

    def draw(self, rng: np.random.Generator, spread: float) -> dict[str, np.ndarray]:
        """Normal weights of the paper's scale."""
        return {
            name: spread * rng.standard_normal((self.classes, self.neurons, size))
            for name, size in self.tokens.items()
        }
