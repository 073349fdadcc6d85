"""Theorems 4.1 and 5.1: how far what was learned at length 2 reaches, and what self-training adds."""

from __future__ import annotations

import numpy as np

from stagewise.lab.judge.claims import claim
from stagewise.lab.judge.statistics import (
    Verdict,
    all_of,
    exactly,
    share_of_seeds,
    slope,
    undecided,
)
from stagewise.lab.spec.settings import setting
from stagewise.lab.spec.study import BeyondQuick
from stagewise.lazy import xr
from stagewise.papers.lego.closed import SCORES, concentration, follow, ideal_features, scales
from stagewise.papers.lego.readings import action_of, at_loss, at_time, each, least_loss, missed_at
from stagewise.papers.lego.studies.theory import (
    clips,
    cyclic_sizes,
    high_cyclic_sizes,
    high_symmetric_sizes,
    learned_sizes,
    recursion,
    symmetric_sizes,
)


def explained(x: np.ndarray, y: np.ndarray) -> float:
    fit = np.polyval(np.polyfit(x, y, 1), x)
    return float(1 - ((y - fit) ** 2).sum() / ((y - y.mean()) ** 2).sum())


@claim(
    "lego.thm41.attn",
    source="Theorem 4.1, equation 8",
    predicted="simply transitive: epsilon <= O(d^-c), 0 < c < 1",
    needs={"runs": cyclic_sizes, "high": high_cyclic_sizes},
    control={"runs": symmetric_sizes, "high": high_symmetric_sizes},
    control_is="a symmetric group",
    restated="2026-11-16: first with a slope below 0 at the stop of Algorithm 2 too, loss d^-2.97 with a "
    "clip of 6. That is not Algorithm 1's, which runs for a time poly(d); the "
    "slope there is shown, and is zero: at equal powers of d in the loss C6 is no sharper than a symmetric "
    "group.",
    note=(
        "Judged where the loss is 1.1 times its least and at times d and d^2. The exponent is no robust "
        "constant: it depends on the stop."
    ),
)
def cyclic_attention_concentrates_with_d(runs: xr.Dataset, high: xr.Dataset) -> Verdict:
    """Stopped at the same relative loss, at time d or at time d^2, epsilon of C6 falls as a power of d.

    Threshold: a slope below 0 of log epsilon on log d by each rule, with 0.9 of the variance at matched loss,
    because the theorem has a power of d."""
    x = np.log(runs.vocabulary.values)
    by_loss = missed_at(runs, "loss")
    return all_of(
        slope("slope at matched loss", x, by_loss, at_most=0),
        exactly("share of variance", explained(x, by_loss), at_least=0.9),
        slope("slope at time d", x, missed_at(runs, "1"), at_most=0),
        slope("slope at time d^2", x, missed_at(runs, "2"), at_most=0),
    ).also(
        slope_at_algorithm_2s_stop=np.polyfit(x, missed_at(high, "paper"), 1)[0],
        epsilon_at_the_largest_d=np.exp(by_loss[-1]),
    )


@claim(
    "lego.thm41.learned",
    source="Theorem 4.1, equation 8",
    predicted="the same with the features that stage 1 leaves",
    needs={"runs": BeyondQuick(learned_sizes), "turned": 1.0},
    control={"turned": -1.0},
    control_is="sizes in reverse order",
    note=(
        "Algorithm 1 throughout: C4, q = 32, clip 2; both stages in closed form, 6 seeds. Stopped at times "
        "d and d^2; features that are shared by two neurons keep the loss from its least value."
    ),
)
def learned_features_concentrate_too(runs: xr.Dataset, turned: float) -> Verdict:
    """With learned features, at times d and d^2, epsilon of C4 falls as a power of d.

    Threshold: a slope below 0 of log epsilon on log d over seeds, because the theorem has a power of d."""
    x = turned * np.log(runs.vocabulary.values)
    by_power = {
        power: np.stack([np.log(at_time(run, "missed", d**power)) for d, run in each(runs)], 1)
        for power in (1, 2)
    }
    return all_of(
        *(slope(f"slope at time d^{power}", x, found, at_most=-1e-9) for power, found in by_power.items())
    )


def reach(runs: xr.Dataset, share: float = 0.9, longest: int = 256) -> tuple[np.ndarray, np.ndarray]:
    """The longest chain, of powers of two, of which so many are right, at each size, where the loss is 1.1
    times its least; and 1 - Acc there."""
    lengths, lacks = [], []
    table, q = action_of(runs).maps(), setting(runs, "q")
    for d, run in each(runs):
        constants = scales(d, setting(runs, "clip"), setting(runs, "rho"), q)
        scores = {name: at_loss(run, name, 1.1 * least_loss(run, d))[0] for name in SCORES}
        length, last = 1, 1.0
        while length < longest:
            tried = follow(
                ideal_features(table, constants["top"]),
                table,
                scores,
                2 * length,
                constants,
                np.random.default_rng(0),
                count=128,
            )
            if tried["chain"] <= share:
                break
            length, last = 2 * length, tried["probability"]
        lengths.append(length)
        lacks.append(1 - last)
    return np.array(lengths, float), np.array(lacks)


