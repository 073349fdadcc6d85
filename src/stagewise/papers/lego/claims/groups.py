"""Sections 2, 3 and 5: the task and its groups, by enumeration."""

from __future__ import annotations

from functools import cache

import numpy as np

from stagewise.lab.judge.claims import claim
from stagewise.lab.judge.statistics import Verdict, all_of, exactly
from stagewise.papers.lego.closed import ideal_features, outputs
from stagewise.tasks.groups import Action, fibres, group

CYCLIC = tuple(f"C{n}" for n in range(3, 9))
SYMMETRIC = ("S3", "S4", "S5")


@cache
def _drawn(length: int):
    """The task of 64 variables, and 256 sentences of a length."""
    import jax

    from stagewise.tasks.lego import Lego

    task = Lego(Action("S4"), variables=64)
    return task, jax.jit(task.sample, static_argnums=(1, 2))(jax.random.key(length), 256, length)


@claim(
    "lego.data.valid",
    source="Definition 2.2, Assumption 3.2",
    predicted=(
        "every sentence is valid: variables differ, and each value is its action's image of the one before"
    ),
    needs={"shifted": 0},
    control={"shifted": 1},
    control_is="actions read one place too late",
)
def sentences_are_valid(shifted: int) -> Verdict:
    """Drawn sentences of lengths 5 and 63 over 64 variables name every variable once and follow their
    actions.

    Threshold: without exception in 256 sentences of each length, because validity is a definition."""
    broken, uneven = 0, 0.0
    for length in (5, 63):
        task, drawn = _drawn(length)
        variables, actions, values = (
            np.asarray(drawn.variables),
            np.roll(drawn.actions, shifted, axis=1),
            np.asarray(drawn.values),
        )
        repeated = np.array([len(set(row)) < length + 1 for row in variables])
        wrong = (task.action.maps()[actions, values[:, :-1]] != values[:, 1:]).any(1)
        broken += int((repeated | wrong).sum())
        uneven = max(uneven, abs(float((values[:, 0] == 0).mean()) - 0.25))
    return exactly("invalid sentences", broken, at_most=0).also(most_off_uniform_first_value=uneven)


@claim(
    "lego.fiber",
    source="Fact C.1, Definition 6.3, Assumption 4.1",
    predicted=(
        "fibres have |G|/|Y| actions and are left cosets of stabilisers; C_n is simply transitive, S_n is not"
    ),
    needs={"simply": CYCLIC, "not_simply": SYMMETRIC},
    control={"not_simply": ("C6",)},
    control_is="C6 taken for a symmetric group",
)
def fibres_are_cosets(simply: tuple[str, ...], not_simply: tuple[str, ...]) -> Verdict:
    """Every fibre of C3 to C8 and S3 to S5 has |G|/|Y| elements and is a left coset of a stabiliser; the
    former are simply transitive only.

    Threshold: without exception, because it is a theorem."""
    wrong = 0
    for name in (*simply, *not_simply):
        acting, table = group(name), Action(name).maps()
        there = fibres(table)
        wrong += int((there.sum(-1) != acting.order // table.shape[1]).sum())
        for y in range(table.shape[1]):
            stabiliser = np.flatnonzero(there[y, y])
            for j in range(table.shape[1]):
                members = np.flatnonzero(there[j, y])
                wrong += set(acting.products[members[0], stabiliser]) != set(members)
    told = [Action(name).simply_transitive for name in simply] + [
        not Action(name).simply_transitive for name in not_simply
    ]
    return all_of(
        exactly("fibres that are no cosets", wrong, at_most=0),
        exactly("share of groups told apart", float(np.mean(told)), at_least=1),
    )


@claim(
    "lego.word",
    source="Theorem 2.1 (Barrington)",
    predicted="S5 is not solvable, so its word problem is NC1-complete",
    needs={"unsolvable": "S5"},
    control={"unsolvable": "S4"},
    control_is="S4, which is solvable",
    note=(
        "A proxy: the hypothesis of the theorem is computed, completeness itself cannot be. The series of "
        "S5 ends at A5, which is perfect."
    ),
)
def s5_is_not_solvable(unsolvable: str) -> Verdict:
    """The derived series of C6, S3 and S4 ends at 1, that of S5 at A5.

    Threshold: as said, because solvability is computed by enumeration."""
    ends = {name: group(name).derived_series()[-1] for name in ("C6", "S3", "S4")}
    return all_of(
        exactly("where the series of C6, S3 and S4 end, at most", max(ends.values()), at_most=1),
        exactly(
            "where that of the other ends", group(unsolvable).derived_series()[-1], at_least=60, at_most=60
        ),
    )


@claim(
    "lego.distract",
    source="Section 5",
    predicted=(
        "a clause with another action of the same image still gives the right answer; such clauses are "
        "as frequent in C_n as in S_n"
    ),
    needs={"same_image": True},
    control={"same_image": False},
    control_is="actions with another image",
    note="The paper says that symmetric groups have more distractors. Per clause the share of actions with "
    "the right image is 1/n for C_n and S_n alike; "
    "what differs is that in S_n they are different tokens that share one neuron.",
)
def distractors_answer_alike(same_image: bool) -> Verdict:
    """With an ideal perceptron, reading any action of the same image instead of the right one gives the right
    answer; the share of actions with the same image is 1/|Y| for C6 and S5.

    Threshold: without exception, because it is arithmetic on the ideal weights."""
    shares, right = {}, []
    for name in ("C6", "S4", "S5"):
        table = Action(name).maps()
        features, (actions, values) = ideal_features(table, 10.0), table.shape
        constants = {"rho": 0.5, "q": 4.0, "top": 10.0}
        shares[name] = float(np.mean(table[:, None, :] == table[None, :, :]))
        for y in range(values):
            seen = (features[..., :actions] + features[..., actions + y][..., None]) / 2  # [j, neuron, read]
            found = outputs(np.moveaxis(seen, -1, 0), constants)  # [read, j]
            same = table[:, y][:, None] == table[:, y][None, :]  # [true, read]
            right.append(
                (found.argmax(1)[None, :] == table[:, y][:, None])[same if same_image else ~same].mean()
            )
    return all_of(
        exactly("share of right answers from distractors", float(np.mean(right)), at_least=1),
        exactly(
            "share of actions with the same image, times |Y|, C6 over S5",
            shares["C6"] * 6 / (shares["S5"] * 5),
            at_least=1 - 1e-12,
            at_most=1 + 1e-12,
        ),
    )
