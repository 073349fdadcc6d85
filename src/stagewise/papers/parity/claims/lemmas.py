"""Appendix B.4 and B.6, lemma by lemma. Unless said otherwise: linear loss, orthogonal embeddings, epsilon as
large as Lemma 5.4 asks (`studies.proofs`)."""

from __future__ import annotations

import numpy as np

from stagewise.lab.judge.claims import claim
from stagewise.lab.judge.statistics import Verdict, all_of, exactly, median_over_seeds, share_of_seeds
from stagewise.lab.spec.settings import setting
from stagewise.lazy import xr
from stagewise.papers.parity.asymptotics import first_sizes
from stagewise.papers.parity.lemmas import correlations
from stagewise.papers.parity.studies.theory import (
    few_dimensions,
    flipping,
    identities,
    proofs,
    random_embeddings,
    three_steps,
)

MOST = 0.6  # the lemmas say 0.9 and more; eight seeds that all keep a bound say 0.68 at least


def first_rate(run: xr.Dataset) -> float:
    """eta0 = eta1 = sqrt(128 m n^2 signal)."""
    return float(
        np.sqrt(128 * setting(run, "neurons") * setting(run, "task.bits") ** 2 * setting(run, "signal"))
    )


def after_the_first(values: xr.DataArray) -> xr.DataArray:
    """Answers after the first, whose own bit is not always 0."""
    return values.sel(answer=slice(2, None))


@claim(
    "parity.lem5",
    source="Assumption 2, Lemma 5",
    predicted="every inequality holds for large n",
    needs={"power": 1.1},
    control={"power": 0.9},
    control_is="d = k log^0.9, for which Lemma 5.2 never holds",
    note="The figures are log10 of the first n. No computer holds an instance: B < nk needs n above 10^61, "
    "and Lemma 5.2, whose square root falls like log^-0.05, n above 10^(10^47). All other "
    "claims deviate from Assumption 2 for that reason.",
)
def the_inequalities_hold_for_large_n(power: float) -> Verdict:
    """Every inequality of Lemma 5 holds from some n on, at both ends of the range of k, with epsilon = 1 and
    delta = 0.1.

    Threshold: a first n below 10^(10^59), because the lemma speaks of limits; `tends to 0` is taken as `below
    0.01`, the proof's use of it."""
    found = first_sizes(power)
    return exactly(
        "inequalities that never hold", sum(not np.isfinite(n) for n in found.values()), at_most=0
    ).also(**found)


@claim(
    "parity.sparse_dep",
    source="Section 3.2, Phase 1; Lemma 6",
    predicted="given b[i], the next bit correlates with b[S[i]] alone",
    needs={"chain_of_thought": True},
    control={"chain_of_thought": False},
    control_is="no chain of thought",
)
def each_answer_depends_on_one_bit(chain_of_thought: bool) -> Verdict:
    """With a chain of thought, given the bit at a place, the next bit correlates with one other place,
    exactly, and with no other at all.

    Threshold: 1 there and 0 elsewhere, because the lemma is an identity; all 2^8 inputs are listed, for every
    secret of 3 of 8 bits."""
    on, off = correlations(8, 3, chain_of_thought)
    return all_of(
        exactly("smallest correlation on the secret", on, at_least=1),
        exactly("largest elsewhere", off, at_most=0),
    )


@claim(
    "parity.lem7",
    source="Lemma 7, Table 1",
    predicted="delta, alpha, beta, psi, gamma and zeta keep within their bounds",
    needs={"run": proofs, "bound": 1.0},
    control={"bound": 0.1},
    control_is="bounds a tenth as large",
    note=(
        "For delta the proof's sqrt(2 B log ...), of which the statement lost the 2; for alpha without the "
        "printed indicator."
    ),
)
def batches_are_balanced(run: xr.Dataset, bound: float) -> Verdict:
    """In all three batches every statistic of Table 1 keeps within its bound at delta = 0.1.

    Threshold: in more than 0.6 of the seeds, because the lemma says 0.99 and eight seeds cannot say more."""
    used = run.over_bound.isel(record=slice(1, None)).max("record") / bound
    shown = {f"largest_{name}": float(used.sel(statistic=name).max()) for name in used.statistic.values}
    return share_of_seeds("share of seeds", used.max("statistic") <= 1, more_than=MOST).also(**shown)


