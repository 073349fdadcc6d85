"""Section 6 and Appendix A.4: more than two groups, and longer sequences."""

from __future__ import annotations

import numpy as np

from stagewise.lab.judge.claims import Claim, claim
from stagewise.lab.judge.nulls import from_arm, replaced, scrambled, shuffled
from stagewise.lab.judge.statistics import Verdict, all_of, exactly, median_over_seeds, share_of_seeds, slope
from stagewise.lazy import xr
from stagewise.papers.mixture.experiments import JointTraining, ManyGroups
from stagewise.papers.mixture.readings import learned, steps_to_learn, time_to_learn
from stagewise.papers.mixture.studies import groups, lengths
from stagewise.probes.crossing import first_above
from stagewise.tasks.mixture import Mixture


def _with(groups: int, **changes):
    return ManyGroups.plan(**{"task.groups": groups}, **changes)


THREE, FOUR, EIGHT = _with(3), _with(4), _with(8)


def _figure(number: int, groups: int) -> Claim:
    """Figures 5 to 7 show what Figure 1 shows, for more groups."""

    def learned_in_stages(joint: xr.Dataset, early: str, late: str) -> Verdict:
        ratio = steps_to_learn(joint, late) / steps_to_learn(joint, early)
        return all_of(
            share_of_seeds("share of seeds that learn", learned(joint, 0.01)),
            median_over_seeds(f"steps, {late} over {early}", ratio, at_least=10),
        ).also(conflicting_step=float(time_to_learn(joint, "conflicting").median()))

    learned_in_stages.__doc__ = f"""With {groups} groups every sample is learned, the conflicting ones long
    after the consistent ones.

    Threshold: all samples right with a loss below 0.01 in most seeds, and a ratio of times of at least 10,
    because the figure shows what Figure 1 shows."""
    return claim(
        f"mixture.fig{number}",
        source=f"Figure {number}, Observation 1",
        predicted=f"{groups} groups are learned, in stages",
        needs={"joint": _with(groups), "early": "consistent", "late": "conflicting"},
        control={"early": "conflicting", "late": "consistent"},
        control_is="the two kinds of samples exchanged",
        null=shuffled("joint", "kind"),
    )(learned_in_stages)


FROZEN = _with(3, trains="neurons", steps=6000)
three_groups, four_groups, eight_groups = _figure(5, 3), _figure(6, 4), _figure(7, 8)


def class_queries(joint: xr.Dataset) -> np.ndarray:
    """Scores of the + head at the end, group keys for class queries: shape (seed, K, K)."""
    K = joint.sizes["key"] // 2
    return joint.scores.isel(record=-1).sel(head="+").values[:, :K, K:]


def _pairwise(joint: xr.Dataset) -> np.ndarray:
    """max over j of |S[c_k, v_k] + S[c_k, v_j]| over S[c_k, v_k], the mean over k, for each seed."""
    block = class_queries(joint)
    own = np.diagonal(block, axis1=1, axis2=2)[..., None]
    other = ~np.eye(block.shape[-1], dtype=bool)
    return np.where(other, abs(own + block) / abs(own), 0).max(-1).mean(-1)


def _sum_over_groups(joint: xr.Dataset) -> np.ndarray:
    """|sum over j of S[c_k, v_j]| over S[c_k, v_k], the mean over k, for each seed."""
    block = class_queries(joint)
    return (abs(block.sum(-1)) / abs(np.diagonal(block, axis1=1, axis2=2))).mean(-1)


@claim(
    "mixture.obs1_sym",
    null=from_arm("three", JointTraining.plan(), "two groups, where it holds"),
    source="Observation 1",
    predicted="with three groups or more the near symmetry of the scores no longer holds",
    needs={"three": THREE, "four": FOUR, "eight": EIGHT},
    control={"three": JointTraining.plan()},
    control_is="two groups, where it holds",
)
def pairwise_symmetry_is_lost(three: xr.Dataset, four: xr.Dataset, eight: xr.Dataset) -> Verdict:
    """The score of a group key for its own class signal is not minus the one for another.

    Threshold: their sum is at least 0.3 of the first, because near symmetry would make it vanish."""
    return all_of(
        *(
            median_over_seeds(f"residual, {name} groups", _pairwise(run), at_least=0.3)
            for name, run in (("three", three), ("four", four), ("eight", eight))
        )
    )


@claim(
    "mixture.obs1_zero",
    null=scrambled("three", "four", "eight"),
    source="beyond Observation 1",
    predicted="not in the paper: what survives is a zero sum over all class queries",
    needs={"three": THREE, "four": FOUR, "eight": EIGHT},
    control={"three": FROZEN},
    control_is="attention frozen",
    beyond_paper=True,
    note=(
        "With eight groups the residual comes close to the threshold, and longer training (preset paper, "
        "30000 steps) brings it to it."
    ),
)
def scores_sum_to_zero_over_groups(three: xr.Dataset, four: xr.Dataset, eight: xr.Dataset) -> Verdict:
    """The scores of a group key sum to zero over all class queries, for any number of groups.

    Threshold: less than 0.05 of the own score, because zero sum is what near symmetry becomes for two
    groups."""
    return all_of(
        *(
            median_over_seeds(f"residual, {name} groups", _sum_over_groups(run), at_most=0.05)
            for name, run in (("three", three), ("four", four), ("eight", eight))
        )
    )


