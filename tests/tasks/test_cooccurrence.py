"""The training set and the distribution against their definitions; bad settings."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagewise.errors import Refused
from stagewise.tasks.cooccurrence import COMMON, FIRST, SECOND, SPECIAL, Cooccurrence

sizes = given(
    sixths=st.integers(1, 6),
    length=st.integers(4, 8),
    seed=st.integers(0, 1000),
    irrelevant=st.sampled_from(["shared", "distinct"]),
)


def obeys(sentences):
    """Definition 2.1, word by word."""
    counts = {word: (sentences.tokens == word).sum(1) for word in (FIRST, SECOND, COMMON)}
    type = sentences.type
    assert (counts[COMMON] == 1).all()
    assert (counts[FIRST] == ((type == 1) | (type == 2))).all() and (
        counts[SECOND] == ((type == 1) | (type == 3))
    ).all()
    assert (sentences.label == np.where(type == 1, 1, -1)).all()


@sizes
@settings(max_examples=20, deadline=None)
def test_training_sets_obey_the_assumption(sixths, length, seed, irrelevant):
    n = 6 * sixths
    task = Cooccurrence(n, length, 3 + n * length, irrelevant)
    sentences = task.training_set(np.random.default_rng(seed))
    obeys(sentences)
    assert np.bincount(sentences.type, minlength=5)[1:].tolist() == [n // 2, n // 6, n // 6, n // 6]
    random = sentences.tokens[sentences.tokens >= SPECIAL]
    assert len(random) == task.slots == n * length - n * 7 // 3
    if irrelevant == "distinct":
        assert len(set(random.tolist())) == len(random)


def test_the_least_vocabulary_is_enough():
    sentences = Cooccurrence(60, 5, 163, "distinct").training_set(np.random.default_rng(0))
    assert set(sentences.tokens.ravel().tolist()) == set(range(163))


def test_drawn_types_and_fresh_samples_follow_the_distribution():
    task = Cooccurrence()
    fresh = task.sample(np.random.default_rng(0), 20_000)
    obeys(fresh)
    shares = np.bincount(fresh.type, minlength=5)[1:] / 20_000
    np.testing.assert_allclose(shares, [1 / 2, 1 / 6, 1 / 6, 1 / 6], atol=0.015)
    positions = np.argmax(fresh.tokens == COMMON, 1)
    np.testing.assert_allclose(np.bincount(positions) / 20_000, 1 / 5, atol=0.015)
    assert set(Cooccurrence(7, counts="drawn").training_set(np.random.default_rng(1)).type) == {1, 2, 3, 4}
    drawn = Cooccurrence(counts="drawn")
    types = np.concatenate([drawn.training_set(np.random.default_rng(seed)).type for seed in range(200)])
    np.testing.assert_allclose(
        np.bincount(types, minlength=5)[1:] / len(types), [1 / 2, 1 / 6, 1 / 6, 1 / 6], atol=0.02
    )


@pytest.mark.parametrize(
    "wrong, says",
    [
        (dict(samples=50), "multiple of 6"),
        (dict(samples=0), "multiple of 6"),
        (dict(length=3), "at least 4"),
        (dict(vocabulary=3), "at least 4"),
        (dict(vocabulary=162, irrelevant="distinct"), "at least 163"),
        (dict(vocabulary=200, irrelevant="distinct", counts="drawn"), "at least 243"),
    ],
)
def test_bad_settings_are_refused(wrong, says):
    with pytest.raises(Refused, match=says):
        Cooccurrence(**wrong)
