"""Normalised entropy on patterns whose entropy is known."""

import numpy as np

from stagewise.probes.entropy import entropies, normalised_entropy


def uniform(length):
    return np.tril(np.ones((length, length))) / np.arange(1, length + 1)[:, None]


def test_uniform_is_one_and_one_hot_is_zero():
    np.testing.assert_allclose(entropies(uniform(6)), 1, atol=1e-7)
    np.testing.assert_allclose(normalised_entropy(np.eye(6)[None]), [0], atol=1e-7)


def test_the_first_query_has_no_choice_and_does_not_count():
    mixed = uniform(4)
    mixed[2] = [0.5, 0.5, 0, 0]
    assert normalised_entropy(mixed) == np.log(2) / np.log(3) or np.isclose(
        normalised_entropy(mixed), np.log(2) / np.log(3)
    )
    np.testing.assert_allclose(normalised_entropy(mixed, np.array([0, 1, 3])), 1, atol=1e-7)
