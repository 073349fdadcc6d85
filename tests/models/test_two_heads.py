"""The two forms of the model agree; its gradients agree with torch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stagewise.models.two_heads import ScoredTwoHeads, TwoHeads
from stagewise.papers.mixture.weights import as_model
from stagewise.tasks.mixture import Mixture

task = Mixture(3, 4, dimension=9)
tokens = task.tokens(task.population())


def weights(seed=0, width=5):
    k1, k2, k3 = jax.random.split(jax.random.key(seed), 3)
    d = task.embedding_dimension
    return {
        "neurons": jax.random.normal(k1, (2, d)),
        "keys": jax.random.normal(k2, (2, width, d)),
        "queries": jax.random.normal(k3, (2, width, d)),
    }


def test_scores_alone_give_the_same_function():
    plain = as_model(weights(), jnp.asarray(0.5))
    scores = jnp.swapaxes(plain.keys, 1, 2) @ plain.queries
    scored = ScoredTwoHeads(neurons=plain.neurons, scores=scores, bias=plain.bias)
    np.testing.assert_allclose(jax.vmap(plain)(tokens), jax.vmap(scored)(tokens), atol=1e-12)


def test_attention_patterns_are_named_and_sum_to_one():
    pattern = as_model(weights(), jnp.asarray(0.5)).attention(tokens[0])
    assert set(pattern) == {"head+", "head-"}
    np.testing.assert_allclose(pattern["head+"].sum(-1), 1)


def test_order_of_tokens_does_not_matter():
    model: TwoHeads = as_model(weights(), jnp.asarray(0.5))
    assert model(tokens[7]) == pytest.approx(float(model(tokens[7][::-1])))


@pytest.mark.oracle
def test_gradients_agree_with_torch(oracle):
    torch = oracle("torch")
    w, samples = weights(3), task.population()

    def loss(w):
        return samples.weight @ jax.nn.softplus(
            -samples.label * jax.vmap(as_model(w, jnp.asarray(0.5)))(tokens)
        )

    ours = jax.grad(loss)(w)
    t = {name: torch.tensor(np.asarray(value), requires_grad=True) for name, value in w.items()}
    X, label, weight = (torch.tensor(np.asarray(a)) for a in (tokens, samples.label, samples.weight))
    heads = []
    for h in range(2):
        scores = torch.einsum("nkd,md,me,nqe->nkq", X, t["keys"][h], t["queries"][h], X)
        heads.append((torch.softmax(scores, 1) * (X @ t["neurons"][h])[:, :, None]).sum((1, 2)))
    f = torch.relu(heads[0] + 0.5) - torch.relu(heads[1] + 0.5)
    (weight * torch.nn.functional.softplus(-label * f)).sum().backward()
    for name in w:
        np.testing.assert_allclose(ours[name], t[name].grad.numpy(), atol=1e-12)
