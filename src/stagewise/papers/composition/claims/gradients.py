"""Section 5.3, Appendices C and E: one gradient at zero, in closed form, on samples, and perturbed."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from stagewise.lab.judge.claims import claim
from stagewise.lab.judge.statistics import Verdict, all_of, exactly, slope
from stagewise.lab.spec.settings import setting
from stagewise.lazy import xr
from stagewise.papers.composition import gradients
from stagewise.papers.composition.readings import least_sizes
from stagewise.papers.composition.studies import by_levels, by_symbols, identities
from stagewise.tasks.composition import Composition, doubled_hops, right_keys


def population_agrees(run: xr.Dataset, closed: str, layers: slice) -> Verdict:
    return exactly(
        "largest difference of an entry of g", float(run[closed].sel(layer=layers).max()), at_most=1e-7
    )


@claim(
    "composition.lem15.pop",
    source="Lemma 15, Section 5.3.1",
    predicted=(
        "layer 1's population gradient has blocks A1 (the hidden permutations) and A4 (fixed points), "
        "and no others"
    ),
    needs={"run": identities, "closed": "population"},
    control={"closed": "population_without_fixed_points"},
    control_is="without A4",
    note="The lemma writes W_OV where W_KQ is meant.",
)
def first_population_gradient(run: xr.Dataset, closed: str) -> Verdict:
    """Over all sequences, automatic differentiation gives the closed form of layer 1's gradient at zero.

    Threshold: entries of g within 1e-7, because it is an identity."""
    return population_agrees(run, closed, slice(1, 1))


@claim(
    "composition.lem19.pop",
    source="Lemma 19",
    predicted="layer 2's population gradient has blocks (0, 1) and (0, 2) only",
    needs={"run": identities, "closed": "population"},
    control={"closed": "population_without_fixed_points"},
    control_is="as if no hidden permutation had fixed points",
)
def second_population_gradient(run: xr.Dataset, closed: str) -> Verdict:
    """Over all sequences, with an ideal first layer, automatic differentiation gives the closed form of layer
    2's gradient.

    Threshold: entries of g within 1e-7, because it is an identity."""
    return population_agrees(run, closed, slice(2, 2))


@claim(
    "composition.lem24.pop",
    source="Lemma 24",
    predicted="from layer 3 on the population gradient has block (0, l) only, the construction's",
    needs={"run": identities, "closed": "population"},
    control={"closed": "population_a_level_on"},
    control_is="the closed form with keys one level on",
)
def later_population_gradients(run: xr.Dataset, closed: str) -> Verdict:
    """Over all sequences, with ideal layers below, automatic differentiation gives the closed form.

    Threshold: entries of g within 1e-7, because it is an identity."""
    return population_agrees(run, closed, slice(3, None))


@claim(
    "composition.counted",
    source="Lemma 16's proof",
    predicted="on samples the gradient at zero is counting",
    needs={"run": identities, "compared": "counted"},
    control={"compared": "counted_uncentred"},
    control_is="counting without the mean over keys",
    beyond_paper=True,
)
def gradient_is_counting(run: xr.Dataset, compared: str) -> Verdict:
    """The gradient found by adding ones, k (l + 1)^2 of them a query, is that of automatic differentiation,
    at every layer.

    Threshold: entries of g within 1e-7, because it is an identity."""
    return population_agrees(run, compared, slice(1, None))


@claim(
    "composition.blocks",
    source="Definition 3, Section 5.1",
    predicted="the block form is the model",
    needs={"run": identities, "compared": "block_form"},
    control={"compared": "block_form_other_copies"},
    control_is="layers that copy another block",
    beyond_paper=True,
)
def blocks_are_the_model(run: xr.Dataset, compared: str) -> Verdict:
    """At random weights the stream of blocks is the dense model's residual stream, number by number.

    Threshold: largest difference below 1e-9, because only the order of sums differs."""
    return exactly("largest difference", float(run[compared].max()), at_most=1e-9)


@claim(
    "composition.lem18",
    source="Lemmas 18, 23, 28 and 36",
    predicted="the readout's gradient is -1/(k(e^beta0 + N - 1)) 1_k (x) (I - 11^T/N)",
    needs={"run": identities, "closed": "readout"},
    control={"closed": "readout_uncentred"},
    control_is="without -11^T/N",
)
def readout_gradient(run: xr.Dataset, closed: str) -> Verdict:
    """After ideal attention, automatic differentiation over all sequences gives the closed form, at every
    layer.

    Threshold: entries within 1e-7, because it is an identity."""
    return exactly("largest difference of an entry", float(run[closed].max()), at_most=1e-7)


def smallest_margin(symbols: int, every_block: bool) -> float:
    """Over all permutations at the first of two levels, and all or 60 sequences: the least lead of the right
    key, in units of 1/(kN^2)."""
    rng, task, least = np.random.default_rng(symbols), Composition(2, symbols), np.inf
    everything = task.population()
    sigma = (
        everything if len(everything) <= 600 else everything[rng.choice(len(everything), 60, replace=False)]
    )
    for first in permutations(range(symbols)):
        hidden = np.array([first, np.arange(symbols)])
        g = gradients.population(hidden, 1)
        if not every_block:
            g[0, :, 0, :] = 0
        lead = gradients.leads(g, hidden, sigma, 1)
        least = min(least, lead[:, :symbols].min())
    return float(least * 2 * symbols**2)


@claim(
    "composition.margin",
    source="Section 5.3.1, Lemma 15",
    predicted="after a step on the population the right key is ahead by at least 1/(kN^2), for every pi",
    needs={"every_block": True},
    control={"every_block": False},
    control_is="the scores without block A1",
    note=(
        "From three symbols on the smallest lead is (N + 1)/(N - 1) units, for a transposition (2 for N = "
        "3). All sequences up to four symbols, 60 random ones for five. The lemma's table of scores lacks "
        "two cases."
    ),
)
def right_key_is_ahead(every_block: bool) -> Verdict:
    """For every hidden permutation of 2 to 5 symbols, over sequences and queries, the right key's score leads
    by at least 1/(kN^2).

    Threshold: 1 in units of 1/(kN^2), because the lemma says so."""
    leads = {N: smallest_margin(N, every_block) for N in (2, 3, 4, 5)}
    return exactly("least lead in units of 1/(kN^2)", min(leads.values()), at_least=1 - 1e-9).also(
        **{f"N{N}": lead for N, lead in leads.items()}
    )


@claim(
    "composition.sat",
    source="Lemmas 15, 19 and 24",
    predicted="1 - attention on the right key falls exponentially in eta",
    needs={"hidden_learned": True},
    control={"hidden_learned": False},
    control_is="the gradient of other hidden permutations",
)
def attention_saturates(hidden_learned: bool) -> Verdict:
    """After a step on the population, at each layer, log(1 - attention) of the worst query falls linearly in
    the rate, as fast as the lead of its key says.

    Threshold: slope within 5 % of the lead, between rates that give a lead of 8 and of 24, because the
    lemmas' bound is 1 - kN exp(-eta lead)."""
    rng, worst = np.random.default_rng(5), []
    task = Composition(4, 5)
    hidden = task.draw_hidden(rng)
    learned = hidden if hidden_learned else np.roll(hidden, 1, axis=1)
    sigma = task.draw(rng, 40)
    for layer in range(1, task.depth + 1):
        scores = gradients.scores_of(
            gradients.population(learned, layer), gradients.names(hidden, sigma, layer)
        )
        right = right_keys(hidden, doubled_hops(hidden, sigma))[layer - 1]
        lead = gradients.margins(scores, right).min()
        rates = np.linspace(8, 24, 9) / abs(lead)
        left = [np.log(left_to_others(rate * scores, right).max()) for rate in rates]
        worst.append(abs(np.polyfit(rates * abs(lead), left, 1)[0] + 1))
    return exactly("largest error of the slope", max(worst), at_most=0.05)


