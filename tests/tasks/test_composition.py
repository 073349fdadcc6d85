"""Hops: by doubling and one by one, over everything and split; and what is refused."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagewise.errors import Refused
from stagewise.tasks.composition import Composition, doubled_hops, hop


def one_by_one(hidden, sigma, i, r, x):
    for level in range(i, i + r):
        x = sigma[level % len(sigma), hidden[level % len(sigma), x]]
    return x


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 7), st.integers(2, 5), st.integers(1, 9), st.integers(0, 1000))
def test_hops_are_followed_level_by_level(levels, symbols, r, seed):
    task, rng = Composition(levels, symbols), np.random.default_rng(seed)
    hidden, sigma = task.draw_hidden(rng), np.argsort(rng.random((3, levels, symbols)), axis=-1)
    found = hop(hidden, sigma, r)
    expected = [
        [[one_by_one(hidden, one, i, r, x) for x in range(symbols)] for i in range(levels)] for one in sigma
    ]
    assert np.array_equal(found, expected)


def test_doubled_hops_are_the_hops_1_2_4_8():
    task, rng = Composition(8, 3), np.random.default_rng(0)
    hidden, sigma = task.draw_hidden(rng), np.asarray(task.sample(jax.random.key(0), 5))
    for r, found in zip(task.doublings, doubled_hops(hidden, sigma), strict=True):
        assert np.array_equal(found, hop(hidden, sigma, r))


def test_sequences_are_uniform_permutations():
    drawn = np.asarray(Composition(2, 3).sample(jax.random.key(1), 6000))
    assert np.array_equal(np.sort(drawn, -1), np.broadcast_to(np.arange(3), drawn.shape))
    _, times = np.unique(drawn[:, 0], axis=0, return_counts=True)
    assert len(times) == 6 and np.abs(times / 6000 - 1 / 6).max() < 5 * np.sqrt(1 / 6 / 6000)


def test_population_has_every_sequence_once_and_splits():
    task = Composition(2, 3)
    everything = task.population()
    assert len(np.unique(everything, axis=0)) == task.population_size == 36
    train, test = task.held_out(0.25, np.random.default_rng(0))
    assert len(test) == 9 and len(np.unique(np.concatenate([train, test]), axis=0)) == 36


@pytest.mark.parametrize("moved", [0, 1, 3])
def test_only_so_many_levels_are_moved(moved):
    task = Composition(8, 5, moved)
    hidden = task.draw_hidden(np.random.default_rng(2))
    assert (hidden != np.arange(5)).any(1).sum() == moved  # five symbols: the identity is not drawn here


def test_plain_task_asks_at_the_first_level_only():
    assert Composition(4, 5, asked="plain").asks().sum() == 5 and Composition(4, 5).asks().sum() == 20


@pytest.mark.parametrize(
    "wrong, said",
    [
        (lambda: Composition(4, 1), "symbols"),
        (lambda: Composition(4, 5, 5), "moved"),
        (lambda: Composition(0, 5), "levels"),
        (lambda: Composition(6, 5).depth, "power of two"),
        (lambda: Composition(8, 8).population(), "too many"),
        (lambda: Composition(64, 200).population(), r"10\^23993 sequences are too many"),
        (lambda: Composition(2, 3).held_out(1.5, np.random.default_rng(0)), "share"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(wrong, said):
    with pytest.raises(Refused, match=said):
        wrong()
