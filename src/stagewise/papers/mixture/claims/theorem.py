"""Theorem 4.1: Algorithm 1 succeeds, how long its stages take, and what it has learned."""

from __future__ import annotations

import numpy as np
import xarray as xr

from stagewise.lab.claims import claim
from stagewise.lab.statistics import Verdict, all_of, exactly, share_of_seeds, slope
from stagewise.papers.mixture.experiments import ThreeStages, scales_in_stages, widths_in_stages
from stagewise.papers.mixture.recorded import duration, ended_by_event


@claim(
    "mixture.alg1",
    source="Algorithm 1",
    predicted="three stages of gradient flow drive the loss to any epsilon",
    needs={"finite": ThreeStages.plan(), "infinite": ThreeStages.plan(width="infinite")},
    control={"finite": ThreeStages.plan(score_at_T2=1e-9), "infinite": ThreeStages.plan(width="infinite", score_at_T2=1e-9)},
    control_is="stage 2 left out: attention stays uniform",
)
def three_stages_reach_the_target(finite: xr.Dataset, infinite: xr.Dataset) -> Verdict:
    """Every stage of Algorithm 1 ends by its event, the last one with the loss at epsilon = 0.01.

    Threshold: at infinite width and in most seeds at width 128, because the theorem says it of every small initial scale."""
    return all_of(
        exactly("infinite width ends", float(ended_by_event(infinite).item()), at_least=1),
        share_of_seeds("finite width ends", ended_by_event(finite)),
    )


@claim(
    "mixture.thm41_T2",
    source="Theorem 4.1, Lemma E.3",
    predicted="T2 - T1 = O(log 1/omega): a straight line in log 1/omega",
    needs={"stages": scales_in_stages, "stage": "2"},
    control={"stage": "1.2"},
    control_is="the end of stage 1, which does not wait for attention",
)
def stage_two_takes_log_one_over_scale(stages: xr.Dataset, stage: str) -> Verdict:
    """The time that attention takes is linear in log 1/omega.

    Threshold: a positive slope with R^2 at least 0.999 over omega from 0.3 to 0.001, because the theorem gives the order."""
    x = np.log(1 / stages.initial_scale.values)
    y = duration(stages, stage).isel(seed=0).values
    explained = np.corrcoef(x, y)[0, 1] ** 2 if np.ptp(y) > 1e-9 else 0.0
    group_alignment = stages.neurons.sel(head="+", signal="c1").isel(seed=0, initial_scale=0)
    at_T1 = float(group_alignment[stages.stage.values == "2"][0])
    return all_of(slope("slope", x, y, at_least=0), exactly("R squared", explained, at_least=0.999)).also(
        predicted_slope=9 / at_T1
    )


@claim(
    "mixture.thm41_sym",
    source="Theorem 4.1, Lemmas C.2 and C.4",
    predicted="groups and heads mirror each other: exactly at infinite width, up to 1/sqrt(m) at finite width",
    needs={"infinite": ThreeStages.plan(width="infinite"), "finite": widths_in_stages, "flip": -1.0},
    control={"flip": +1.0},
    control_is="the wrong mirror: class signals not flipped between heads",
)
def groups_and_heads_mirror_each_other(infinite: xr.Dataset, finite: xr.Dataset, flip: float) -> Verdict:
    """Exchanging the groups, and exchanging the heads while flipping the class signals, changes nothing.

    Threshold: at most 1e-10 at infinite width, and a slope of the neurons' asymmetry on the width between -0.6 and -0.4,
    because the lemmas are identities at infinite width and Appendix G allows an error of order 1/sqrt(m)."""
    residual = asymmetry(infinite, flip).max().item()
    at_end = asymmetry(finite.isel(record=-1), flip).transpose("seed", "width")
    return all_of(
        exactly("infinite width residual", residual, at_most=1e-10),
        slope("slope on width", np.log(finite.width.values), np.log(at_end.values), at_least=-0.6, at_most=-0.4),
    )


def asymmetry(trajectory: xr.Dataset, flip: float = -1.0) -> xr.DataArray:
    """How far the neurons are from the two mirrors, root mean square; zero means exact symmetry."""
    swap = dict(c1="c2", c2="c1", v1="v2", v2="v1")
    sign = xr.DataArray([1.0, 1.0, flip, flip], dims="signal", coords={"signal": ["c1", "c2", "v1", "v2"]})
    neurons = trajectory.neurons
    swapped = neurons.sel(signal=[swap[s] for s in neurons.signal.values]).assign_coords(signal=neurons.signal)
    between_groups = ((neurons - swapped) ** 2).mean(["head", "signal"])
    between_heads = ((neurons.sel(head="+") - neurons.sel(head="-") * sign) ** 2).mean("signal")
    return np.sqrt(between_groups + between_heads)
