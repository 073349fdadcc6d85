"""Section 6, Figure 3 right: a standard encoder on a mixture of hops, and on the hardest alone."""

from __future__ import annotations

import numpy as np

from stagewise.lab.judge.claims import claim
from stagewise.lab.judge.statistics import (
    Verdict,
    difference_of_shares,
    share_of_seeds,
    undecided,
)
from stagewise.lab.spec.settings import setting
from stagewise.lab.spec.study import BeyondQuick
from stagewise.lazy import xr
from stagewise.papers.composition.readings import first_record_at
from stagewise.papers.composition.studies import (
    in_turn,
    mixtures,
    patience,
    readout_hardest,
    readout_mixture,
    token_hardest,
    token_mixture,
    widths,
)


def learned(run: xr.Dataset) -> np.ndarray:
    """By seed: whether the most hops were ever learned."""
    return run.done_at.values >= 0


def mixture_helps(mixture: xr.Dataset, hardest: xr.Dataset) -> Verdict:
    first = mixture.done_at.values[learned(mixture)]
    return difference_of_shares(
        "share of seeds that learn 4 hops from the mixture, less that from 4 hops alone",
        learned(mixture),
        learned(hardest),
    ).also(
        from_the_mixture=float(learned(mixture).mean()),
        from_4_hops_alone=float(learned(hardest).mean()),
        median_steps=float(np.median(first)) if first.size else np.nan,
        accuracy_at_the_end=float(mixture.accuracy.isel(record=-1, hops=-1).median()),
        accuracy_of_4_hops_alone=float(hardest.accuracy.isel(record=-1, hops=-1).median()),
    )


@claim(
    "composition.fig3right",
    source="Figure 3 right",
    predicted="an encoder learns 4-fold composition from {1, 2, 4}-fold data and not from 4-fold data alone",
    needs={"mixture": BeyondQuick(token_mixture), "hardest": BeyondQuick(token_hardest)},
    control={"mixture": BeyondQuick(token_hardest)},
    control_is="4-fold data in both arms",
    note=(
        "The paper's set-up: a token in front says how many hops, 10^5 sequences. Depth, width, rate and "
        "steps are not given; ours were chosen on seeds from 100 on; those that are judged are 0 to 19."
    ),
)
def mixture_teaches_the_encoder(mixture: xr.Dataset, hardest: xr.Dataset) -> Verdict:
    """More seeds learn 4 hops (accuracy 0.99 on sequences that are not in the pool) from the mixture than
    from 4-fold data alone.

    Threshold: difference of shares above 0, because the figure shows success with the mixture and chance
    without."""
    return mixture_helps(mixture, hardest)


@claim(
    "composition.fig3right.readouts",
    source="Figure 3 right, with the theory's readouts",
    predicted="the same with one readout for each number of hops",
    needs={"mixture": BeyondQuick(readout_mixture), "hardest": BeyondQuick(readout_hardest)},
    control={"mixture": BeyondQuick(readout_hardest)},
    control_is="4-fold data in both arms",
    beyond_paper=True,
    note="As in the theory, and unlike the figure, all hops are asked of every sequence, on one trunk.",
)
def mixture_teaches_with_readouts(mixture: xr.Dataset, hardest: xr.Dataset) -> Verdict:
    """More seeds learn 4 hops from the mixture than from 4-fold data alone.

    Threshold: difference of shares above 0, because the theory's staircase needs the easy hops in the same
    trunk."""
    return mixture_helps(mixture, hardest)


@claim(
    "composition.fig3right.order",
    source="Figure 3 right, Theorem 8",
    predicted="the mixture's hops are learned in order, 1 before 2",
    needs={"run": readout_mixture, "order": (0, 1)},
    control={"order": (1, 0)},
    control_is="2 hops before 1",
    beyond_paper=True,
)
def hops_are_learned_in_order(run: xr.Dataset, order: tuple) -> Verdict:
    """1 hop reaches an accuracy of 0.9 before 2 hops do, and 2 hops do reach it.

    Threshold: in most seeds, because the theory learns each hop on the one before."""
    when = first_record_at(run.accuracy, 0.9)
    early, late = when[:, order[0]], when[:, order[1]]
    return share_of_seeds("share of seeds", (early < late) & (late < run.sizes["record"])).also(
        steps_of_1_hop=float(np.median(run.step.values[np.minimum(when[:, 0], run.sizes["record"] - 1)])),
        steps_of_2_hops=float(np.median(run.step.values[np.minimum(when[:, 1], run.sizes["record"] - 1)])),
    )


@claim(
    "composition.fig3right.chance",
    source="Figure 3 right, Theorem 5",
    predicted="from 4-fold data alone the encoder stays at chance",
    needs={"run": BeyondQuick(token_hardest), "hops": 4},
    control={"run": BeyondQuick(token_mixture), "hops": 1},
    control_is="one hop, from the mixture",
    beyond_paper=True,
)
def hard_data_alone_stay_at_chance(run: xr.Dataset, hops: int) -> Verdict:
    """At the end the accuracy on 4 hops is below 1.2/N.

    Threshold: in most seeds, because the figure shows chance; 1.2 for what 128 test sequences leave open."""
    return share_of_seeds(
        "share of seeds", run.accuracy.isel(record=-1).sel(hops=hops) < 1.2 / setting(run, "task.symbols")
    )


