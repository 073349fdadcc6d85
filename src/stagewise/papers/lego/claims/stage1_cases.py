"""Stage 1 in special cases: two values, skewed embeddings, and variables, which are copied."""

from __future__ import annotations

import numpy as np

from stagewise.lab.judge.claims import claim
from stagewise.lab.judge.statistics import (
    HOLDS,
    Verdict,
    all_of,
    share_of_seeds,
    slope,
)
from stagewise.lab.spec.settings import setting
from stagewise.lab.spec.study import BeyondQuick
from stagewise.lazy import xr
from stagewise.papers.lego.claims.stage1 import (
    BLUNT,
    action_and_value_get_the_same,
    blunt,
    cyclic_features_are_balanced,
    one_neuron_a_feature,
)
from stagewise.papers.lego.closed import least_loss
from stagewise.papers.lego.readings import action_of, top_of
from stagewise.papers.lego.studies.theory import (
    copied_sizes,
    copying,
    skewed,
    two_values,
)


@claim(
    "lego.c2",
    source="Section 6.3",
    predicted="C2, where the chain is a parity, is a special case: the same verdicts",
    needs={"run": BeyondQuick(two_values)},
    control={"run": BeyondQuick(two_values.but(q=4))},
    control_is=BLUNT,
)
def parity_is_a_special_case(run: xr.Dataset) -> Verdict:
    """For C2 stage 1 ends at the features of equation 17, with one neuron a feature, and action and value get
    the same.

    Threshold: as for lego.eq17, lego.eq17e and lego.s1.sparse, because it is the same theorem."""
    return all_of(
        cyclic_features_are_balanced.judge(run),
        action_and_value_get_the_same.judge(run),
        one_neuron_a_feature.judge(run),
    )


@claim(
    "lego.embed",
    source="Definition 3.2",
    predicted="an embedding that is well-conditioned but not orthonormal gives the same",
    needs={"run": BeyondQuick(skewed)},
    control={"run": BeyondQuick(blunt)},
    control_is=BLUNT,
    note="The Gram matrix has condition number 2; features are V = W M and move by the gradient turned with "
    "it. Half of a feature then rises with its neighbour, "
    "wrong outputs pass the clip, where no gradient reaches them, and the flow gets stiff: most seeds do not "
    "end within the solver's steps.",
)
def embeddings_need_not_be_orthonormal(run: xr.Dataset) -> Verdict:
    """With such an embedding stage 1 still solves one step, and one neuron carries each feature.

    Threshold: as for lego.s1.onestep and lego.s1.sparse, because the remark says that results are not
    affected."""
    least = least_loss(setting(run, "vocabulary"), top_of(run))
    from stagewise.training.stages import GAVE_UP

    at = run.isel(record=-1)
    verdict = all_of(
        share_of_seeds("share of seeds that solve it", (at.loss <= 1.3 * least) & (at.accuracy == 1)),
        one_neuron_a_feature.judge(run),
    )
    stuck = int((run.outcome == GAVE_UP).sum())
    if stuck and verdict.outcome != HOLDS:
        return verdict.left_open(
            f"the solver gave up in {stuck} of {verdict.seeds} seeds before the end",
            "more steps of the solver",
        )
    return verdict


@claim(
    "lego.s1.retrieve",
    source="Section 6.1.1, Lemmas A.3 to A.12",
    predicted="slot 4 learns to copy: its diagonal grows, everything else stays small",
    needs={"run": BeyondQuick(copying), "record": -1},
    control={"record": 0},
    control_is="the start",
)
def variables_are_copied(run: xr.Dataset, record: int) -> Verdict:
    """After stage 1 slot 4 is right, every variable's diagonal weight is ten times any other weight of slot
    1, it grew monotonically, and weights on actions and values are below 1/|G| and 1/|Y| of it.

    Threshold: accuracy above 0.99, a factor of 10, 99 % of records without a fall, and 1 for the constants,
    in most seeds, because off-diagonal weights are O(diagonal/d) and those on actions and values O(1/|G|) and
    O(1/|Y|) of it."""
    at = run.isel(record=record)
    ratio = at.diagonal.min("variable") / at.off_diagonal
    grows = (np.diff(run.diagonal.values, axis=1) >= -1e-9).mean((1, 2))
    action = action_of(run)
    by_action, by_value = (at[name] / at.diagonal.min("variable") for name in ("by_action", "by_value"))
    small = (by_action <= 1 / action.actions) & (by_value <= 1 / action.values)
    return share_of_seeds(
        "share of seeds", (at.accuracy > 0.99) & (ratio > 10) & (grows >= 0.99) & small
    ).also(
        median_ratio=float(ratio.median()),
        action_over_diagonal=float(by_action.median()),
        value_over_diagonal=float(by_value.median()),
        median_share_of_growing_records=np.median(grows),
    )


@claim(
    "lego.s1.phi4",
    source="Lemmas A.5 and A.12",
    predicted="the active diagonal of slot 4 adds up to Theta(log d)",
    needs={"runs": BeyondQuick(copied_sizes), "record": -1},
    control={"record": 0},
    control_is="the start",
    note="A fit over three or four sizes, 11 to 45 tokens: the range of log d is short.",
)
def the_diagonal_is_log_d(runs: xr.Dataset, record: int) -> Verdict:
    """The active diagonal mass of a variable grows like log d.

    Threshold: the log-log slope of mass on log d between 0.5 and 1.5, because the lemmas bound it from both
    sides by log d up to constants and powers of log log d."""
    action = action_of(runs)
    size = runs["variables"].values + action.actions + action.values + 1.0
    mass = runs.active.isel(record=record).mean("variable", skipna=True).transpose("seed", "variables").values
    return slope(
        "slope of log mass on log log d",
        np.log(np.log(size)),
        np.log(np.maximum(mass, 1e-3)),
        at_least=0.5,
        at_most=1.5,
    ).also(**{f"mass_at_d_{int(d)}": np.median(mass[:, i]) for i, d in enumerate(size)})
