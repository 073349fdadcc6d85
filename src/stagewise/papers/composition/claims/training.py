"""Section 5, Appendices C and D, Figure 3 left and middle: a few large gradient steps learn all hops, in
order."""

from __future__ import annotations

import numpy as np

from stagewise.lab.judge.claims import claim
from stagewise.lab.judge.statistics import Verdict, all_of, every_seed, exactly, median_over_seeds, slope
from stagewise.lab.spec.settings import setting
from stagewise.lab.spec.study import BeyondQuick
from stagewise.lazy import xr
from stagewise.papers.composition.studies import (
    curriculum,
    gaps,
    hardest,
    identities,
    literal_2_3,
    literal_2_4,
    literal_4_3,
    mixture,
    same,
    same_other_target,
    scales,
    separate,
    shared,
    small,
    weak,
    weak_mixture,
)

SMALL = 1e-3
EVERY = "2026-11-16: in every seed, as our reading asks; first in most seeds."


def succeeded(run: xr.Dataset) -> xr.DataArray:
    """Whether every hop's probabilities are within 1e-3 of right at the end, on all sequences tested."""
    return run.error.isel(record=-1).max("hops") < SMALL


def staircase(run: xr.Dataset, steps_a_hop: int, plateau: float) -> np.ndarray:
    """By seed: after every stage the losses of the hops learned so far are at the plateau (within 2 %, or
    1e-3), the others at log N within 2 %."""
    chance, loss = np.log(setting(run, "task.symbols")), run.loss.transpose("seed", "record", "hops").values
    fine = np.ones(len(loss), bool)
    for stage in range(loss.shape[2] + 1):
        now = loss[:, stage * steps_a_hop]
        learned, others = now[:, :stage], now[:, stage:]
        fine &= (np.abs(learned - plateau) < max(0.02 * plateau, SMALL)).all(1) & (
            np.abs(others - chance) < 0.02 * chance
        ).all(1)
    return fine


@claim(
    "composition.fig3left",
    source="Figure 3 left, Theorem 7",
    predicted=(
        "Algorithm 1: the loss of 2^(l-1) hops falls to 0 after stage l and not before; in the end all "
        "hops are learned"
    ),
    needs={"run": curriculum},
    control={"run": weak},
    control_is="a rate twenty times smaller, on four levels",
    restated=EVERY,
    note=(
        "k = 16 as in the paper from preset standard on, 8 at quick; all queries of a sequence are asked, "
        "except at preset paper. beta0 1, the rate by the lead it gives (40): the paper gives neither."
    ),
)
def curriculum_climbs_a_staircase(run: xr.Dataset) -> Verdict:
    """After every stage the hops learned so far have a loss below 1e-3 and the others log N within 2 %; at
    the end all probabilities are within 1e-3.

    Threshold: in every seed, because the figure shows exact steps and the theorem holds with high
    probability."""
    return all_of(
        every_seed("share of seeds with the staircase", staircase(run, 2, 0.0)),
        every_seed("share of seeds that learn all hops", succeeded(run)),
    ).also(
        largest_error=float(run.error.isel(record=-1).max()),
        least_attention=float(run.least_attention.isel(record=-1).min()),
    )


@claim(
    "composition.fig3mid",
    source="Figure 3 middle, Theorem 8",
    predicted="Algorithm 2: the losses fall in order of hops, all to 0 once the readouts are trained",
    needs={"run": mixture},
    control={"run": hardest},
    control_is="4-fold data only, on four levels",
    restated=EVERY,
    note=(
        "k = 8 and N = 5 as in the paper, at every preset; all queries of a sequence, except at preset "
        "paper. Before the readouts are trained a learned hop has a loss of log(1 + (N - 1) e^-beta0)."
    ),
)
def mixture_climbs_the_same_staircase(run: xr.Dataset) -> Verdict:
    """After step l the hops up to the l-th are at log(1 + (N - 1) e^-beta0), the others at log N, within 2 %;
    after the last step all probabilities are within 1e-3.

    Threshold: in every seed, because the figure shows exact steps and the theorem holds with high
    probability."""
    plateau = np.log(1 + (setting(run, "task.symbols") - 1) * np.exp(-setting(run, "beta0")))
    return all_of(
        every_seed("share of seeds with the staircase", staircase(run, 1, plateau)),
        every_seed("share of seeds that learn all hops", succeeded(run)),
    ).also(largest_error=float(run.error.isel(record=-1).max()))