@claim(
    "parity.lem10_16_17",
    source="Lemmas 10, 11, 16, 17",
    predicted=(
        "which neurons are active is decided by sign(nu) through the first two steps; responses move "
        "by less than 3/80 epsilon"
    ),
    needs={"run": proofs},
    control={"run": three_steps},
    control_is="epsilon = 1, against Lemma 5.4",
)
def activations_stay_as_they_start(run: xr.Dataset) -> Verdict:
    """Through the first step no neuron's response moves by more than 3/80 epsilon, and none changes sign
    until the second step has been made.

    Threshold: in more than 0.6 of the seeds, because the lemmas say with high probability and eight seeds
    cannot say more."""
    keeps = (run.flips.isel(record=slice(0, 3)).max("record") == 0) & (run.moved.isel(record=1) < 3 / 80)
    return share_of_seeds("share of seeds", keeps, more_than=MOST).also(
        largest_move=float(run.moved.isel(record=1).max())
    )


@claim(
    "parity.lem10_16_17.dimension",
    source="Lemma 10",
    predicted="nearly orthogonal embeddings switch the same neurons on as orthogonal ones",
    needs={"study": few_dimensions, "at": 1024},
    control={"at": 16},
    control_is="embeddings of length 16",
    beyond_paper=True,
    note=(
        "Lemma 10's own bound, a deviation below epsilon/100, needs d above 4 10^4 k log(100 B m / delta); "
        "signs need much less."
    ),
)
def short_embeddings_flip_neurons(study: xr.Dataset, at: int) -> Verdict:
    """At the start no neuron's sign differs from nu once embeddings are long enough: d = 1024 for k = 3.

    Threshold: no flips in more than 0.6 of the seeds, because the sign is all that later lemmas use."""
    flips = study.flips.isel(record=0)
    shown = {f"flips_d{int(d)}": float(flips.sel(dimension=d).median()) for d in study.dimension.values}
    return share_of_seeds("share of seeds", flips.sel(dimension=at) == 0, more_than=MOST).also(
        deviation=float(study.moved.isel(record=0).sel(dimension=at).median()), **shown
    )


@claim(
    "parity.lem12_14",
    source="Lemmas 12, 14",
    predicted="closed forms of the gradients of W1 and W2 in the first two steps",
    needs={"run": identities},
    control={"run": flipping},
    control_is="epsilon so small that neurons change sign",
    note=(
        "Exact with alpha; the printed Lemma 14 has its mean in the first sum and so is the leading order "
        "(`leading_order_error`)."
    ),
)
def first_gradients_have_closed_forms(run: xr.Dataset) -> Verdict:
    """While activations are those of the start and attention is uniform, the gradients are those of Lemmas 12
    and 14, against automatic differentiation.

    Threshold: largest difference below 1e-5 of the largest entry in every seed, because these are
    identities."""
    worst = max(float(run.lemma12.max()), float(run.lemma14.max()))
    return exactly("largest difference", worst, at_most=1e-5).also(
        leading_order_error=float(run.lemma14_mean.median()), flips=float(run.flips.max())
    )


@claim(
    "parity.lem20",
    source="Lemma 20",
    predicted="the gradient of A through kappa and the softmax",
    needs={"run": identities},
    control={"run": flipping},
    control_is="epsilon so small that neurons change sign",
)
def gradient_of_attention_has_a_closed_form(run: xr.Dataset) -> Verdict:
    """In the second step the gradient of A is Lemma 20's, against automatic differentiation.

    Threshold: largest difference below 1e-5 of the largest entry in every seed, because it is an identity."""
    return exactly("largest difference", float(run.lemma20.max()), at_most=1e-5)


