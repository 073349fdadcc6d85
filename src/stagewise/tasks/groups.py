"""Finite groups of permutations, and their actions as tables.

A table has a row for every action g and a column for every value y: table[g, y] = g(y). The name of a group
is its family and number (C6, D4, A5, S5, Q8), or a product of several (C2xS3). A group acts on its points, on
itself, or on the cosets of a subgroup."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import permutations
from math import factorial, prod
from typing import Literal

import numpy as np

from stagewise.errors import require

LARGEST = 1000  # most elements of a group: the table of products holds the square of this number


@dataclass(frozen=True, eq=False)
class Group:
    """A group, given by its elements: permutations [order, points] in lexicographic order, so the identity is
    the first."""

    elements: np.ndarray

    @property
    def order(self) -> int:
        return len(self.elements)

    @cached_property
    def products(self) -> np.ndarray:
        """products[a, b] is the number of the product a b, which applies b first."""
        # Tell elements apart by one number each.
        weights = np.random.default_rng(0).integers(1, 2**40, self.elements.shape[1])
        codes = self.elements @ weights
        sorting = np.argsort(codes)
        return np.stack(
            [
                sorting[np.searchsorted(codes, a[self.elements] @ weights, sorter=sorting)]
                for a in self.elements
            ]
        )

    @cached_property
    def inverses(self) -> np.ndarray:
        return np.argmin(self.products, axis=1)  # where the product is the identity, element 0

    def number(self, permutation: np.ndarray) -> int:
        """Return the number of the element that equals a permutation, or -1 if there is none."""
        found = np.flatnonzero((self.elements == permutation).all(1))
        return int(found[0]) if len(found) else -1

    def subgroup(self, generators: np.ndarray) -> np.ndarray:
        """Return the numbers of the elements of the subgroup that `generators`, given by number, generate."""
        found, new = {0}, [0]
        while new:
            new = list({int(self.products[g, h]) for g in generators for h in new} - found)
            found.update(new)
        return np.array(sorted(found))

    def derived_series(self) -> list[int]:
        """Return the orders of the group, of its commutator subgroup, of the commutator subgroup of that, and
        so on until the order no longer changes."""
        within = np.arange(self.order)
        orders = [self.order]
        while True:
            a, b = np.meshgrid(within, within, indexing="ij")
            commutators = self.products[self.products[a, b], self.inverses[self.products[b, a]]]
            within = self.subgroup(np.unique(commutators))
            if len(within) == orders[-1]:
                return orders
            orders.append(len(within))

    @property
    def solvable(self) -> bool:
        return self.derived_series()[-1] == 1

    def on_cosets(self, subgroup: np.ndarray) -> np.ndarray:
        """The table of the action on left cosets aH, [order, order / |H|]; coset 0 is H itself."""
        names, cosets = np.full(self.order, -1), []
        for element in range(self.order):
            if names[element] < 0:
                names[self.products[element, subgroup]] = len(cosets)
                cosets.append(element)
        return names[self.products[:, cosets]]


@cache
def group(name: str) -> Group:
    """Return the group with a name such as C6, S5 or C2xS3."""
    parts = [_family(part) for part in name.split("x")]
    order = prod(size for size, _ in parts)
    require(
        order <= LARGEST,
        f"group {name}: it has {order} elements, more than the {LARGEST} that fit (set --action.group)",
    )
    elements = parts[0][1]()
    for _, more in parts[1:]:
        elements = _product(elements, more())
    return Group(elements[np.lexsort(elements.T[::-1])])


def _family(name: str):
    """Return the order of a group, and a function that lists its elements."""
    found = re.fullmatch(r"([CDASQ])(\d{1,4})", name)
    require(
        found is not None,
        f"unknown group {name!r}: there are C6, D4, A5, S5, Q8 and the like, and products such as C2xS3 (set "
        "--action.group)",
    )
    assert found is not None
    family, n = found[1], int(found[2])
    least = {"C": 1, "D": 3, "A": 3, "S": 2, "Q": 8}[family]
    require(n >= least, f"group {name}: {family} has a number of {least} or more (set --action.group)")
    require(family != "Q" or n == 8, f"group {name}: of quaternion groups there is Q8 (set --action.group)")
    order = {"C": n, "D": 2 * n, "A": factorial(min(n, 20)) // 2, "S": factorial(min(n, 20)), "Q": 8}[family]
    turn = np.arange(n)
    lists = {
        "C": lambda: (turn[:, None] + turn) % n,
        "D": lambda: np.concatenate([(turn[:, None] + turn) % n, (turn[:, None] - turn) % n]),
        "S": lambda: np.array(list(permutations(range(n)))),
        "A": lambda: np.array([p for p in permutations(range(n)) if _even(p)]),
        "Q": _quaternions,
    }
    return order, lists[family]


def _even(permutation: tuple[int, ...]) -> bool:
    return sum(a > b for i, a in enumerate(permutation) for b in permutation[i + 1 :]) % 2 == 0


def _quaternions() -> np.ndarray:
    """Q8 acting on itself: element 2u + s is a unit u of (1, i, j, k), negated if s."""
    unit = np.array([[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]])
    sign = np.array([[0, 0, 0, 0], [0, 1, 0, 1], [0, 1, 1, 0], [0, 0, 1, 1]])
    u, s = np.arange(8) // 2, np.arange(8) % 2
    return 2 * unit[u[:, None], u] + (sign[u[:, None], u] + s[:, None] + s) % 2


def _product(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """All pairs of elements, acting on all pairs of points."""
    pairs = first[:, None, :, None] * second.shape[1] + second[None, :, None, :]
    return pairs.reshape(len(first) * len(second), -1)


def _cycles(text: str, points: int) -> list[np.ndarray]:
    """Read permutations that are written as cycles of points: `(0 1)(2 3), (0 2)(1 3)`."""
    generators = []
    for word in text.split(","):
        shaped = re.fullmatch(r"(\(\s*(\d+(\s+\d+)*)?\s*\))+", word.strip())
        require(
            shaped is not None,
            f"subgroup {text!r}: write generators as cycles, such as (0 1)(2 3), (0 2)(1 3) (set "
            "--action.subgroup)",
        )
        permutation = np.arange(points)
        for cycle in re.findall(r"\(([\s\d]*)\)", word):
            places = [int(place) for place in cycle.split()]
            require(
                len(set(places)) == len(places) and all(p < points for p in places),
                f"subgroup {text!r}: a cycle has different points below {points}, not ({cycle}) (set "
                "--action.subgroup)",
            )
            moved = np.arange(points)
            moved[places] = np.roll(places, -1)
            permutation = moved[permutation]
        generators.append(permutation)
    return generators


@dataclass(frozen=True)
class Action:
    """The actions of a task: a group and what it acts on, or a table that the user gives."""

    # the group: cyclic C6, dihedral D4, alternating A5, symmetric S5, quaternion Q8, or a product C2xS3
    group: str = "C6"
    on: Literal["points", "itself", "cosets"] = "points"  # what the group acts on
    # the subgroup for `cosets`: its generators as cycles of points, such as (0 1)(2 3), (0 2)(1 3)
    subgroup: str = ""
    # a table in place of a group: for each action where it sends 0, 1, 2, …, such as "0 1 2, 1 2 0, 2 0 1"
    table: str = ""

    def __post_init__(self):
        if self.table:
            check_action(_rows(self.table))
            alone = (self.group in ("", Action.group)) and self.on == Action.on and not self.subgroup
            require(
                alone,
                "action: a table says it all, so group, on and subgroup would be ignored (leave them, or set "
                f"--action.group {Action.group})",
            )
        else:
            require(
                not self.subgroup or self.on == "cosets",
                f"action: a subgroup {self.subgroup!r} is for cosets only (set --action.on cosets)",
            )
            self.maps()

    def maps(self) -> np.ndarray:
        """The table [actions, values]."""
        return _maps(self)

    @property
    def actions(self) -> int:
        return len(self.maps())

    @property
    def values(self) -> int:
        return self.maps().shape[1]

    @property
    def stabiliser(self) -> int:
        """How many actions leave the first value where it is."""
        return int((self.maps()[:, 0] == 0).sum())

    @property
    def transitive(self) -> bool:
        return len(np.unique(self.maps()[:, 0])) == self.values

    @property
    def simply_transitive(self) -> bool:
        """Whether exactly one action leads from any value to any other."""
        return self.transitive and self.actions == self.values

    @property
    def solvable(self) -> bool:
        """Whether the group is solvable. The group of a table consists of its different rows."""
        maps = np.unique(self.maps(), axis=0)
        return Group(maps).solvable if self.table else group(self.group).solvable

    def __str__(self) -> str:
        if self.table:
            return f"table of {self.actions} by {self.values}"
        return (
            self.group
            if self.on == "points"
            else f"{self.group} on {'itself' if self.on == 'itself' else f'{self.values} cosets'}"
        )


@cache
def _maps(action: Action) -> np.ndarray:
    if action.table:
        return _rows(action.table).astype(int)
    acting = group(action.group)
    if action.on == "points":
        return acting.elements
    generators = (
        _cycles(action.subgroup, acting.elements.shape[1])
        if action.on == "cosets" and action.subgroup
        else []
    )
    numbers = [acting.number(generator) for generator in generators]
    require(
        -1 not in numbers,
        f"subgroup {action.subgroup!r}: not all of it is in {action.group}, which it must divide (set "
        "--action.subgroup)",
    )
    require(
        action.on == "itself" or bool(generators),
        "action: cosets need a subgroup, such as (0 1) (set --action.subgroup)",
    )
    return acting.on_cosets(acting.subgroup(np.array(numbers, int)))


def _rows(table: str) -> np.ndarray:
    """Read a table from its text; `check_action` refuses one that is not a group acting."""
    rows = [row.split() for row in table.split(",")]
    require(
        all(number.isdigit() for row in rows for number in row),
        f"action: a table is whole numbers, actions apart by commas, not {table!r} (set --action.table)",
    )
    return (
        np.array([[int(number) for number in row] for row in rows], dtype=object)
        if len({len(row) for row in rows}) == 1
        else np.array(rows, dtype=object)
    )


def fibres(table: np.ndarray) -> np.ndarray:
    """Which actions lead from y to j: [j, y, action] of booleans."""
    return table.T[None] == np.arange(table.shape[1])[:, None, None]


def check_action(table: np.ndarray) -> None:
    """Refuse a table that is not a group acting. Every row must be a permutation of the values, and the
    identity and all products of two rows must be rows too."""
    require(
        table.ndim == 2 and table.size > 0,
        "action: a table has rows of the same length, one for each action (set --action.table)",
    )
    values = list(range(table.shape[1]))
    for number, row in enumerate(table.tolist()):
        require(
            sorted(row) == values,
            f"action: row {number} of the table, {row}, is not a permutation of {values[0]} to {values[-1]} "
            "(set --action.table)",
        )
    rows = {tuple(row) for row in table.tolist()}
    require(
        tuple(values) in rows, "action: the table lacks the identity, so it is no group (set --action.table)"
    )
    require(
        len(rows) <= LARGEST,
        f"action: the table has {len(rows)} different rows, more than the {LARGEST} that fit (set "
        "--action.table)",
    )
    for first in rows:
        for second in rows:
            product = tuple(first[y] for y in second)
            require(
                product in rows,
                f"action: the table lacks {list(product)}, the product of {list(first)} and {list(second)} "
                "(set --action.table)",
            )
