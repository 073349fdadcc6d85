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
    linear_loss,
    near_orthogonal,
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


@claim(
    "parity.lem21_22",
    source="Lemma 21",
    predicted="scores at least eta0 eta1/(256 m i^2) on the secret and at most half of that elsewhere",
    needs={"run": proofs, "step": 2, "from_answer": 1},
    control={"step": 1},
    control_is="after one step",
    note="The first place breaks it: its score is 8 times the others' (the bit there is always 0), and so is "
    "what leaks to other places through the "
    "softmax. From the second answer on see parity.lem21_22.later, and for what Lemma 32 needs "
    "parity.lem21_22.ratio.",
)
def scores_single_out_the_secret(run: xr.Dataset, step: int, from_answer: int) -> Verdict:
    """After two steps, with n replaced by the place i, every score on the secret is above its bound and every
    other below its own.

    Threshold: in more than 0.6 of the seeds, because the lemma says with high probability and eight seeds
    cannot say more."""
    found = run.isel(record=step).sel(answer=slice(from_answer, None))
    # Eta0 eta1/(128 m i^2).
    unit = (
        setting(run, "signal") * (setting(run, "task.bits") / (setting(run, "task.bits") + found.answer)) ** 2
    )
    on, off = (found.on_score / (unit / 2)).min("answer"), (found.off_score / (unit / 4)).max("answer")
    return share_of_seeds("share of seeds", (on >= 1) & (off <= 1), more_than=MOST).also(
        smallest_on_over_bound=float(on.min()), largest_off_over_bound=float(off.max())
    )


@claim(
    "parity.lem21_22.later",
    source="Lemma 21, from the second answer on",
    predicted="the same bounds",
    needs={"run": proofs, "step": 2},
    control={"step": 1},
    control_is="after one step",
    beyond_paper=True,
)
def later_scores_single_out_the_secret(run: xr.Dataset, step: int) -> Verdict:
    """After two steps, at every place but the first, the score on the secret is above its bound and every
    other below its own.

    Threshold: in more than 0.6 of the seeds, because the lemma says with high probability and eight seeds
    cannot say more."""
    return scores_single_out_the_secret.judge(run, step, 2)


@claim(
    "parity.lem21_22.ratio",
    source="Lemma 22",
    predicted="the secret's score is twice any other, so that attention is one-hot",
    needs={"run": proofs, "step": 2},
    control={"step": 1},
    control_is="after one step",
)
def attention_is_one_hot_after_two_steps(run: xr.Dataset, step: int) -> Verdict:
    """After two steps the score on the secret is more than twice any other at every place, the first
    included.

    Threshold: in more than 0.6 of the seeds, because this is what Lemma 32 needs; eight seeds cannot say
    more."""
    found = run.isel(record=step)
    ratio = (found.on_score / found.off_score.where(found.off_score > 0)).min("answer")
    return share_of_seeds("share of seeds", ratio > 2, more_than=MOST).also(smallest_ratio=float(ratio.min()))


@claim(
    "parity.lem23_26",
    source="Lemmas 23, 25, 26",
    predicted=(
        "after the third step outputs lie between 0 and 2 epsilon/3 on the right side; the signal is "
        "eta2/(32 m) (repaired)"
    ),
    needs={"run": proofs},
    control={"run": proofs.but(last_rate="assumption2")},
    control_is="the printed eta2 = 4 k epsilon/3",
    note=(
        "The print misses a factor 1/4 in the gradient and 2 in the output: eta2 = 16 m epsilon/3 gives a "
        "signal of epsilon/6, not epsilon/3."
    ),
)
def outputs_are_right_after_the_third_step(run: xr.Dataset) -> Verdict:
    """After the third step every output is on the right side and below 2 epsilon/3, and at all places but the
    first its mean is epsilon/6.

    Threshold: in more than 0.6 of the seeds, and a median signal within 10 % of epsilon/6, because Lemma 26
    asks for the first and the second is the leading order."""
    end, epsilon = run.isel(record=3), setting(run, "epsilon")
    inside = (end.margin > 0) & (end.largest_output < 2 * epsilon / 3)
    return all_of(
        share_of_seeds("share of seeds", inside, more_than=MOST),
        median_over_seeds(
            "signal over epsilon/6",
            after_the_first(end.signal).mean("answer") * 6 / epsilon,
            at_least=0.9,
            at_most=1.1,
        ),
    ).also(
        largest_output_over_epsilon=float(end.largest_output.max()) / epsilon,
        third_gradient_error=float(end.third_error.median()),
    )


