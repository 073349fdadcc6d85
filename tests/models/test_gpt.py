"""GPT-2 against Hugging Face's, the fast path against the plain one, patterns and bad shapes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stagewise.errors import Refused
from stagewise.models.answers import answers, answers_with_dropout, patterns
from stagewise.models.exchange import from_hugging_face, to_hugging_face
from stagewise.models.gpt import GPT, draw, dropout, nothing
from stagewise.models.sizes import Shape
from stagewise.tasks.parity import Parity
from tests.tiers import some_fast


def some(layers, heads, width=24, positions=20, scale=0.3, vocabulary=2):
    """A model whose weights are large enough for every part to matter, biases and norms included."""
    model = draw(
        Shape(layers, heads, width, vocabulary, positions), np.random.default_rng(0), scale, scale, np.float64
    )
    leaves, tree = jax.tree.flatten(model)
    keys = jax.random.split(jax.random.key(1), len(leaves))
    return jax.tree.unflatten(
        tree, [leaf + 0.1 * jax.random.normal(key, leaf.shape) for leaf, key in zip(leaves, keys)]
    )


@pytest.mark.parametrize(
    "layers, heads, chain_of_thought, format",
    some_fast(
        [
            (1, 1, True, "paper"),
            (1, 1, False, "code"),
            (1, 3, False, "paper"),
            (1, 3, True, "code"),
            (2, 1, False, "paper"),
            (2, 4, True, "code"),
            (3, 2, True, "paper"),
            (4, 4, False, "code"),
        ],
        (1, 3, False, "paper"),
        (2, 4, True, "code"),
    ),
)
def test_the_fast_path_is_the_plain_path_in_loss_and_gradients(layers, heads, chain_of_thought, format):
    task = Parity(7, 3, chain_of_thought, format)
    model, rng = some(layers, heads), np.random.default_rng(0)
    batch = task.spell(rng.integers(0, 2, (11, 7)), task.draw_secret(rng))

    def loss(logits):
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), batch.labels[..., None], -1))

    plain, fast = (
        jax.jit(jax.value_and_grad(f))(model)
        for f in (
            lambda model: loss(model(batch.tokens)[:, task.asked]),
            lambda model: loss(answers(model, batch.tokens, int(task.asked[0]))),
        )
    )
    np.testing.assert_allclose(fast[0], plain[0], rtol=1e-12)
    for name, gradient in plain[1].weights().items():
        np.testing.assert_allclose(
            fast[1].weights()[name], gradient, atol=1e-12 * max(1, float(abs(gradient).max())), err_msg=name
        )


@pytest.mark.parametrize("layers, heads", some_fast([(1, 1), (2, 4), (3, 3)], (2, 4)))
def test_logits_are_those_of_hugging_face(oracle, layers, heads):
    torch, transformers = oracle("torch"), oracle("transformers")
    model = some(layers, heads, vocabulary=5)
    config = transformers.GPT2Config(
        vocab_size=5,
        n_positions=20,
        n_embd=24,
        n_layer=layers,
        n_head=heads,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        attn_implementation="eager",
    )
    theirs = transformers.GPT2LMHeadModel(config).double().eval()
    missing, unexpected = theirs.load_state_dict(
        {n: torch.tensor(v) for n, v in to_hugging_face(model).items()}, strict=False
    )
    assert set(missing) <= {"lm_head.weight"} and not unexpected
    theirs.tie_weights()
    tokens = np.random.default_rng(0).integers(0, 5, (3, 12))
    with torch.no_grad():
        out = theirs(torch.tensor(tokens), output_attentions=True)
    np.testing.assert_allclose(model(jnp.asarray(tokens)), out.logits.numpy(), atol=1e-5)
    pattern = model.attention(jnp.asarray(tokens[0]))[f"layer{layers}.head{heads}"]
    np.testing.assert_allclose(pattern, out.attentions[-1][0, -1].numpy(), atol=1e-6)


def test_weights_go_to_hugging_face_names_and_back():
    model = some(2, 3)
    back = from_hugging_face(to_hugging_face(model), heads=3)
    assert isinstance(back, GPT) and back.layers == 2
    for name, value in model.weights().items():
        np.testing.assert_array_equal(back.weights()[name], value)
    assert "transformer.h.1.attn.c_proj.weight" in to_hugging_face(model)


@pytest.mark.parametrize("layers, heads", [(1, 2), (3, 1)])
def test_patterns_of_the_fast_path_are_the_plain_ones(layers, heads):
    model, tokens = some(layers, heads), jnp.asarray(np.random.default_rng(0).integers(0, 2, (5, 9)))
    found, plain = jax.jit(patterns)(model, tokens), jax.jit(GPT.attention)(model, tokens)
    for layer in range(layers):
        for head in range(heads):
            np.testing.assert_allclose(
                found[:, layer, head], plain[f"layer{layer + 1}.head{head + 1}"], atol=1e-12
            )


@pytest.mark.slow
def test_dropout_leaves_the_mean_and_differs_from_sample_to_sample():
    model, tokens = some(2, 2), jnp.zeros((4000, 5), int)
    np.testing.assert_allclose(
        answers_with_dropout(model, tokens[:2], 3, nothing), answers(model, tokens[:2], 3), atol=1e-12
    )
    once = dropout(0.25, jax.random.key(3))(jnp.ones((4000, 5)))
    assert (
        set(np.unique(once).round(6)) == {0.0, 1.333333}
        and abs(once.mean() - 1) < 0.02
        and once.std(0).min() > 0.5
    )
    out = jax.jit(lambda key: answers_with_dropout(model, tokens[:50], 3, dropout(0.1, key)))(
        jax.random.key(0)
    )
    assert len(np.unique(np.asarray(out[:, 0, 0]).round(9))) == 50


def test_patterns_are_causal_and_sum_to_one():
    patterns = some(2, 2).attention(jnp.array([0, 1, 1, 0]))
    assert set(patterns) == {f"layer{i}.head{j}" for i in (1, 2) for j in (1, 2)}
    for pattern in patterns.values():
        np.testing.assert_allclose(pattern.sum(1), 1)
        assert not np.any(np.triu(pattern, 1))


@pytest.mark.parametrize(
    "wrong, says", [(dict(heads=7), "do not divide"), (dict(layers=0), "layers"), (dict(inner=-1), "inner")]
)
def test_bad_shapes_are_refused(wrong, says):
    with pytest.raises(Refused, match=says):
        Shape(**wrong)
