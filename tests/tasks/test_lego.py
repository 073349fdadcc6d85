"""LEGO sentences: valid, and refused where they cannot be."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagewise.errors import Refused
from stagewise.tasks.groups import Action
from stagewise.tasks.lego import Lego


@settings(deadline=None, max_examples=20)
@given(st.sampled_from(["C6", "S4", "Q8"]), st.integers(1, 11), st.integers(0, 1000))
def test_sentences_are_valid(name, length, seed):
    task = Lego(Action(name), variables=12)
    drawn = task.sample(jax.random.key(seed), 16, length)
    assert all(len(set(row)) == length + 1 for row in np.asarray(drawn.variables))
    assert np.array_equal(drawn.variables, drawn.answered)
    values, actions = np.asarray(drawn.values), np.asarray(drawn.actions)
    assert np.array_equal(task.action.maps()[actions, values[:, :-1]], values[:, 1:])


def test_every_token_is_equally_likely():
    task = Lego(Action("S3"), variables=8)
    drawn = task.sample(jax.random.key(0), 4000, 3)
    for tokens, kinds in ((drawn.variables, 8), (drawn.actions, 6), (drawn.values, 3)):
        shares = np.bincount(np.asarray(tokens).ravel(), minlength=kinds) / np.asarray(tokens).size
        assert np.abs(shares - 1 / kinds).max() < 5 / np.sqrt(4000 * 3)


def test_answers_depend_on_their_predicate_and_the_answer_before():
    task, order = Lego(variables=12), np.array([2, 0, 1])
    assert task.depends_on(3).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert task.depends_on(3, order).tolist() == [[1, 3], [2, 4], [0, 5]]  # predicate 1 stands second


@pytest.mark.parametrize("length", [0, 12])
def test_length_over_the_variables_is_refused(length):
    with pytest.raises(Refused, match="between 1 and 11"):
        Lego(variables=12).check_length(length)
