"""Section 5.1 and Appendix D: neurons align with the signals while attention is uniform."""

from __future__ import annotations

import numpy as np
import xarray as xr

from stagewise.lab.claims import claim
from stagewise.lab.statistics import Verdict, exactly
from stagewise.papers.mixture.experiments import ThreeStages
from stagewise.papers.mixture.recorded import errors_of_samples, velocity
from stagewise.tasks.mixture import Mixture

TASK, BIAS = Mixture(), 0.5
_samples = TASK.population()
CONSISTENT = _samples.agreeing == 1


def _inside(stages: xr.Dataset, stage: str) -> xr.Dataset:
    """The records strictly inside a stage: at its ends a ReLU is just switching."""
    return stages.where(stages.stage == stage, drop=True).isel(record=slice(1, -1))


@claim(
    "mixture.lem52",
    source="Lemma 5.2 (D.1, D.2)",
    predicted="while no ReLU is off, d(w+.v_k)/dt is an eighth of the summed errors of the consistent samples, and w.c stands still",
    needs={"stages": ThreeStages.plan(width="infinite"), "stage": "1.1"},
    control={"stage": "1.2"},
    control_is="the same formula in stage 1.2, where two samples are switched off",
)
def class_alignment_in_stage_1_1(stages: xr.Dataset, stage: str) -> Verdict:
    """In stage 1.1 both heads align with the class signals at the printed rate, in opposite directions, and not at all
    with the group signals.

    Threshold: at most 1e-12 from automatic differentiation, because the lemma is an identity."""
    part = _inside(stages, stage)
    moving = velocity(part, TASK, BIAS)["neurons"]
    error = errors_of_samples(part, TASK, BIAS)
    rate = error[..., CONSISTENT].sum(-1) / 8
    said = rate[..., None, None] * np.array([[0, 0, 1, 1], [0, 0, -1, -1]])
    return exactly("largest deviation", abs(moving - said).max(), at_most=1e-12)


@claim(
    "mixture.lem53",
    source="Lemma 5.3 (D.4, D.5)",
    predicted="once the + head is off on X_{k,-,-}, d(w+.c_k)/dt is an eighth of the error on X_{k,+,+}, and w+.v goes on growing",
    needs={"stages": ThreeStages.plan(width="infinite"), "stage": "1.2"},
    control={"stage": "1.1"},
    control_is="the same formula in stage 1.1, where nothing is switched off",
)
def group_alignment_in_stage_1_2(stages: xr.Dataset, stage: str) -> Verdict:
    """In stage 1.2 the positive head aligns with the group signals at the printed rate.

    Threshold: at most 1e-12 from automatic differentiation, because the lemma is an identity."""
    part = _inside(stages, stage)
    moving = velocity(part, TASK, BIAS)["neurons"][..., 0, :]
    positive = CONSISTENT & (_samples.label > 0)  # X_{1,+,+} and X_{2,+,+}, in this order
    error = errors_of_samples(part, TASK, BIAS)[..., positive]
    both = error.sum(-1, keepdims=True) / 8
    said = np.concatenate([error / 8, both, both], -1)
    return exactly("largest deviation", abs(moving - said).max(), at_most=1e-12)
