"""Theorem 3.2, Lemma 4.7 and Appendices F.3 to F.5: what moves in Phase 2, and what hardly does."""

from __future__ import annotations

import numpy as np

from stagewise.lab.judge.claims import claim
from stagewise.lab.judge.statistics import Verdict, all_of, exactly, median_over_seeds, share_of_seeds
from stagewise.lazy import xr
from stagewise.papers.cooccurrence.claims.phase1 import trend
from stagewise.papers.cooccurrence.readings import (
    always,
    at_end,
    at_T1,
    entry,
    errors,
    in_order,
    phase,
    reached,
    scales_of,
    scores_move_right,
    setting,
    values_move_right,
)
from stagewise.papers.cooccurrence.studies import experiment, far, wide, widths


@claim(
    "cooccurrence.thm32.S",
    source="Theorem 3.2 (1), Lemma 4.7",
    predicted=(
        "in Phase 2 the scores between the targets increase and those of the common word for them decrease"
    ),
    needs={"flow": wide, "in_phase": "2"},
    control={"in_phase": "1"},
    control_is="Phase 1, where the signs still change",
)
def scores_move_one_way_in_phase_two(flow: xr.Dataset, in_phase: str) -> Verdict:
    """Derivatives of the four scores keep their signs at every time of Phase 2.

    Threshold: at every recorded time in most seeds, because the theorem says for all of the phase."""
    return share_of_seeds(
        "share of seeds with all signs at all times", always(scores_move_right(phase(flow, in_phase)))
    )


@claim(
    "cooccurrence.thm32.V",
    source="Theorem 3.2 (2), Corollary 4.6, Corollary F.13",
    predicted=(
        "in Phase 2 the values of the two targets become more alike and those of target and common word less"
    ),
    needs={"flow": wide, "in_phase": "2"},
    control={"in_phase": "1"},
    control_is="Phase 1, which starts from values without a sign",
)
def values_correlate_in_phase_two(flow: xr.Dataset, in_phase: str) -> Verdict:
    """The values' inner product of mu1 and mu2 increases and those with mu3 decrease at every time of Phase
    2.

    Threshold: at every recorded time in most seeds, because the theorem says for all of the phase."""
    return share_of_seeds(
        "share of seeds with all signs at all times", always(values_move_right(phase(flow, in_phase)))
    )


@claim(
    "cooccurrence.thm32.G",
    source="Theorem 3.2 (3)",
    predicted="G1, G2 and -G3 stay above a constant in Phase 2",
    needs={"flow": wide, "in_phase": "2"},
    control={"in_phase": "1"},
    control_is="Phase 1, which starts from zero",
    note="The third inequality is printed with the opposite sense, a slip.",
)
def values_stay_aligned(flow: xr.Dataset, in_phase: str) -> Verdict:
    """The least of G1, G2 and -G3 over the phase is at least a constant.

    Threshold: 0.25 in the median seed, because the theorem says Omega(1)."""
    G = phase(flow, in_phase).G
    least = np.minimum(G.isel(word=[0, 1]).min("word"), -G.isel(word=2)).min("record")
    return median_over_seeds("least of G1, G2, -G3", least, at_least=0.25)


@claim(
    "cooccurrence.thm32.sums",
    source="Theorem 3.2 (4)",
    predicted="in Phase 2 G1 + G2 + G3 is above a constant and G1 + G3, G2 + G3 are below minus one",
    needs={"flow": wide, "sign": 1.0},
    control={"sign": -1.0},
    control_is="the opposite signs",
    note="With few samples the random tokens that only one sequence has make types 2 and 3 right before "
    "these sums turn: the first sum "
    "holds from T1 on, the other two only later in the phase.",
)
def sums_of_values_have_their_signs(flow: xr.Dataset, sign: float) -> Verdict:
    """The three sums keep their signs, by 0.05 at least, at every time of Phase 2.

    Threshold: in most seeds, because the theorem says for all of the phase, and a constant."""
    one, two, three = (sign * phase(flow, "2").G.isel(word=i, drop=True) for i in range(3))
    first, others = one + two + three > 0.05, (one + three < -0.05) & (two + three < -0.05)
    return share_of_seeds("share of seeds with all three sums", always(first & others)).also(
        first_sum_always=float(always(first).mean()), others_at_the_end=float(others.isel(record=-1).mean())
    )