@claim(
    "parity.lem13_15",
    source="Lemmas 13, 15",
    predicted=(
        "projections of the first gradients are at most sqrt(log(300 n B/delta))/(m sqrt B) and 3/(2 m n)"
    ),
    needs={"run": proofs, "steps": (1, 2)},
    control={"steps": (3,)},
    control_is="the third step, when attention is one-hot",
)
def first_gradients_are_small(run: xr.Dataset, steps: tuple[int, ...]) -> Verdict:
    """In the first two steps no projection of a gradient on an embedding is beyond its bound.

    Threshold: in more than 0.6 of the seeds, because the lemmas say with high probability and eight seeds
    cannot say more."""
    own, attended = (
        run[name].isel(record=list(steps)).max("record") for name in ("over_lemma13", "over_lemma15")
    )
    return share_of_seeds("share of seeds", (own <= 1) & (attended <= 1), more_than=MOST).also(
        largest_lemma13=float(own.max()), largest_lemma15=float(attended.max())
    )


@claim(
    "parity.lem18_19",
    source="Lemmas 18, 19",
    predicted=(
        "kappa is eta0/(8 m i B) alphabar on e[S[i]], and within 10 eta0/(mn) sqrt(nk/(Bd)) log(300 m "
        "n B/delta) of that everywhere"
    ),
    needs={"run": random_embeddings, "step": 1},
    control={"step": 0},
    control_is="before the first step",
    note=(
        "Sampling noise and the print's missing term (parity.lem18_19.common) are within the printed bound "
        "at these sizes only because the bound is loose."
    ),
)
def neurons_prefer_the_secret(run: xr.Dataset, step: int) -> Verdict:
    """After the first step the active neurons of a place respond to the secret bit as predicted, and to other
    bits less than half as much.

    Threshold: median on the secret within 20 % of the prediction, elsewhere (but at the first secret) below
    0.5 of it, and Lemma 19's printed bound kept, because the first is the leading order and the others are
    what the next step uses."""
    found = run.isel(record=step)
    n, k, m = (setting(run, name) for name in ("task.bits", "task.secret_size", "neurons"))
    B, d = setting(run, "batch"), setting(run, "dimension")
    bound = 10 * first_rate(run) / (m * n) * np.sqrt(n * k / (B * d)) * np.log(300 * m * n * B / 0.1)
    return all_of(
        median_over_seeds(
            "on the secret, over predicted",
            after_the_first(found.on_kappa).mean(["answer", "extreme"]),
            at_least=0.8,
            at_most=1.2,
        ),
        median_over_seeds("elsewhere, over predicted", found.off_kappa.max("answer"), at_most=0.5),
        share_of_seeds("share of seeds within Lemma 19's bound", found.kappa_error <= bound, more_than=MOST),
    ).also(error_over_bound=float((found.kappa_error / bound).max()))


@claim(
    "parity.lem18_19.common",
    source="Lemma 18, repaired",
    predicted="every kappa also has eta0/(16 m (n + 1)) (-1)^b on e[S[n+1], b], which the print loses",
    needs={"run": proofs, "step": 1},
    control={"step": 0},
    control_is="before the first step",
    beyond_paper=True,
    note=(
        "alphabar(b1, 0) + alphabar(b1, 1) = 0 fails at i = n + 1, where the bit is always 0: twice the "
        "signal, at one wrong place, in every kappa."
    ),
)
def the_first_secret_is_heard_everywhere(run: xr.Dataset, step: int) -> Verdict:
    """After the first step, neurons of every later place respond to the first secret bit twice as strongly as
    to their own.

    Threshold: median within 20 % of the repaired prediction, because it is the leading order as well."""
    n, k = setting(run, "task.bits"), setting(run, "task.secret_size")
    predicted = float(np.mean([2 * i / (n + 1) for i in range(n + 2, n + k + 1)]))
    return median_over_seeds(
        "over predicted", run.first_kappa.isel(record=step) / predicted, at_least=0.8, at_most=1.2
    )