def left_to_others(scores: np.ndarray, right: np.ndarray) -> np.ndarray:
    """1 - attention on the right key, as the others' share, so that it does not round to zero."""
    ahead = np.exp(scores - scores.max(-1, keepdims=True))
    mine = np.take_along_axis(ahead, right[..., None], -1)[..., 0]
    np.put_along_axis(ahead, right[..., None], 0, -1)
    return ahead.sum(-1) / (ahead.sum(-1) + mine)


@claim(
    "composition.perturb",
    source="Lemmas 20 and 25",
    predicted="a perturbation epsilon of the input moves the gradient by O(d l epsilon)",
    needs={"run": identities, "power": 1.0},
    control={"power": 2.0},
    control_is="a bound d l epsilon^2",
    note="The same random perturbation of all tokens in every sequence, so that it does not average out.",
)
def perturbed_inputs_move_gradients_little(run: xr.Dataset, power: float) -> Verdict:
    """For epsilon from 1e-3 to 1e-1 the largest change of an entry of g is at most d l epsilon, at every
    layer, and grows like epsilon.

    Threshold: ratio at most 1, slope of log change 1 within 0.1, because the lemmas' bound is linear in
    epsilon; 1 for its constant."""
    k, N = setting(run, "task.levels"), setting(run, "task.symbols")
    d, sizes = k * N * (run.sizes["layer"] + 2), run.perturbation.values
    moved = run.perturbed.isel(record=0).transpose("seed", "layer", "perturbation").values
    bound = d * run.layer.values[:, None] * sizes**power
    slopes = [
        slope(
            f"slope of log change, layer {layer}",
            np.log(sizes**power),
            np.log(moved[:, i]),
            at_least=0.9,
            at_most=1.1,
        )
        for i, layer in enumerate(run.layer.values)
    ]
    return all_of(exactly("largest change over its bound", (moved / bound).max(), at_most=1), *slopes)