@claim(
    "cooccurrence.lem47",
    source="Lemma 4.7, Lemma F.16",
    predicted=(
        "in Phase 2 the four scores move at a speed of order loss s0^2 m / (sqrt(m) L), up to logarithms"
    ),
    needs={"flow": wide, "transposed": False},
    control={"transposed": True},
    control_is="keys and queries exchanged",
)
def scores_move_in_proportion_to_the_loss(flow: xr.Dataset, transposed: bool) -> Verdict:
    """The derivatives of S12 and S21, and minus those of S31 and S32, over loss s0^2 sqrt(m) / L.

    Threshold: between 0.05 and 20 at every time in most seeds, because the lemma says Theta up to logarithms,
    and log(1/loss) is 7."""
    part, s0 = phase(flow, "2"), scales_of(flow)[0]
    unit = part.loss * s0**2 * np.sqrt(setting(flow, "width")) / setting(flow, "task.length")
    falling = ((1, 3), (2, 3)) if transposed else ((3, 1), (3, 2))
    moving = [
        entry(part.dscores, 1, 2),
        entry(part.dscores, 2, 1),
        *(-entry(part.dscores, *pair) for pair in falling),
    ]
    over: list[xr.DataArray] = [speed / unit for speed in moving]
    ratios = xr.concat(over, "which")
    return share_of_seeds("share of seeds", always(((ratios > 0.05) & (ratios < 20)).all("which"))).also(
        least=float(ratios.min()), largest=float(ratios.max())
    )


@claim(
    "cooccurrence.F14",
    source="Lemma F.14",
    predicted="G of random tokens stays of order one in Phase 2",
    needs={"flow": wide, "special": False},
    control={"special": True},
    control_is="the special words, whose G grows with log(1/loss)",
)
def random_tokens_stay_small(flow: xr.Dataset, special: bool) -> Verdict:
    """The largest |G| of a random token at T*, where outputs are near log(1/loss) = 7.

    Threshold: at most 3 in the median seed, because the lemma says a change of O(1/n), up to logarithms and
    lower orders."""
    end = at_end(flow)
    return median_over_seeds("largest |G|", abs(end.G).max("word") if special else end.G_random, at_most=3)


@claim(
    "cooccurrence.F14.sum",
    source="Corollary F.15, Definition F.1",
    predicted="what a sequence's random tokens add to its output stays of order one in Phase 2",
    needs={"flow": wide},
    control={"flow": wide.but(**{"task.samples": 18, "task.vocabulary": 83})},
    control_is="18 samples",
    note=(
        "It grows like log(1/loss), and with fewer samples faster: each sequence learns its own random "
        "tokens by heart."
    ),
)
def random_tokens_of_a_sequence_stay_small(flow: xr.Dataset) -> Verdict:
    """The largest part of an output that is due to random tokens at T*, where outputs are near log(1/loss) =
    7.

    Threshold: at most 3 in the median seed, because the corollary says O(1)."""
    return median_over_seeds("largest part", at_end(flow).random_part, at_most=3)


@claim(
    "cooccurrence.F11",
    source="Lemma F.11",
    predicted="in Phase 2 the values' inner products change by order log(m) log(t) / m only",
    needs={"flows": widths, "of": "CV_change"},
    control={"of": "G"},
    control_is="G itself, which changes as much at any width",
    note="Its formula for the derivative is part of cooccurrence.appC.",
    restated="2026-11-15: divided by log m, which the lemma prints and our first form left to the tolerance; "
    "that gave -0.883 [-0.903, -0.863], "
    "inconclusive.",
)
def values_change_by_one_over_width(flows: xr.Dataset, of: str) -> Verdict:
    """The largest change of an inner product of values by T*, over log m, shrinks with m.

    Threshold: a slope in log-log of at most -0.9, because the lemma gives an upper bound of log(m) log(t) /
    (s1^2 m m1), and s1^2 m m1 = m."""
    end = at_end(flows)
    changed = abs(end.G).max("word") if of == "G" else end[of]
    return trend("slope on m", flows, "width", changed / np.log(flows.width), at_most=-0.9)


@claim(
    "cooccurrence.F4",
    source="Lemma F.4, equation (5)",
    predicted="d alpha/dt = (2 m1 / n) sum of g y F, and it is positive in Phase 2",
    needs={"flow": wide, "in_phase": "2"},
    control={"in_phase": "1"},
    control_is="Phase 1, where some outputs still have the wrong sign",
)
def neurons_correlate_in_phase_two(flow: xr.Dataset, in_phase: str) -> Verdict:
    """The derivative of alpha is 2 m1 times the mean of g y F, and positive from T1 on.

    Threshold: equal to 1e-9, and positive at every time in most seeds, because the lemma is an identity and
    every y F is positive."""
    said = 2 * setting(flow, "neurons") * flow.mean_gyF
    off = (abs(flow.dalpha - said).max("record") / abs(flow.dalpha).max("record")).max().item()
    return all_of(
        exactly("largest relative deviation", off, at_most=1e-9),
        share_of_seeds("positive at all times", always(phase(flow, in_phase).dalpha > 0)),
    )


