"""A pre-norm encoder: GPT's blocks without the mask, and readouts at every place."""

from __future__ import annotations

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from stagewise.models.gpt import GPT, draw, normalise
from stagewise.models.sizes import Shape


class Encoder(eqx.Module):
    """An encoder, in which every place sees every other. Call it with token ids to get the logits of each
    readout at every place."""

    trunk: GPT
    readouts: Float[Array | np.ndarray, "D readout symbol"]

    @classmethod
    def of(cls, weights: dict[str, Array | np.ndarray], heads: int) -> Encoder:
        """Make an encoder from the trained arrays that `weights` returned."""
        trunk = {name: weight for name, weight in weights.items() if name != "readouts"}
        return cls(GPT(**trunk, heads=heads, causal=False), weights["readouts"])

    def weights(self) -> dict[str, Array | np.ndarray]:
        """The trained arrays by name."""
        return self.trunk.weights() | {"readouts": self.readouts}

    def __call__(self, tokens: Int[Array, "*batch length"]) -> Float[Array, "*batch length readout symbol"]:
        states, _ = self.trunk.states(tokens)
        return self.read_out(states[-1])

    def read_out(self, x: Float[Array, "*n D"]) -> Float[Array, "*n readout symbol"]:
        return jnp.einsum(
            "...d,drs->...rs", normalise(x, self.trunk.ln_f_weight, self.trunk.ln_f_bias), self.readouts
        )

    def attention(self, tokens: Int[Array, "*batch length"]) -> dict[str, Float[Array, "*batch query key"]]:
        """Attention patterns by name; each row is a query and sums to one."""
        return self.trunk.attention(tokens)


def draw_encoder(shape: Shape, readouts: int, symbols: int, rng: np.random.Generator) -> Encoder:
    """Draw an encoder as it starts. Weights are normal, scaled so that activations keep their size, and
    smaller by sqrt(2 layers) in output projections; embeddings have size one."""
    trunk = replace(draw(shape, rng, scale=shape.width**-0.5, embedding_scale=1.0), causal=False)
    return Encoder(
        trunk, (shape.width**-0.5 * rng.standard_normal((shape.width, readouts, symbols))).astype(np.float32)
    )
