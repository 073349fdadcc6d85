"""Margins of the attention features, at the start and in training."""

from __future__ import annotations

from typing import cast

import numpy as np

from stagewise.lab.judge.claims import claim
from stagewise.lab.judge.nulls import replaced, scrambled
from stagewise.lab.judge.statistics import Verdict, all_of, median_over_seeds, slope
from stagewise.lazy import xr
from stagewise.papers.mixture.experiments import JointTraining
from stagewise.papers.mixture.features import margins
from stagewise.papers.mixture.studies import starts


@claim(
    "mixture.margin0",
    null=replaced("the consistent samples", kind=lambda rng: "consistent"),
    source="Section 5.1, after Lemma 5.4",
    predicted="the maximum margin of the initial attention features is at most of order omega^2 / sqrt(m)",
    needs={"starts": starts, "kind": "conflicting"},
    control={"kind": "consistent"},
    control_is="the consistent samples, which uniform attention separates",
)
def initial_margin_is_tiny(starts: xr.Dataset, kind: str) -> Verdict:
    """Before training, the conflicting samples are separable only by a margin that shrinks with omega^2 and
    sqrt(m).

    Threshold: exponents within 0.1 of 2 in omega and of -1/2 in m, because the text gives this order."""
    margin = cast("xr.DataArray", np.log(margins(starts.isel(record=0), kind)))
    scale, width = np.log(starts.initial_scale.values), np.log(starts.width.values)
    by_scale, by_width = (
        margin.mean("width").transpose("seed", ...),
        margin.mean("initial_scale").transpose("seed", ...),
    )
    return all_of(
        slope("exponent of omega", scale, by_scale.values, at_least=1.9, at_most=2.1),
        slope("exponent of m", width, by_width.values, at_least=-0.6, at_most=-0.4),
    )


@claim(
    "mixture.margin_t",
    null=scrambled("joint"),
    source="Sections 4 and 7",
    predicted=(
        "the maximum margin of the attention features grows during training, from nearly none to well "
        "separated"
    ),
    needs={"joint": JointTraining.plan()},
    control={"joint": JointTraining.plan(trains="neurons")},
    control_is="attention frozen",
)
def margin_grows_during_training(joint: xr.Dataset) -> Verdict:
    """The conflicting samples' margin starts near zero, hardly ever falls back, and ends large.

    Threshold: below 0.01 at the start, above 0.5 at the end, and never more than 0.02 below its largest value
    so far, because the paper says from nearly non-separable to well-separated, increasing."""
    some = joint.isel(record=np.unique(np.linspace(0, joint.sizes["record"] - 1, 40).astype(int)))
    margin = margins(some, "conflicting").values
    fall = (np.maximum.accumulate(margin, 1) - margin).max(1)
    return all_of(
        median_over_seeds("margin at the start", margin[:, 0], at_most=0.01),
        median_over_seeds("margin at the end", margin[:, -1], at_least=0.5),
        median_over_seeds("largest fall", fall, at_most=0.02),
    ).also(consistent_margin_at_the_end=float(np.median(margins(joint.isel(record=[-1]), "consistent"))))