@claim(
    "composition.lem37",
    source="Lemma 37",
    predicted=(
        "on every single sample, losses of later hops give no gradient to layers that are not yet trained"
    ),
    needs={"run": identities, "measured": "later_losses"},
    control={"measured": "own_loss"},
    control_is="the loss of one hop itself",
    note=(
        "Not so for the next layer: the loss of two hops moves layer 1 on a single sample. It does so only "
        "in noise: averaged over the symbols of one level it is zero (see lem37.mean)."
    ),
)
def later_losses_leave_layers_alone(run: xr.Dataset, measured: str) -> Verdict:
    """At the start, on one sample, the largest gradient of layer 1 by the loss of two hops, over that by the
    loss of one.

    Threshold: below 1e-6, because the lemma says zero up to the layers' own deviation from uniform, which is
    zero at the start."""
    return exactly("over the signal", float(run[measured].max()), at_most=1e-6)


@claim(
    "composition.lem37.mean",
    source="Lemma 37, Appendix D.1",
    predicted="averaged over queries, later losses give no gradient to layers that are not trained",
    needs={"run": identities, "measured": "later_losses_mean"},
    control={"measured": "later_losses"},
    control_is="one query",
    beyond_paper=True,
)
def later_losses_average_out(run: xr.Dataset, measured: str) -> Verdict:
    """At the start the loss of two hops moves layer 1 by nothing once averaged over the symbols of a level;
    and no loss moves a layer after the first.

    Threshold: below 1e-9 of the signal, because it is an identity."""
    return all_of(
        exactly("averaged over the signal", float(run[measured].max()), at_most=1e-9),
        exactly("later layers, over the signal", float(run.untrained_layers.max()), at_most=1e-9),
    )


