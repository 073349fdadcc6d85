"""Adam against optax's own chain, and rates that fall as they should."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from stagewise.training import adam


def test_steps_are_optaxs_own():
    rng = np.random.default_rng(0)
    ours = {"a": rng.normal(size=(3, 2)), "b": rng.normal(size=4)}
    theirs, chain = dict(ours), optax.chain(optax.clip_by_global_norm(0.7), optax.adam(0.03))
    state, optax_state = adam.begin(ours), chain.init(theirs)
    for _ in range(5):
        gradients = {name: rng.normal(size=value.shape) for name, value in ours.items()}
        ours, state = adam.step(ours, gradients, state, jnp.asarray(0.03), 0.7)
        moves, optax_state = chain.update(gradients, optax_state)
        theirs = optax.apply_updates(theirs, moves)
        for name in ours:
            np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-12)
    assert int(state["count"]) == 5


@pytest.mark.parametrize("step", [0, 1, 25, 60, 100, 130])
def test_rates_fall_as_optaxs_schedules_do(step):
    rate, last, steps = (jnp.asarray(value) for value in (0.2, 0.05, 100.0))
    linear, wave = optax.linear_schedule(0.2, 0.0, 100), optax.cosine_decay_schedule(0.2, 100, alpha=0.25)
    at = jnp.asarray(step)
    assert float(adam.linear_decay(rate, at, steps)) == pytest.approx(float(linear(step)), abs=1e-12)
    assert float(adam.cosine_decay(rate, last, at, steps)) == pytest.approx(float(wave(step)), rel=1e-6)
