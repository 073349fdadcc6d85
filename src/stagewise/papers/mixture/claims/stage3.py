"""Section 5.3 and Appendix F: with attention in place, neurons drive the loss to zero."""

from __future__ import annotations

import numpy as np

from stagewise.lab.judge.claims import claim
from stagewise.lab.judge.nulls import from_arm, scrambled
from stagewise.lab.judge.statistics import Verdict, all_of, exactly
from stagewise.lazy import xr
from stagewise.papers.mixture.appendix_b import respond as respond_with
from stagewise.papers.mixture.experiments import ThreeStages
from stagewise.papers.mixture.readings import TWO_GROUPS, at_end_of, during, respond, setting, velocity

LIMIT = ThreeStages.plan(width="infinite", target_loss=0.001)
WITHOUT_STAGE_2 = ThreeStages.plan(width="infinite", target_loss=0.001, score_at_T2=1e-9)


def _errors(part: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """g+ = g(X_{1,+,+}) and g- = g(X_{1,+,-}) at every record."""
    samples, error = TWO_GROUPS.population(), respond(part).error[0]
    first = (samples.signal[:, 0] == 0) & (samples.label > 0)
    return error[:, first & (samples.agreeing == 1)][:, 0], error[:, first & (samples.agreeing == 0)][:, 0]


@claim(
    "mixture.appF.sep",
    uses=("mixture.lemE3",),
    null=scrambled("stages"),
    source="Appendix F, opening",
    predicted=(
        "with the attention of T2, w+ = c1+c2+v1+v2 and w- = c1+c2-v1-v2 classify every sample by a constant"
    ),
    needs={"stages": LIMIT, "end_of": "2"},
    control={"end_of": "1.2"},
    control_is="the uniform attention of T1",
)
def simple_neurons_separate_after_stage_two(stages: xr.Dataset, end_of: str) -> Verdict:
    """Neurons that add up the signals, with opposite class signals in the two heads, solve the task once
    attention is learned.

    Threshold: least y f of at least 0.1, because the text says Omega(1)."""
    neurons = np.array([[1.0, 1, 1, 1], [1, 1, -1, -1]])
    scores = at_end_of(stages, end_of).scores.values[0]
    f = respond_with(TWO_GROUPS, neurons, scores, setting(stages, "bias")).f
    return exactly("least y f", float((TWO_GROUPS.population().label * f).min()), at_least=0.1)


@claim(
    "mixture.lemF1F2",
    null=scrambled("stages"),
    source="Lemmas F.1 and F.2",
    predicted=(
        "in stage 3 class alignment grows in proportion to g+ and group alignment at least in "
        "proportion to g-"
    ),
    needs={"stages": LIMIT},
    control={"stages": WITHOUT_STAGE_2},
    control_is="stage 2 left out: group alignment does not follow the conflicting samples",
)
def neurons_grow_with_the_errors(stages: xr.Dataset) -> Verdict:
    """Through stage 3, d(w+.v)/dt over g+ stays between constants and d(w+.c)/dt over g- above one.

    Threshold: a factor of at most 4 between the largest and the least d(w+.v)/g+, and at least 0.02 for
    d(w+.c)/g-, because the lemmas say Theta and Omega, with a remainder of order omega."""
    part = during(stages, "3")
    moving, (plus, minus) = velocity(part)["neurons"][0, :, 0], _errors(part)
    by_class, by_group = moving[:, 2] / plus, moving[:, 0] / minus
    return all_of(
        exactly("largest over least d(w.v)/g+", by_class.max() / max(by_class.min(), 1e-300), at_most=4),
        exactly("least d(w.c)/g-", by_group.min(), at_least=0.02),
    ).also(least_dwv_over_g=float(by_class.min()), largest_dwc_over_g=float(by_group.max()))


@claim(
    "mixture.F3",
    uses=("mixture.lemF1F2",),
    null=from_arm("stages", WITHOUT_STAGE_2, "stage 2 left out: the loss stays on its plateau"),
    source="Theorem F.3",
    predicted=(
        "in stage 3 the loss falls at least like the squared errors, so it is at most of order 1/(t - T2 + 1)"
    ),
    needs={"stages": LIMIT},
    control={"stages": WITHOUT_STAGE_2},
    control_is="stage 2 left out: the loss stays on its plateau",
)
def loss_falls_like_one_over_time(stages: xr.Dataset) -> Verdict:
    """Through stage 3, -dLoss/dt over g+^2 + g-^2 stays above a constant, and loss times (t - T2 + 1) stays
    bounded.

    Threshold: at least 0.01, and at most 20 down to a loss of 0.001, because the theorem says Omega and
    O(1/t)."""
    part = during(stages, "3")
    plus, minus = _errors(part)
    falling = (velocity(part)["neurons"][0] ** 2).sum((-1, -2))  # the gradient flow of neurons alone
    time = part.time.values[0] - stages.ended.sel(stages="2").item()
    product = part.loss.sel(kind="all").values[0] * (time + 1)
    return all_of(
        exactly("least -dLoss/dt over g+^2 + g-^2", (falling / (plus**2 + minus**2)).min(), at_least=0.01),
        exactly("largest loss times time", product.max(), at_most=20),
    )