@claim(
    "composition.onlyhard",
    source="Section 5.4, Theorem 5",
    predicted="with k-fold data alone the key-query matrices get no gradient at the start",
    needs={"run": hardest},
    control={"run": mixture},
    control_is="the mixture",
    restated=EVERY,
    note="With all queries of a sequence; with one, see onlyhard.one.",
)
def hard_data_alone_teach_nothing(run: xr.Dataset) -> Verdict:
    """On 4-fold data alone (k = 4) the first gradient is below 1e-6 of what the mixture's is (1/(k^2 N^2)),
    and no loss leaves log N by 2 % in the whole training.

    Threshold: in every seed, because the population gradient is zero."""
    k, N = setting(run, "task.levels"), setting(run, "task.symbols")
    first = run.gradient.isel(record=1).max("layer") * (k * N) ** 2
    stays = (np.abs(run.loss - np.log(N)) < 0.02 * np.log(N)).all(("record", "hops"))
    return all_of(
        every_seed("share of seeds without a gradient", first < 1e-6),
        every_seed("share of seeds at chance throughout", stays),
    ).also(largest_gradient=float(first.max()))


@claim(
    "composition.onlyhard.one",
    source="Section 5.4, Theorem 5",
    predicted=(
        "with k-fold data alone and one query a sample, layer 1 gets noise of order 1/sqrt(M) and the "
        "others nothing"
    ),
    needs={"run": identities, "loss_of": "hardest"},
    control={"loss_of": "easiest"},
    control_is="the loss of one hop",
    beyond_paper=True,
    note="The paper's estimator, at the start, 4 levels of 3 symbols, 8 to 512 samples.",
)
def hard_data_alone_are_noise(run: xr.Dataset, loss_of: str) -> Verdict:
    """By the loss of 4 hops, the norm of layer 1's gradient on M samples falls like M^(-1/2), and the other
    layers' is zero.

    Threshold: slope -0.5 within 0.1, and 1e-12, because the population gradient is zero and later layers see
    the same at every query."""
    found = run.isel(record=0)
    norms = np.log(found[f"{loss_of}_noise"].transpose("seed", "few").values)
    return all_of(
        slope("slope of log norm on log M", np.log(found["few"].values), norms, at_least=-0.6, at_most=-0.4),
        exactly("largest gradient of the others", float(found.hardest_elsewhere.max()), at_most=1e-12),
    )


@claim(
    "composition.alg2.zero",
    source="Section 5.4, Appendix D.1",
    predicted="in step t of the mixture only layer t gets a gradient: an implicit curriculum",
    needs={"run": mixture},
    control={"run": weak_mixture},
    control_is="a rate twenty times smaller, on four levels: layers are not done when the next begins",
    restated=EVERY,
)
def one_layer_at_a_time(run: xr.Dataset) -> Verdict:
    """In step t the largest entry of any other layer's gradient is below 1 % of layer t's.

    Threshold: in every seed and step, because on ideal inputs the others vanish; 1 % for what the samples
    add."""
    sizes = run.gradient.transpose("seed", "record", "layer").values[:, 1 : run.sizes["layer"] + 1]
    signal = np.diagonal(sizes, axis1=1, axis2=2)
    others = np.where(np.eye(sizes.shape[1], dtype=bool), 0, sizes).max(2)
    ratio = others / np.maximum(signal, 1e-30)
    return every_seed("share of seeds", (ratio < 1e-2).all(1)).also(largest_ratio=float(ratio.max()))