@claim(
    "mixture.obs1_dom",
    null=scrambled("joint"),
    source="Section 6",
    predicted="with three groups some scores grow much more than the others",
    needs={"joint": THREE},
    control={"joint": FROZEN},
    control_is="attention frozen",
)
def some_scores_dominate(joint: xr.Dataset) -> Verdict:
    """With three groups the scores of group keys for class queries dominate the rest, as with two.

    Threshold: the largest of the rest is at most half of the smallest own score, because the text says major
    growth."""
    K, scores = 3, joint.scores.isel(record=-1).sel(head="+").values
    own = np.diagonal(scores[:, :K, K:], axis1=1, axis2=2).min(-1)
    rest = abs(scores.copy())
    rest[:, :K, K:] = 0
    return median_over_seeds(
        "largest other score over own", rest.max((1, 2)) / np.where(own > 0, own, np.nan), at_most=0.5
    )


@claim(
    "mixture.obs1_time",
    null=shuffled("runs", "groups"),
    source="Observation 1",
    predicted="training takes longer with more groups",
    needs={"runs": groups, "in_units_of_groups": False},
    control={"in_units_of_groups": True},
    control_is="steps divided by K - 1, which takes the effect out",
)
def more_groups_take_longer(runs: xr.Dataset, in_units_of_groups: bool) -> Verdict:
    """The step at which attention starts grows with the number of groups.

    Threshold: a positive slope of the onset on K, at every step from 2 to 16 groups larger than before,
    because the observation says longer with more groups."""
    K = runs.groups.values
    step = first_above(runs.scores.sel(pair="same", key_type="c", query_type="v"), 0.5).isel(seed=0).values
    step = step / (K - 1) if in_units_of_groups else step
    return all_of(
        slope("slope on K", K, step, at_least=0),
        exactly("least increase", np.diff(step).min(), at_least=0),
    ).also(onset_two_groups=float(step[0]), onset_eight_groups=float(step[list(K).index(8)]))


@claim(
    "mixture.obs1_L",
    null=shuffled("runs", "length"),
    source="beyond the paper's L = 3",
    predicted="not in the paper: sequences of 4 tokens are learned, sequences of 5 get stuck",
    needs={"runs": lengths, "long": 5},
    control={"long": 3},
    control_is="length 3 in the place of length 5",
    beyond_paper=True,
    note="In the stuck runs the neurons align negatively with the group signals: with three noise tokens the "
    "ReLU also switches off "
    "samples whose votes were wrong, which turns the sign of stage 1.2. This is our reading, not a proof.",
)
def longer_sequences_get_stuck(runs: xr.Dataset, long: int) -> Verdict:
    """With two groups, two noise tokens can still be learned and three cannot.

    Threshold: every sample right in most seeds at length 4 and in fewer than half at length 5, because stuck
    means that plateaus of wrong samples last."""
    end = runs.isel(record=-1)
    right, alignment = end.accuracy > 1 - 1e-9, end.neurons.sel(head="+", signal="c1", length=5).median()
    return all_of(
        share_of_seeds("length 4 learns", right.sel(length=4)),
        share_of_seeds(
            f"length {long} learns",
            right.sel(length=long),
            less_than=0.5,
            missing=np.isnan(end.accuracy.sel(length=long)),
        ),
    ).also(group_alignment_at_length_5=float(alignment))


SHAPES = ((2, 3), (3, 3), (4, 3), (8, 3), (2, 4), (3, 4), (4, 5), (3, 6))


@claim(
    "mixture.lem61",
    null=replaced("attention nearly uniform", strength=lambda rng: rng.uniform(0, 0.3)),
    source="Lemma 6.1",
    predicted="there is a two-headed transformer that solves any number of groups",
    needs={"strength": 40.0},
    control={"strength": 0.0},
    control_is="uniform attention",
    note=(
        "Existence holds with our neurons (construction.py); the printed ones fail, see "
        "mixture.lem61.printed."
    ),
)
def a_construction_solves_any_number_of_groups(strength: float) -> Verdict:
    """The printed attention with repaired neurons classifies the whole population rightly, for every K and L
    tried.

    Threshold: accuracy 1 on the enumerated population of eight shapes up to (8, 3) and (3, 6), because the
    lemma says solves."""
    from stagewise.papers.mixture.construction import accuracy, repaired

    found = [accuracy(task, repaired(task, strength)) for task in (Mixture(*shape) for shape in SHAPES)]
    return exactly("least accuracy", min(found), at_least=1 - 1e-12)


@claim(
    "mixture.lem61.printed",
    null=replaced("attention nearly uniform", strength=lambda rng: rng.uniform(0, 0.3)),
    source="Lemma 6.1 as printed",
    predicted="the printed weights solve any number of groups",
    needs={"strength": 40.0},
    control={"strength": 0.0},
    control_is="uniform attention",
    note=(
        "A slip: the group token adds +1 to the output for both labels, so every sample with label - is "
        "wrong."
    ),
)
def the_printed_construction(strength: float) -> Verdict:
    """The printed attention with the printed readout classifies the whole population rightly.

    Threshold: accuracy 1 on the enumerated population of eight shapes, because the lemma says solves."""
    from stagewise.papers.mixture.construction import accuracy, printed

    found = [accuracy(task, printed(task, strength)) for task in (Mixture(*shape) for shape in SHAPES)]
    return exactly("least accuracy", min(found), at_least=1 - 1e-12).also(largest_accuracy=max(found))