@claim(
    "cooccurrence.F9F10",
    source="Corollary F.9, Lemma F.10",
    predicted="alpha stays of the order of its start, and what it gains in Phase 2 is of order m1/m",
    needs={"flow": wide, "widths": widths},
    control={"flow": experiment},
    control_is="the paper's own experiment, where alpha grows by a factor of 3",
    restated=(
        "2026-11-16: log m, which Lemma F.10 prints, is taken out and the bound put at -1.9; it was "
        "-1.8 without a reason (measured -1.86)."
    ),
)
def neurons_hardly_correlate(flow: xr.Dataset, widths: xr.Dataset) -> Verdict:
    """alpha at T* is its initial value up to a small factor, and its relative gain in Phase 2 shrinks with m.

    Threshold: at most 1.5 times in the median seed, and a slope of at most -1.9 once the lemma's log m is
    taken out, because it gives m1 log(m) log(t) / m beside s1^2 m m1 = m."""
    return all_of(
        median_over_seeds(
            "alpha(T*) over alpha(0)", at_end(flow).alpha / flow.alpha.isel(record=0), at_most=1.5
        ),
        trend(
            "slope of the gain on m",
            widths,
            "width",
            (at_end(widths).alpha / at_T1(widths).alpha - 1) / np.log(widths.width),
            at_most=-1.9,
        ),
    )


@claim(
    "cooccurrence.Wpath",
    source="Section 4.2, Definition F.1, Corollary F.12",
    predicted="G moves through the values (W_V) much more than through the neurons (W)",
    needs={"flow": wide},
    control={"flow": experiment},
    control_is="the paper's own experiment, where m1 is larger than m",
    note="In the paper's own experiment (m = 128 < m1 = 256, Kaiming) the path through W is the larger one: "
    "the assumption m >= m1 "
    "of its theory does not hold there.",
)
def values_move_G_more_than_neurons(flow: xr.Dataset) -> Verdict:
    """The part of dG that goes through W beside the part that goes through W_V, in all of Phase 2; and its
    largest value on any word over alpha times the mean error.

    Threshold: at most 0.1, and at most 0.1/L, in the median seed, because the paper calls it much smaller,
    and o(1/L)."""
    part = phase(flow, "2")
    ratio = (abs(part.dG_neurons) / abs(part.dG_values)).max(["record", "word"])
    largest = (part.dG_neurons_largest / (part.alpha * part.errors.sum("type"))).max("record")
    return all_of(
        median_over_seeds("W path over W_V path", ratio, at_most=0.1),
        median_over_seeds("L times the largest W path", largest * setting(flow, "task.length"), at_most=0.1),
    )


@claim(
    "cooccurrence.corF7",
    source="Corollary F.7",
    predicted="in Phase 2 G1, G2 and -G3 stay in proportion",
    needs={"flow": wide, "in_phase": "2"},
    control={"in_phase": "1"},
    control_is="Phase 1, which starts from noise",
)
def values_stay_in_proportion(flow: xr.Dataset, in_phase: str) -> Verdict:
    """The largest over the least of G1, G2 and -G3 at every time of Phase 2.

    Threshold: at most 3 in the median seed, and all positive, because the corollary says Theta(1)."""
    G = phase(flow, in_phase).G * xr.DataArray([1.0, 1.0, -1.0], dims="word")
    least = G.min("word")
    return median_over_seeds(
        "largest ratio", (G.max("word") / least.where(least > 0, 1e-9)).max("record"), at_most=3
    )


@claim(
    "cooccurrence.T2poly",
    source="Theorem 3.2, Definition F.1, Theorem F.20",
    predicted="Phase 2 lasts for a time that is polynomial in m",
    needs={"flow": far},
    control={"flow": experiment},
    control_is="the paper's own experiment, whose alpha leaves its bound",
    note="A proxy: the theorem is about m -> infinity. At m = 2048 the phase is followed to a loss of 3e-5. "
    "All conditions hold but that on "
    "random tokens, whose part in the outputs grows like log(1/loss) with this few samples (F14.sum).",
)
def phase_two_lasts(flow: xr.Dataset) -> Verdict:
    """To a scaled time of 10^5 the conditions of Definition F.1 hold: alpha at most twice its start,
    attention within 1/L^2, errors in order with S2/S3 between 1/2 and 2, every y F above 0.1, |G| at most 2
    log m, a sequence's random tokens at most 3.

    Threshold: all of them at every time of Phase 2 in most seeds, because they define the phase; the
    constants stand for its O(1)."""
    part, L, m = phase(flow, "2"), setting(flow, "task.length"), setting(flow, "width")
    _, two, three, _ = errors(part)
    conditions = {
        "alpha": part.alpha <= 2 * flow.alpha.isel(record=0),
        "attention": part.attention_change < 1 / L**2,
        "errors": in_order(part) & (two / three > 0.5) & (two / three < 2),
        "outputs": part.margin > 0.1,
        "G": abs(part.G).max("word") <= 2 * np.log(m),
        "random tokens": part.random_part <= 3,
    }
    together = np.logical_and.reduce([always(condition).values for condition in conditions.values()])
    return share_of_seeds("share of seeds with all conditions", together, missing=~reached(flow)).also(
        **{f"with {name}": float(always(condition).mean()) for name, condition in conditions.items()}
    )
