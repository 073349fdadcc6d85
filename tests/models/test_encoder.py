"""The encoder is GPT's blocks without the mask."""

import jax.numpy as jnp
import numpy as np

from stagewise.models.encoder import Encoder, draw_encoder
from stagewise.models.sizes import Shape

SHAPE = Shape(layers=2, heads=2, width=16, vocabulary=5, positions=6)


def encoder():
    drawn = draw_encoder(SHAPE, 3, 4, np.random.default_rng(0))
    return Encoder.of({name: jnp.asarray(weight) for name, weight in drawn.weights().items()}, 2)


def test_every_place_sees_every_other():
    model, tokens = encoder(), jnp.array([[0, 1, 2, 3, 4, 0]])
    changed = tokens.at[0, 5].set(3)
    moved = jnp.abs(model(tokens) - model(changed)).max((2, 3))[0]
    assert moved.shape == (6,) and (moved > 1e-6).all()
    for pattern in model.attention(tokens).values():
        assert np.allclose(pattern.sum(-1), 1, atol=1e-5) and (pattern > 0).all()


def test_without_positions_places_can_be_exchanged():
    model = encoder()
    weights = model.weights() | {"wpe": jnp.zeros_like(model.trunk.wpe)}
    blind = Encoder.of(weights, 2)
    tokens, order = jnp.array([[0, 1, 2, 3, 4, 1]]), np.array([3, 1, 5, 0, 2, 4])
    assert np.allclose(blind(tokens)[:, order], blind(tokens[:, order]), atol=1e-5)


def test_states_end_where_the_call_does():
    model, tokens = encoder(), jnp.array([[4, 3, 2, 1, 0, 2]])
    states, patterns = model.trunk.states(tokens)
    assert len(states) == len(patterns) == 2
    assert np.allclose(model.read_out(states[-1]), model(tokens), atol=1e-5)
