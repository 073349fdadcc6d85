"""Groups and their actions, against sympy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy.combinatorics import (
    AlternatingGroup,
    CyclicGroup,
    DihedralGroup,
    Permutation,
    PermutationGroup,
    SymmetricGroup,
)

from stagewise.errors import Refused
from stagewise.tasks.groups import Action, Group, fibres, group

KNOWN = {
    "C6": CyclicGroup(6),
    "D5": DihedralGroup(5),
    "A4": AlternatingGroup(4),
    "A5": AlternatingGroup(5),
    "S4": SymmetricGroup(4),
    "S5": SymmetricGroup(5),
}


@pytest.mark.parametrize("name", KNOWN)
def test_group_is_sympys(name):
    ours, theirs = group(name), KNOWN[name]
    assert {tuple(e) for e in ours.elements} == {tuple(e.array_form) for e in theirs.elements}
    assert ours.derived_series() == [g.order() for g in theirs.derived_series()]
    assert ours.solvable == theirs.is_solvable
    action = Action(name)
    assert action.transitive == theirs.is_transitive()
    assert action.stabiliser == theirs.stabilizer(0).order()


def test_quaternions_are_a_group_of_eight_with_one_involution():
    q8 = group("Q8")
    theirs = PermutationGroup([Permutation(e.tolist()) for e in q8.elements])
    assert theirs.order() == 8 and not theirs.is_abelian
    squares = [q8.products[e, e] for e in range(8)]
    assert sum(square == 0 for square in squares) == 2  # 1 and -1


def test_product_acts_on_pairs():
    both = group("C2xS3")
    assert both.order == 12 and both.elements.shape[1] == 6
    assert both.derived_series() == [12, 3, 1]
    assert Action("C2xS3").transitive and Action("C2xC3").simply_transitive


@pytest.mark.parametrize(
    "subgroup, order",
    [("()", 1), ("(0 1)", 2), ("(0 1 2)", 3), ("(0 1)(2 3), (0 2)(1 3)", 4), ("(0 1 2 3), (0 2)", 8)],
)
def test_action_on_cosets(subgroup, order):
    action = Action("S4", "cosets", subgroup)
    assert action.stabiliser == order and action.values == 24 // order and action.transitive
    assert action.simply_transitive == (order == 1)
    assert np.array_equal(fibres(action.maps()).sum(-1), np.full((action.values,) * 2, order))
    if order == 1:
        assert np.array_equal(action.maps(), Action("S4", "itself").maps())


@given(st.sampled_from(["C5", "D4", "S4", "Q8", "C2xS3"]), st.sampled_from(["points", "itself"]), st.data())
def test_actions_obey_the_law(name, on, data):
    acting, table = group(name), Action(name, on).maps()
    g, h = (data.draw(st.integers(0, acting.order - 1)) for _ in range(2))
    y = data.draw(st.integers(0, table.shape[1] - 1))
    assert table[acting.products[g, h], y] == table[g, table[h, y]]
    assert table[acting.inverses[g], table[g, y]] == y


def test_own_tables():
    klein = Action(table="0 1 2 3, 1 0 3 2, 2 3 0 1, 3 2 1 0")
    assert klein.simply_transitive and klein.solvable
    assert Group(Action("S5").maps()).derived_series() == [120, 60]


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"group": "E8"}, "unknown group"),
        ({"group": "S9"}, "more than the 1000"),
        ({"group": "Q16"}, "there is Q8"),
        ({"group": "D2"}, "3 or more"),
        ({"group": "C3", "on": "cosets"}, "cosets need a subgroup"),
        ({"group": "A4", "on": "cosets", "subgroup": "(0 1)"}, "which it must divide"),
        ({"group": "S4", "on": "cosets", "subgroup": "0 1"}, "write generators as cycles"),
        ({"group": "S4", "on": "cosets", "subgroup": "(0 7)"}, "different points below 4"),
        ({"group": "S4", "subgroup": "(0 1)"}, "for cosets only"),
        ({"table": "0 1, 1 1"}, "row 1 of the table"),
        ({"table": "1 0"}, "lacks the identity"),
        ({"table": "0 1 2, 1 2 0"}, "the product of"),
        ({"table": "0 1, 1"}, "rows of the same length"),
        ({"table": "0 1, 1 x"}, "whole numbers"),
    ],
)
def test_bad_actions_are_refused(wrong, message):
    with pytest.raises(Refused, match=message):
        Action(**wrong)
