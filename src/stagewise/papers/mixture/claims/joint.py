"""Section 3.1: what one sees when all weights are trained at once."""

from __future__ import annotations

import numpy as np
import xarray as xr

from stagewise.lab.claims import claim
from stagewise.lab.statistics import Verdict, all_of, median_over_seeds, share_of_seeds
from stagewise.papers.mixture.experiments import JointTraining
from stagewise.papers.mixture.recorded import onset, score, time_to_learn
from stagewise.probes.crossing import first_above


@claim(
    "mixture.fig1a",
    source="Figure 1a",
    predicted="the consistent loss falls early; the conflicting loss falls only after a long plateau",
    needs={"joint": JointTraining.plan()},
    control={"joint": JointTraining.plan(trains="neurons")},
    control_is="attention frozen: the conflicting samples are never learned",
)
def consistent_samples_are_learned_first(joint: xr.Dataset) -> Verdict:
    """Samples whose signs agree are learned long before samples whose signs conflict, and both are learned.

    Threshold: the conflicting loss takes at least 10 times as many steps to half of log 2 as the consistent one, more than
    3 times in each seed, and the total loss ends below 0.01, because the figure shows separate stages, not one slope."""
    ratio = time_to_learn(joint, "conflicting") / time_to_learn(joint, "consistent")
    final = joint.loss.sel(kind="all").isel(record=-1)
    return all_of(
        median_over_seeds("steps, conflicting over consistent", ratio, at_least=10),
        share_of_seeds("share above 3", ratio > 3),
        median_over_seeds("final loss", final, at_most=0.01),
    )


@claim(
    "mixture.fig1b",
    source="Figure 1b",
    predicted="neurons align at once: with the class signals first, with the group signals soon after, both positively",
    needs={"joint": JointTraining.plan()},
    control={"joint": JointTraining.plan(bias=0.0)},
    control_is="bias 0: the ReLUs are dead and nothing moves",
)
def neurons_align_before_attention(joint: xr.Dataset) -> Verdict:
    """Neurons align with the class signals first, then with the group signals, long before attention scores grow.

    Threshold: w.v passes 0.2 before w.c passes 0.05, and the score passes 0.5 at least 10 times later than that,
    because the figure shows both alignments inside the first stage and the scores in a later one."""
    with_class = first_above(joint.neurons.sel(head="+", signal="v1"), 0.2)
    with_group = first_above(joint.neurons.sel(head="+", signal="c1"), 0.05)
    return all_of(
        share_of_seeds("class signals before group signals", with_class < with_group),
        median_over_seeds("steps, score over group alignment", onset(joint) / with_group, at_least=10),
    ).also(class_step=float(with_class.median()), group_step=float(with_group.median()))


@claim(
    "mixture.fig1c",
    source="Figure 1c",
    predicted="the score of key c1 for query v1 grows large and positive, for query v2 large and negative; others stay smaller",
    needs={"joint": JointTraining.plan()},
    control={"joint": JointTraining.plan(trains="neurons")},
    control_is="attention frozen: scores stay at their random start",
)
def scores_pair_groups_with_their_class(joint: xr.Dataset) -> Verdict:
    """The scores of a group key for class queries dominate: positive for its own class signal, negative for the other.

    Threshold: right signs and every other score of the head below half of the smaller of the two at the end,
    because the figure shows the two curves well apart from all others."""
    end = joint.isel(record=-1)
    own, other = score(end, "c1", "v1"), -score(end, "c1", "v2")
    main = np.minimum(own, other)
    scores = abs(end.scores.sel(head="+"))
    group_keys, class_queries = scores.key.isin(["c1", "c2"]), scores["query"].isin(["v1", "v2"])
    rest = scores.where(~(group_keys & class_queries)).max(["key", "query"])
    return all_of(
        share_of_seeds("right signs", (own > 0.5) & (other > 0.5)),
        median_over_seeds("largest other score over the smaller of the two", rest / main, at_most=0.5),
    ).also(own=float(own.median()), other=float(-other.median()))


@claim(
    "mixture.obs3",
    source="Section 3.1, third observation",
    predicted="the scores become large just when the conflicting loss drops",
    needs={"joint": JointTraining.plan(), "kind": "conflicting"},
    control={"kind": "consistent"},
    control_is="compared with the consistent loss instead",
)
def attention_onset_is_the_conflicting_drop(joint: xr.Dataset, kind: str) -> Verdict:
    """The step at which the main score passes one half is the step at which the conflicting loss has halved.

    Threshold: at most 15 % apart, because the paper says the two happen at the same time."""
    drop = time_to_learn(joint, kind)
    return median_over_seeds("relative gap", abs(onset(joint) - drop) / drop, at_most=0.15)