@claim(
    "lego.thm41.len",
    source="Theorem 4.1, equation 7; Theorem 1.2",
    predicted="simply transitive: what is learned at length 2 solves lengths up to d^c",
    needs={"runs": cyclic_sizes},
    control={"runs": symmetric_sizes},
    control_is="a symmetric group",
)
def cyclic_length_grows_with_d(runs: xr.Dataset) -> Verdict:
    """The longest chain of which nine in ten are right grows as a power of d.

    Threshold: a log-log slope above 0 with its interval, because the theorem has a power of d."""
    lengths, lacks = reach(runs)
    x = np.log(runs.vocabulary.values)
    return slope("log-log slope", x, np.log(lengths), at_least=1e-9).also(
        **{f"length_at_d_{d:g}": length for d, length in zip(runs.vocabulary.values, lengths)},
        lack_of_Acc_there=float(lacks.max()),
    )


@claim(
    "lego.bound",
    source="End of Section 6.2.1",
    predicted="epsilon at length L is at most O(L)/(O(L) + 1/epsilon at length 2), and the gap does not grow",
    needs={"runs": cyclic_sizes, "constant": 2.0},
    control={"constant": 0.1},
    control_is="a constant of 0.1",
)
def dilution_is_bounded(runs: xr.Dataset, constant: float) -> Verdict:
    """For every answer of chains up to 256: epsilon <= 2L/(2L + 1/epsilon2), and |gap| at most that at length
    2.

    Threshold: without exception, with 2 for the constant, because both follow from the closed form."""
    worst, gaps = [], []
    for _, run in each(runs):
        scores = {name: float(run[name].values[0, -1]) for name in SCORES}
        short, short_gap = (float(part) for part in concentration(scores, 2, 2))
        for length in (2, 4, 16, 64, 256):
            for step in (1, 2, length // 2, length):
                missed, gap = (float(part) for part in concentration(scores, length, max(step, 1)))
                worst.append(missed / (constant * length / (constant * length + 1 / short)))
                gaps.append(abs(gap) - abs(short_gap))
    first_gap = [
        abs(float(concentration({n: float(run[n].values[0, -1]) for n in SCORES}, 2, 1)[1]))
        for _, run in each(runs)
    ]
    return all_of(
        exactly("largest epsilon over its bound", max(worst), at_most=1 + 1e-9),
        exactly("largest growth of the gap", max(gaps), at_most=1e-3),
    ).also(largest_gap_of_the_first_answer=max(first_gap))


@claim(
    "lego.thm51.const",
    source="Theorem 5.1, equation 12; Theorem 1.2",
    predicted="symmetric: epsilon stays a constant however large d",
    needs={
        "symmetric": symmetric_sizes,
        "cyclic": cyclic_sizes,
        "high": high_symmetric_sizes,
        "high_cyclic": high_cyclic_sizes,
    },
    control={"symmetric": cyclic_sizes, "high": high_cyclic_sizes},
    control_is="the simply transitive group in its place",
    restated="2026-11-16: first with the contrast to C6 at the paper's stop too, loss d^-2.97. The paper "
    "trains C_n by Algorithm 1, which has another stop; the contrast there is "
    "shown, and there is none: both groups end equally blurred.",
    note=(
        "At the same relative loss and at the paper's. At a fixed time epsilon of a symmetric group falls "
        "too (see slope_at_time_d2): a constant needs the stop by loss."
    ),
)
def symmetric_attention_stays_a_constant(
    symmetric: xr.Dataset, cyclic: xr.Dataset, high: xr.Dataset, high_cyclic: xr.Dataset
) -> Verdict:
    """Stopped by loss, log epsilon of the symmetric group does not fall with log d, and C6's falls away from
    it.

    Threshold: slope at least -0.05 by both stops, and the slope of the difference to C6 below 0, because a
    constant has slope 0 and the theorem contrasts the two."""
    x = np.log(symmetric.vocabulary.values)
    by_loss, paper = missed_at(symmetric, "loss"), missed_at(high, "paper")
    return all_of(
        slope("slope at matched loss", x, by_loss, at_least=-0.05),
        slope("slope at the paper's loss, clip 6", x, paper, at_least=-0.05),
        slope("slope of C6 minus this, matched loss", x, missed_at(cyclic, "loss") - by_loss, at_most=-1e-9),
    ).also(
        slope_of_C6_minus_this_at_the_papers_loss=np.polyfit(x, missed_at(high_cyclic, "paper") - paper, 1)[
            0
        ],
        slope_at_time_d=np.polyfit(x, missed_at(symmetric, "1"), 1)[0],
        slope_at_time_d2=np.polyfit(x, missed_at(symmetric, "2"), 1)[0],
    )


@claim(
    "lego.thm51.contrast",
    source="Theorem 1.2",
    predicted="at the paper's stop too, C6 is sharper than a symmetric group, the more so the larger d",
    needs={"symmetric": high_symmetric_sizes, "cyclic": high_cyclic_sizes},
    control={"symmetric": high_cyclic_sizes},
    control_is="C6 against itself",
    note=(
        "Both groups stopped by the rule of Algorithm 2, loss d^-2.97 with a clip of 6. Theorem 4.1 lets "
        "Algorithm 1 run for a time poly(d) instead: what tells the groups apart is how long training goes "
        "on."
    ),
)
def groups_differ_at_the_papers_stop(symmetric: xr.Dataset, cyclic: xr.Dataset) -> Verdict:
    """Where the loss is d^-2.97, epsilon of C6 over that of the symmetric group falls with d.

    Threshold: a slope of the log ratio on log d below -0.05, because the theorem has a power of d against a
    constant."""
    x = np.log(symmetric.vocabulary.values)
    ratio = missed_at(cyclic, "paper") - missed_at(symmetric, "paper")
    return slope("slope of the log ratio", x, ratio, at_most=-0.05).also(
        ratio_at_the_largest_d=np.exp(ratio[-1])
    )


def _c1(clip: float) -> float:
    """1.005 log d/(2B) of Lemma E.35; Induction E.2 and Lemma F.16 have twice that."""
    return 1.005 / (2 * clip)


@claim(
    "lego.thm51.c1",
    source="Lemma E.35",
    predicted="where the loss is e^((-1/2 + 3.01 c1) 2B), epsilon <= 2.52 c1, c1 = 1.005 log d/(2B)",
    needs={"runs": clips, "constant": 2.52},
    control={"constant": 0.5},
    control_is="a constant of 0.5",
    note="Equation 12 wants epsilon below 0.01, for which the clip must exceed 127.",
)
def concentration_is_set_by_the_clip(runs: xr.Dataset, constant: float) -> Verdict:
    """At the paper's stop epsilon is at most 2.52 c1 for every clip, and falls as the clip rises.

    Threshold: the inequality for clips from 4 on, and a log-log slope below 0, because c1 is inverse to the
    clip."""
    from stagewise.training.stages import EVENT

    if not bool((runs.outcome == EVENT).all()):
        return undecided("some flows did not reach the stop", "a larger limit of the flow's time", "exact")
    missed = runs.missed.isel(record=-1, seed=0).values
    bound = np.array([_c1(clip) for clip in runs["clip"].values])
    return all_of(
        exactly("largest epsilon / c1", float(np.max(missed / bound)), at_most=constant),
        slope("log-log slope on the clip", np.log(runs["clip"].values), np.log(missed), at_most=-1e-9),
    ).also(epsilon_at_the_highest_clip=missed[-1])


@claim(
    "lego.thm51.window",
    source="Lemmas E.24, E.35 and F.16",
    predicted="at the paper's stop 4 c1/3 <= epsilon <= 2.52 c1 in stage 1, and epsilon <= 5.04 c1 later",
    needs={"run": recursion, "scale": 1.0},
    control={"scale": 4.0},
    control_is="c1 four times as large",
    note=(
        "c1 is that of Lemma E.35; Induction E.2 and Lemma F.16 have twice that, a wider window above. "
        "Later stages are judged at their second and at their last answer."
    ),
)
def concentration_ends_in_its_window(run: xr.Dataset, scale: float) -> Verdict:
    """Stage 1 ends with epsilon between 4/3 and 2.52 c1, later stages below 5.04 c1.

    Threshold: with c1 of Lemma E.35, in most seeds, because the lemmas print these constants."""
    c1 = scale * _c1(setting(run, "clip"))
    missed = run.missed.isel(record=0).values
    first = (missed[:, 0] >= 4 / 3 * c1) & (missed[:, 0] <= 2.52 * c1)
    last = run.missed_last.isel(record=0).values
    later = (missed[:, 1:] <= 5.04 * c1).all(1) & (last[:, 1:] <= 5.04 * c1).all(1)
    return all_of(
        share_of_seeds("share of seeds, stage 1", first),
        share_of_seeds("share of seeds, later stages", later),
    ).also(
        c1=c1,
        epsilon_of_stage_1=np.median(missed[:, 0]),
        epsilon_of_the_last_stage=np.median(missed[:, -1]),
        at_its_last_answer=np.median(last[:, -1]),
    )
