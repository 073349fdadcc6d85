"""The decoder's exact shortcuts: tables against clauses written out, masks against shorter chains, one pass
against a rollout."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stagewise.models.clause_decoder import ClauseDecoder, draw, plain
from stagewise.models.rollout import rollout
from stagewise.models.sizes import Clauses
from stagewise.papers.lego.learning import next_clause_loss
from stagewise.tasks.groups import Action
from stagewise.tasks.lego import Lego
from tests.tiers import some_fast

TASK = Lego(Action("S3"), variables=20)
SHAPES = [
    Clauses(heads=h, width=16, embedding=12, inner=24, skip=skip, encoding=e, places=32)
    for h, skip, e in (
        (1, False, "none"),
        (2, False, "none"),
        (4, True, "none"),
        (2, False, "learned"),
        (2, True, "sinusoidal"),
    )
]


def decoder(shape: Clauses, scale: float = 1.0) -> ClauseDecoder:
    model = draw(shape, 20, 6, 3, np.random.default_rng(0), np.float64)
    return ClauseDecoder(
        **{name: scale * np.asarray(weight) for name, weight in model.weights().items()}, heads=shape.heads
    )


@pytest.mark.parametrize("shape", some_fast(SHAPES, SHAPES[-1]), ids=str)
def test_tables_are_the_plain_model_in_loss_gradients_and_attention(shape):
    model, sentences = decoder(shape), TASK.sample(jax.random.key(1), 8, 5)

    def loss(weights, run):
        return next_clause_loss(run(ClauseDecoder(**weights, heads=shape.heads)), sentences)

    weights = {name: jnp.asarray(weight) for name, weight in model.weights().items()}
    fast, slow = (
        jax.value_and_grad(loss)(weights, run)
        for run in (lambda m: m(sentences), lambda m: plain(m, sentences)[0])
    )
    np.testing.assert_allclose(fast[0], slow[0], rtol=1e-12)
    for name in weights:
        np.testing.assert_allclose(fast[1][name], slow[1][name], atol=1e-12, err_msg=name)
    np.testing.assert_allclose(
        model.attention(sentences), plain(model, sentences)[1][..., : 2 * sentences.length], atol=1e-12
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_masked_chain_is_a_shorter_chain(shape):
    model, long = decoder(shape), TASK.sample(jax.random.key(2), 8, 9)
    short = long._replace(
        variables=long.variables[:, :5],
        actions=long.actions[:, :4],
        answered=long.answered[:, :5],
        values=long.values[:, :5],
    )
    for masked, cut in zip(model(long, jnp.asarray(4)), model(short)):
        np.testing.assert_allclose(masked[:, :4], cut, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES[1:4], ids=str)
def test_rollout_is_what_the_model_would_write_next(shape):
    """Read back, every written answer is the most likely one after those before it."""
    model, sentences = decoder(shape, scale=2.0), TASK.sample(jax.random.key(3), 16, 6)
    written = rollout(model, sentences)
    logits, _ = plain(model, written)
    assert np.array_equal(np.argmax(logits.values, -1), written.values[:, 1:])
    assert np.array_equal(np.argmax(logits.variables, -1), written.answered[:, 1:])
    assert np.array_equal(written.variables, sentences.variables)


@pytest.mark.slow
def test_one_pass_tells_which_rollouts_are_right():
    """Whole chains are right in a rollout exactly where every step is right after true answers."""
    from tests.papers.lego.trained import small_decoder

    model, task = small_decoder()
    sentences = task.sample(jax.random.key(4), 256, 12)
    logits, own = model(sentences), rollout(model, sentences)
    forced = (jnp.argmax(logits.values, -1) == sentences.values[:, 1:]).all(1) & (
        jnp.argmax(logits.variables, -1) == sentences.variables[:, 1:]
    ).all(1)
    rolled = (own.values == sentences.values).all(1) & (own.answered == sentences.variables).all(1)
    assert np.array_equal(forced, rolled)
    assert 0.02 < float(rolled.mean()) < 0.98  # some of both, or the test could not fail


def test_without_positions_the_order_of_predicates_does_not_matter():
    sentences, order = TASK.sample(jax.random.key(5), 8, 5), np.array([3, 0, 4, 2, 1])
    for shape, same in ((SHAPES[1], True), (SHAPES[3], False)):
        kept, moved = (plain(decoder(shape), sentences, way)[0].values for way in (None, order))
        assert np.allclose(kept, moved, atol=1e-12) == same