@claim(
    "composition.appE",
    source="Appendix E",
    predicted="the population gradient of the value matrix vanishes at zero",
    needs={"run": identities, "measured": "value", "sampled": "value_one"},
    control={"measured": "value_one"},
    control_is="samples in place of the population",
    restated=(
        "2026-11-18: one condition more, that a sample's gradient depends on its labels alone; added "
        "with its value (1.7e-17) known."
    ),
)
def value_matrix_gets_no_gradient(run: xr.Dataset, measured: str, sampled: str) -> Verdict:
    """Over all sequences the gradient of W_OV is zero; on M samples with one query its norm falls like
    M^(-1/2); with all queries it is zero on every sample. A sample's gradient depends on its labels alone, by
    which samples are counted.

    Threshold: below 1e-9, slope -0.5 within 0.1, because one is an identity and the other the central limit
    theorem."""
    sizes = run["size"].values
    norms = run[sampled].isel(record=0).transpose("seed", "size").values
    return all_of(
        exactly("population", float(run[measured].max()), at_most=1e-9),
        slope("slope of log norm, one query", np.log(sizes), np.log(norms), at_least=-0.6, at_most=-0.4),
        exactly("all queries", float(run.value_all.max()), at_most=1e-9),
        exactly(
            "of a sample, and by its labels alone: largest difference",
            float(run.value_by_label.max()),
            at_most=1e-9,
        ),
    )


@claim(
    "composition.lem16",
    source="Lemmas 16, 20 and 25",
    predicted="the error of an entry of the gradient falls like M^(-1/2)",
    needs={"runs": by_levels, "repeated": False},
    control={"repeated": True},
    control_is="as many samples, but the first few over and over",
)
def noise_falls_as_one_over_root_m(runs: xr.Dataset, repeated: bool) -> Verdict:
    """For the first and the last layer, at every number of levels, log of the largest error of an entry
    against log M.

    Threshold: slope -0.5 within 0.1, because the lemmas bound it by log(.)/sqrt(M)."""
    sizes = np.log(runs["size"].values)
    noise = np.log(runs.noise.isel(record=0).transpose("levels", "stage", "seed", "size").values)
    if repeated:
        noise = np.broadcast_to(noise[..., :1], noise.shape)
    named = [
        (f"slope of log error, k = {k}, {stage} stage", noise[i, j])
        for i, k in enumerate(runs.levels.values)
        for j, stage in enumerate(runs.stage.values)
    ]
    return all_of(*(slope(name, sizes, lanes, at_least=-0.6, at_most=-0.4) for name, lanes in named))


def sizes_grow(runs: xr.Dataset, axis: str, at_most: float, steeper: float) -> Verdict:
    """The exponent of the smallest sizes along an axis; `steeper` by so much for a control."""
    values = runs[axis].values.astype(float)
    logs = np.log(least_sizes(runs, axis, "last")) + steeper * np.log(values)
    shown = {
        f"{axis}_{int(value)}": float(np.exp(np.nanmedian(logs[:, i]))) for i, value in enumerate(values)
    }
    return slope("exponent of the last stage", np.log(values), logs, at_most=at_most).also(**shown)


@claim(
    "composition.thm7.M.k",
    source="Theorem 7",
    predicted="k^4 N^6 samples are enough: an exponent of at most 4 in k",
    needs={"runs": by_levels, "steeper": 0.0},
    control={"steeper": 3.0},
    control_is="k^3 times as many samples",
    beyond_paper=True,
    note=(
        "Our estimate: signal over noise is sqrt(M/k)/(l + 1), so M of order k log(k)^2 log(kN) is enough "
        "with one query."
    ),
)
def samples_by_levels(runs: xr.Dataset, steeper: float) -> Verdict:
    """With ideal layers below and one query a sample, the smallest M with every query of the last stage
    right, against k at N = 5.

    Threshold: exponent at most 4, because the theorem's condition has it."""
    return sizes_grow(runs, "levels", 4.0, steeper)


@claim(
    "composition.thm7.M.N",
    source="Theorem 7",
    predicted="an exponent of at most 6 in N",
    needs={"runs": by_symbols, "steeper": 0.0},
    control={"steeper": 8.0},
    control_is="N^8 times as many samples",
    beyond_paper=True,
    note=(
        "It hardly depends on N: the paper pays a union bound over all d entries of a score, of which (l + "
        "1)^2 are not zero."
    ),
)
def samples_by_symbols(runs: xr.Dataset, steeper: float) -> Verdict:
    """The same against N at k = 4.

    Threshold: exponent at most 6, because the theorem's condition has it."""
    return sizes_grow(runs, "symbols", 6.0, steeper)