@claim(
    "composition.hop3",
    source="beyond the paper",
    predicted="with 3 hops in the mixture too, more seeds learn 4 hops",
    needs={"runs": BeyondQuick(mixtures), "with_3": "(1, 2, 3, 4)"},
    control={"with_3": "(1, 2, 4)"},
    control_is="the same mixture twice",
    beyond_paper=True,
    note=(
        "One readout for each number of hops; 8 seeds, 2000 steps. Thought of on seeds from 100 on, where 4 "
        "of 4 learned with 3 hops and 2 of 4 without."
    ),
)
def three_hops_help(runs: xr.Dataset, with_3: str) -> Verdict:
    """More seeds learn 4 hops from the mixture of 1, 2, 3 and 4 than from that of 1, 2 and 4.

    Threshold: difference of shares above 0, because that is the statement."""
    read = runs.sel(form="readouts")
    shares = {
        hops: read.sel(asked_hops=hops).done_at.values >= 0
        for hops in (with_3, "(1, 2, 4)", "(1, 4)", "(2, 4)")
    }
    return difference_of_shares(
        "share of seeds with 3 hops less that without", shares[with_3], shares["(1, 2, 4)"]
    ).also(**{f"share_from_{hops}": float(share.mean()) for hops, share in shares.items()})


@claim(
    "composition.width",
    source="beyond the paper",
    predicted="wider encoders learn 4 hops in more seeds",
    needs={"runs": BeyondQuick(widths), "wide": 128},
    control={"wide": 32},
    control_is="width 32 twice",
    beyond_paper=True,
    note=(
        "Widths 32, 64 and 128, one readout for each number of hops, 8 seeds, 2000 steps; with the token "
        "beside it."
    ),
)
def width_helps(runs: xr.Dataset, wide: int) -> Verdict:
    """With readouts, more seeds learn 4 hops at width 128 than at width 32.

    Threshold: difference of shares above 0, because that is the statement."""
    shares = {
        (form, int(width)): learned(runs.sel(form=form, width=width))
        for form in runs["form"].values
        for width in runs.width.values
    }
    return difference_of_shares(
        "share of seeds at width 128 less that at 32", shares["readouts", wide], shares["readouts", 32]
    ).also(
        **{f"share_with_{form}_at_{width}": float(share.mean()) for (form, width), share in shares.items()}
    )


@claim(
    "composition.in_turn",
    source="beyond the paper",
    predicted="Algorithm 1's curriculum teaches a standard encoder too",
    needs={"runs": BeyondQuick(in_turn), "hardest": BeyondQuick(readout_hardest)},
    control={"runs": BeyondQuick(in_turn.but(data="hardest"))},
    control_is="4-fold data throughout",
    beyond_paper=True,
    note="1, then 2, then 4 hops, 1000 steps each, all weights trained on; 8 seeds.",
)
def curriculum_teaches_the_encoder(runs: xr.Dataset, hardest: xr.Dataset) -> Verdict:
    """With readouts, more seeds learn 4 hops from 1, 2 and 4 hops in turn than from 4-fold data alone.

    Threshold: difference of shares above 0, because Theorem 7 has success and Theorem 5 none."""
    found = runs.sel(form="readouts")
    return difference_of_shares(
        "share of seeds from the curriculum, less that from 4 hops alone", learned(found), learned(hardest)
    ).also(
        from_the_curriculum=float(learned(found).mean()),
        with_the_token=float(learned(runs.sel(form="token")).mean()),
        **{
            f"accuracy_of_{int(hops)}_hops_at_the_end": float(
                found.accuracy.isel(record=-1).sel(hops=hops).median()
            )
            for hops in runs.hops.values
        },
    )


@claim(
    "composition.patience",
    source="beyond the paper",
    predicted="success is decided early: after a short plateau, or not in ten times as long",
    needs={"runs": BeyondQuick(patience), "spread": False},
    control={"spread": True},
    control_is="as many successes, spread evenly over the steps",
    restated=(
        "2026-11-18: by a tenth of the steps, for presets of other lengths; first by step 2000, which "
        "is the same at preset standard."
    ),
    beyond_paper=True,
    note="One readout for each number of hops, 20000 steps, 8 seeds; with the token beside it.",
)
def success_is_early_or_not_at_all(runs: xr.Dataset, spread: bool) -> Verdict:
    """Of the seeds that ever learn 4 hops (in 20000 steps at preset standard), most have in a tenth of the
    steps.

    Threshold: share above one half, because first runs succeeded within 600 steps or not in 3000."""
    when = runs.sel(form="readouts").done_at.values
    succeeded = when[when >= 0]
    if not succeeded.size:
        return undecided("no seed learned 4 hops", "more seeds, or a larger budget", int(when.size))
    times = np.linspace(0, runs.step.values[-1], succeeded.size + 2)[1:-1] if spread else succeeded
    return share_of_seeds("share of successes by then", times <= runs.step.values[-1] / 10).also(
        successes=float(succeeded.size),
        seeds=float(when.size),
        latest=float(succeeded.max()),
        successes_with_the_token=float(learned(runs.sel(form="token")).sum()),
    )