@claim(
    "composition.alg2.same",
    source="Appendix D.1",
    predicted="the mixture's dynamics are the curriculum's",
    needs={"runs": same},
    control={"runs": same_other_target},
    control_is="the mixture on other hidden permutations, the same sequences",
    restated=EVERY,
    note="At the lead of 40 that all runs have.",
)
def both_algorithms_learn_the_same(runs: xr.Dataset) -> Verdict:
    """On the same sequences the key-query matrices of both algorithms have a cosine above 0.99 at every
    layer.

    Threshold: in every seed, because the population's dynamics are identical."""
    least = runs.cosine.isel(record=0).min("layer")
    return every_seed("share of seeds", least > 0.99).also(least_cosine=float(least.min()))


@claim(
    "composition.alg2.shared",
    source="Equation 3",
    predicted="one set of sequences for all hops, or one for each: the same at the population level",
    needs={"together": shared, "apart": separate},
    control={"together": weak_mixture},
    control_is="a rate twenty times smaller",
    restated=EVERY,
)
def sequences_need_not_be_shared(together: xr.Dataset, apart: xr.Dataset) -> Verdict:
    """Algorithm 2 learns all hops, with the same sequences for every hop and with separate ones.

    Threshold: in every seed, because the two losses have the same expectation."""
    return all_of(
        every_seed("share of seeds, shared", succeeded(together)),
        every_seed("share of seeds, separate", succeeded(apart)),
    )


@claim(
    "composition.thm7.eta",
    source="Theorem 7",
    predicted="any rate above a threshold of order k^2 N^3/beta0 works",
    needs={"by_gap": gaps, "by_scale": scales, "leads": slice(20, None)},
    control={"leads": slice(None, 5)},
    control_is="a rate eight times smaller than ours",
    restated=EVERY,
    note="In units of the lead that one step gives. The lemmas assume beta0 <= 1.",
)
def every_large_rate_works(by_gap: xr.Dataset, by_scale: xr.Dataset, leads: slice) -> Verdict:
    """Algorithm 1 learns all hops at every lead from 20 to 2000, and for every beta0 from 0.1 to 1 at a lead
    of 40.

    Threshold: in every seed at each, because the theorem has no upper bound on the rate and only the product
    eta beta0."""
    chosen = by_gap.sel(gap=leads)
    verdicts = [
        every_seed(f"share of seeds at a lead of {float(gap):g}", succeeded(chosen.sel(gap=gap)))
        for gap in chosen.gap.values
    ]
    return all_of(
        *verdicts,
        *(
            every_seed(f"share of seeds at beta0 {float(b):g}", succeeded(by_scale.sel(beta0=b)))
            for b in by_scale.beta0.values
        ),
    )


def theorem_7_holds(run: xr.Dataset) -> Verdict:
    return every_seed("share of seeds that learn all hops", succeeded(run)).also(
        samples=setting(run, "samples")
    )


@claim(
    "composition.thm7.M",
    source="Theorem 7",
    predicted="k^4 N^6 samples with one query each are enough",
    needs={"run": literal_2_3},
    control={"run": literal_2_3.but(samples=36)},
    control_is="36 samples",
    restated=EVERY,
    note="At (k, N) = (2, 3), 11664 samples; larger sizes under thm7.M.2_4 and thm7.M.4_3.",
)
def as_many_samples_as_the_theorem_asks(run: xr.Dataset) -> Verdict:
    """Algorithm 1 on k^4 N^6 samples of one query learns all hops.

    Threshold: in every seed, because the theorem holds with high probability."""
    return theorem_7_holds(run)


@claim(
    "composition.thm7.M.2_4",
    source="Theorem 7",
    predicted="k^4 N^6 samples with one query each are enough",
    needs={"run": BeyondQuick(literal_2_4)},
    control={"run": BeyondQuick(literal_2_4.but(samples=64))},
    control_is="64 samples",
    restated=EVERY,
    beyond_paper=True,
)
def as_many_samples_for_four_symbols(run: xr.Dataset) -> Verdict:
    """The same for two levels of four symbols: 65536 samples.

    Threshold: in every seed, because the theorem holds with high probability."""
    return theorem_7_holds(run)


