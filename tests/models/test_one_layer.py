"""The one-layer transformer against the paper's formula, written out."""

import jax.numpy as jnp
import numpy as np

from stagewise.models.one_layer import OneLayer, ScoredOneLayer


def test_both_forms_compute_the_formula():
    rng = np.random.default_rng(0)
    m1, m, d, tokens = 4, 3, 7, np.array([2, 0, 5, 6])
    W, WV, WK, WQ = rng.normal(size=(m1, m)), *rng.normal(size=(3, m, d))
    a = np.array([1.0, -1, 1, 1])
    X = np.eye(d)[tokens].T
    expected = 0.0
    for at in range(4):
        scores = (WK @ X).T @ (WQ @ X[:, at]) / np.sqrt(m)
        p = np.exp(scores) / np.exp(scores).sum()
        expected += a @ W @ WV @ X @ p
    model = OneLayer(*map(jnp.asarray, (W, WV, WK, WQ, a)))
    scored = ScoredOneLayer(G=jnp.asarray(a @ W @ WV), S=jnp.asarray(WK.T @ WQ), width=jnp.asarray(3.0))
    for form in (model, scored):
        np.testing.assert_allclose(form(jnp.asarray(tokens)), expected, rtol=1e-12)
        pattern = form.attention(jnp.asarray(tokens))["head"]
        np.testing.assert_allclose(pattern.sum(1), 1)
        np.testing.assert_allclose(pattern[3], p, rtol=1e-12)