@claim(
    "parity.lem24",
    source="Lemmas 22, 24, proof of 26",
    predicted=(
        "the attended embedding is within n^-10 of the secret's after two steps and n^-9 after three; "
        "own parts in [5/6, 7/6] epsilon"
    ),
    needs={"run": proofs, "step": 2},
    control={"step": 1},
    control_is="a step earlier",
)
def attention_stays_one_hot(run: xr.Dataset, step: int) -> Verdict:
    """Attention gives out the secret's embedding to n^-10 after two steps and n^-9 after three, and the
    neurons' own part hardly moves.

    Threshold: in more than 0.6 of the seeds, because the lemmas say with high probability; signal 80 instead
    of Lemma 5.6's 80 log n."""
    n = float(setting(run, "task.bits"))
    sharp = (run.attended_error.isel(record=step) < n**-10) & (
        run.attended_error.isel(record=step + 1) < n**-9
    )
    own = run.own_part.isel(record=step + 1)
    kept = (own.sel(extreme="least") >= 5 / 6) & (own.sel(extreme="most") <= 7 / 6)
    return share_of_seeds("share of seeds", sharp & kept, more_than=MOST).also(
        worst_attention=float(run.attended_error.isel(record=step).max())
    )


@claim(
    "parity.lem24.attended",
    source="Proof of Lemma 26",
    predicted="attention's part of a neuron's response stays below 5/6 epsilon",
    needs={"run": proofs, "step": 3},
    control={"run": three_steps},
    control_is="epsilon = 1, against Lemma 5.4",
    note="At the first place the gradient is twice as large, since one value of its bit makes all samples: "
    "attention's part is 4/3 epsilon there, and "
    "neurons do change sign.",
)
def attention_does_not_flip_neurons(run: xr.Dataset, step: int) -> Verdict:
    """After the third step attention's part of every neuron's response is below 5/6 epsilon, so that none
    changes sign.

    Threshold: in more than 0.6 of the seeds, because the proof needs it of all neurons."""
    part = run.attended_part.isel(record=step)
    return share_of_seeds("share of seeds", part < 5 / 6, more_than=MOST).also(
        median_part=float(part.median()), flips=float(run.flips.isel(record=step).median())
    )


@claim(
    "parity.lem27",
    source="Lemma 27",
    predicted="hinge and linear loss train alike while outputs stay within [-1, 1]",
    needs={"hinge": three_steps, "linear": linear_loss},
    control={
        "hinge": three_steps.but(epsilon=100.0, batch=2000),
        "linear": linear_loss.but(epsilon=100.0, batch=2000),
    },
    control_is="epsilon = 100: outputs are beyond 1 from the start",
)
def hinge_and_linear_loss_train_alike(hinge: xr.Dataset, linear: xr.Dataset) -> Verdict:
    """As long as no output before a step is beyond 1, the step is the same under both losses: here through
    the second step.

    Threshold: scores and signals after two steps agree to 1e-9 in every seed, because the losses then differ
    by a constant."""

    def apart(name):
        pair = [run[name].isel(record=2) for run in (hinge, linear)]
        return float(abs(pair[0] - pair[1]).max() / abs(pair[1]).max())

    largest = float(hinge.largest_output.isel(record=slice(0, 2)).max())
    return exactly(
        "largest difference", max(apart("on_score"), apart("off_score"), apart("signal")), at_most=1e-9
    ).also(largest_output_before=largest)


@claim(
    "parity.lem30_31",
    source="Lemmas 30, 31",
    predicted=(
        "random sign embeddings are orthogonal up to sqrt(2 log(8 n d/delta)/d), combinations up to the like"
    ),
    needs={"run": near_orthogonal, "bound": 1.0},
    control={"bound": 0.5},
    control_is="bounds half as large",
)
def random_embeddings_are_nearly_orthogonal(run: xr.Dataset, bound: float) -> Verdict:
    """Inner products of different embeddings, and of an embedding with a combination of others, keep within
    their bounds at delta = 0.1.

    Threshold: in more than 0.85 of the seeds, because the lemmas say 0.9, and 100 seeds leave an interval of
    that width."""
    return all_of(
        share_of_seeds("share of seeds within Lemma 31", run.lemma31 <= bound, more_than=0.85),
        share_of_seeds("share of seeds within Lemma 30", run.lemma30 <= bound, more_than=0.85),
    )


@claim(
    "parity.lem32",
    source="Lemma 32",
    predicted="a score of 2 C log n against C log n makes attention one-hot up to 4/n^(C-1)",
    needs={"run": near_orthogonal, "gap": "lemma32"},
    control={"gap": "lemma32_gap_halved"},
    control_is="no gap",
)
def a_gap_of_scores_makes_attention_one_hot(run: xr.Dataset, gap: str) -> Verdict:
    """With the target's score at 2 C log n and no other above C log n, the attended embedding is within
    4/n^(C-1) of the target's, for C = 3.

    Threshold: at most the bound in every seed, because it is an inequality; half of the other scores stand at
    its edge."""
    return exactly("largest share of the bound", float(run[gap].max()), at_most=1)
