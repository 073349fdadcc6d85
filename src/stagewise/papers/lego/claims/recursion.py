"""Section 5 and Appendix E: Algorithm 2, each stage from the answers of the one before."""

from __future__ import annotations

import numpy as np

from stagewise.lab.judge.claims import claim
from stagewise.lab.judge.statistics import (
    Verdict,
    all_of,
    exactly,
    median_over_seeds,
    slope,
)
from stagewise.lab.spec.study import BeyondQuick
from stagewise.lazy import xr
from stagewise.papers.lego.readings import half_way
from stagewise.papers.lego.studies.theory import (
    recursion,
    recursion_sizes,
)

loose = recursion.but(target=0.3, stages=2)


@claim(
    "lego.thm51.double",
    source="Theorem 5.1, equation 11",
    predicted="the model of stage k solves twice its length",
    needs={"run": recursion, "times": 2},
    control={"times": 16},
    control_is="sixteen times the length",
)
def every_stage_solves_twice_its_length(run: xr.Dataset, times: int) -> Verdict:
    """After every stage at least 99 % of chains twice as long are right throughout.

    Threshold: the least over stages, in the median over seeds, because the theorem says every L up to
    2^(k+1)."""
    chain = run.chain.isel(record=0).sel(times=times)
    lack = 1 - run.probability.isel(record=0).sel(times=times).min("stages")
    return median_over_seeds("least share of chains", chain.min("stages"), at_least=0.99).also(
        largest_lack_of_Acc=float(lack.median()),
        **{f"length_{int(L)}": float(chain.sel(stages=L).median()) for L in run.stages.values},
    )


@claim(
    "lego.thm51.lim",
    source="Theorem 1.2",
    predicted="but not arbitrarily longer: a constant factor",
    needs={"run": recursion, "sizes": BeyondQuick(recursion_sizes), "times": 16},
    control={"times": 1},
    control_is="the length itself",
)
def only_a_constant_factor(run: xr.Dataset, sizes: xr.Dataset, times: int) -> Verdict:
    """After every stage fewer than half of the chains sixteen times as long are right; and the factor at
    which half are right grows neither with the stage nor with d.

    Threshold: the largest share over stages below 1/2, and slopes of the log factor on the stage and on log d
    below 0.1, because a constant factor is what the theorem leaves."""
    chain = run.chain.isel(record=0).sel(times=times).max("stages")
    grid = sizes.chain.isel(record=0, stages=0).transpose("seed", "vocabulary", "times").values
    factors = np.array([[half_way(row, sizes.times.values) for row in seed] for seed in grid])
    by_stage = np.array(
        [
            [half_way(row, run.times.values) for row in seed]
            for seed in run.chain.isel(record=0).transpose("seed", "stages", "times").values
        ]
    )
    return all_of(
        median_over_seeds("largest share of chains", chain, at_most=0.5),
        slope(
            "slope of the log factor on the stage",
            np.arange(by_stage.shape[1]),
            np.log(by_stage),
            at_most=0.1,
        ),
        slope(
            "slope of the log factor on log d", np.log(sizes.vocabulary.values), np.log(factors), at_most=0.1
        ),
    ).also(factor=float(np.median(factors)))


@claim(
    "lego.ind.F",
    source="Section 6.2.2, Appendix F",
    predicted="doubling the length at most doubles epsilon, and does not open the gap",
    needs={"run": recursion, "factor": 2.0},
    control={"factor": 1.0},
    control_is="a factor of 1",
)
def doubling_at_most_doubles(run: xr.Dataset, factor: float) -> Verdict:
    """At the start of every stage epsilon is at most twice that at the end of the stage before, and the gap
    no larger.

    Threshold: in every stage and seed, because both follow from the closed form."""
    before, last = run.missed_before.isel(record=0).values[:, 1:], run.missed.isel(record=0).values[:, :-1]
    gap_before, gap = (
        abs(run.gap_before.isel(record=0).values[:, 1:]),
        abs(run.gap.isel(record=0).values[:, :-1]),
    )
    return all_of(
        exactly("largest epsilon over its bound", (before / (factor * last)).max(), at_most=1),
        exactly("largest growth of the gap", (gap_before - gap).max(), at_most=0),
    )


@claim(
    "lego.cor51",
    source="Corollary 5.1",
    predicted="after about log2 |X| stages chains over all variables are solved",
    needs={
        "run": recursion.where(quick={"variables": 8}, standard={"variables": 16}, paper={"variables": 64}),
        "stage": -1,
    },
    control={"stage": 0},
    control_is="the first stage alone",
    note=(
        "As many stages as double 2 to the number of variables: 8 at preset quick (S3), 16 at standard "
        "(S4), 64 at paper (S5)."
    ),
)
def all_variables_are_solved(run: xr.Dataset, stage: int) -> Verdict:
    """After the last stage at least 99 % of the chains that name every variable are right throughout.

    Threshold: in the median over seeds, because the corollary says with high probability."""
    return median_over_seeds("share of chains", run.longest.isel(record=0, stages=stage), at_least=0.99)


@claim(
    "lego.selflabel",
    source="Section 6.2.2",
    predicted="answers that the model writes for the next length are right",
    needs={"run": recursion},
    control={"run": loose},
    control_is="a stop at loss d^-0.3",
)
def own_answers_are_right(run: xr.Dataset) -> Verdict:
    """At every stage at least 99.9 % of the answers it is trained on are true.

    Threshold: the least over stages, in the median over seeds, because the induction needs all labels
    right."""
    return median_over_seeds(
        "least agreement", run.agreement.isel(record=0).min("stages"), at_least=0.999
    ).also(stages_that_reached_their_stop=float(run.reached.mean()))