@claim(
    "composition.thm7.M.4_3",
    source="Theorem 7",
    predicted="k^4 N^6 samples with one query each are enough",
    needs={"run": BeyondQuick(literal_4_3)},
    control={"run": BeyondQuick(literal_4_3.but(samples=144))},
    control_is="144 samples",
    restated=EVERY,
    beyond_paper=True,
)
def as_many_samples_for_four_levels(run: xr.Dataset) -> Verdict:
    """The same for four levels of three symbols: 186624 samples.

    Threshold: in every seed, because the theorem holds with high probability."""
    return theorem_7_holds(run)


@claim(
    "composition.lem21",
    source="Lemmas 21, 26 and 29",
    predicted=(
        "trained layers barely move: on a single sample their gradient is at most 6 beta0 k "
        "(kNL)^(3/2) eps, linear in eps = 2 (1 - attention)"
    ),
    needs={"single": identities, "run": small, "layers": "trained"},
    control={"layers": "in_training"},
    control_is="the layer that is trained in this stage",
    restated=(
        "2026-11-16: first a slope of 1 within 0.1 on the mean over all queries, where much cancels (it "
        "is 1.96), then at least 0.9 there; now on single samples, as the lemma says, with the first "
        "threshold."
    ),
    note=(
        "Single samples: 4 levels of 3 symbols, Theorem 4's weights at leads of 6 to 15. Over the signal: "
        "the last stage of Algorithm 1 at a lead of 40."
    ),
)
def trained_layers_stay(single: xr.Dataset, run: xr.Dataset, layers: str) -> Verdict:
    """In the last stage the largest gradient of layers 1 and 2 on a sample is below the bound and linear in
    eps; in a training it is below 1e-3 of the last layer's.

    Threshold: the bound itself, a slope of 1 within 0.1 in logarithms, and 1e-3, because the lemma is linear
    in eps and these layers should not move."""
    k, N, L, beta0 = (
        setting(single, "task.levels"),
        setting(single, "task.symbols"),
        single.sizes["layer"],
        setting(single, "beta0"),
    )
    moved, eps = (
        single[name].isel(record=0).transpose("seed", "lead").values for name in (layers, "unfocused")
    )
    powers = np.array([np.polyfit(np.log(x), np.log(y), 1)[0] for x, y in zip(eps, moved)])
    sizes = run.gradient.isel(record=2 * run.sizes["layer"] - 1)
    signal, others = sizes.isel(layer=-1), sizes.isel(layer=slice(0, -1)).max("layer")
    return all_of(
        exactly(
            "largest gradient over its bound",
            float((moved / (6 * beta0 * k * (k * N * L) ** 1.5 * eps)).max()),
            at_most=1,
        ),
        median_over_seeds("slope of log gradient on log eps", powers, at_least=0.9, at_most=1.1),
        every_seed(
            "share of seeds below 1e-3 of the signal",
            ((others if layers == "trained" else signal) / signal < 1e-3).values,
        ),
    )


@claim(
    "composition.lem27",
    source="Lemmas 17, 22 and 27",
    predicted=(
        "the error of the residual stream grows at most linearly with depth: block l + 1 is within l eps"
    ),
    needs={"runs": gaps, "doubling": False},
    control={"doubling": True},
    control_is="errors that double with every layer, from eps on",
    restated="2026-11-16: in every seed; first in most, with a control that divided by almost nothing.",
    note="eps = 2 (1 - least attention on the right key), over all layers, at a lead of 15.",
)
def errors_grow_linearly_at_most(runs: xr.Dataset, doubling: bool) -> Verdict:
    """At a lead of 15 every block differs from the ideal one by at most l eps at the end, in every seed.

    Threshold: ratio at most 1, because the lemmas are inequalities on the attention that the run has."""
    end = runs.sel(gap=15.0).isel(record=-1)
    eps = 2 * (1 - end.least_attention.min("layer"))
    away = eps * 2.0 ** (end.layer - 1) if doubling else end.away
    ratio = (away / (end.layer * eps)).max("layer")
    return exactly("largest ratio", float(ratio.max()), at_most=1).also(
        seeds=float(ratio.size), median_eps=float(eps.median())
    )
