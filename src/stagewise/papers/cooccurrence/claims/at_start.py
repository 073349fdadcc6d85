"""Section 4.1, Appendix D and Appendix E.1: what holds at the start."""

from __future__ import annotations

import numpy as np

from stagewise.lab.judge.claims import claim
from stagewise.lab.judge.statistics import Verdict, all_of, median_over_seeds, share_of_seeds, slope
from stagewise.lazy import xr
from stagewise.papers.cooccurrence.experiments import FEWER, Start
from stagewise.papers.cooccurrence.readings import setting
from stagewise.papers.cooccurrence.studies import starts, wide_start

paper_sizes = Start.plan(task=FEWER)  # m = 128 < m1 = 256


def _used(start: xr.Dataset, lemmas: list[str], bound: float) -> xr.DataArray:
    return (start.over_bound.sel(lemma=lemmas) / bound).max(["lemma", "record"])


@claim(
    "cooccurrence.D1",
    source="Lemmas D.1, D.3, D.4, D.6, D.7, D.8",
    predicted=(
        "inner products, attended values, signs, G and outputs of the initial weights keep within the "
        "printed bounds"
    ),
    needs={"start": wide_start, "bound": 1.0},
    control={"bound": 0.25},
    control_is="bounds a quarter as large",
    note="D.7 hides its logarithm; we take sqrt(2 log(2d/delta)). D.8 drops the factor log(m1 n L/delta) of "
    "its proof and holds all the same; "
    "its `at most 0.01` is cooccurrence.D1.D8.",
)
def initial_weights_concentrate(start: xr.Dataset, bound: float) -> Verdict:
    """No quantity is beyond its bound at delta = 0.05.

    Threshold: in more than 0.8 of the seeds, because the lemmas say 0.95, and 20 seeds that all keep it say
    0.84 at least."""
    used = _used(start, ["D.1", "D.3", "D.4", "D.6", "D.7", "D.8"], bound)
    return share_of_seeds("share of seeds within all bounds", used <= 1, more_than=0.8).also(
        largest_ratio=float(used.max())
    )


@claim(
    "cooccurrence.D1.D5",
    source="Corollary D.5",
    predicted="no neuron hears an attended value louder than s0 s1 sqrt(m/L log(m1 n L/delta))",
    needs={"start": wide_start, "bound": 1.0},
    control={"bound": 0.25},
    control_is="a bound a quarter as large",
    note=(
        "The Gaussian tail over m1 n L draws asks for sqrt(2 log(...)): as printed the bound is short by "
        "that factor."
    ),
)
def neurons_hear_little(start: xr.Dataset, bound: float) -> Verdict:
    """No neuron's response to an attended value is beyond the printed bound at delta = 0.05.

    Threshold: in more than 0.8 of the seeds, because the corollary says 0.95, and 20 seeds cannot say
    more."""
    used = _used(start, ["D.5"], bound)
    return share_of_seeds("share of seeds within the bound", used <= 1, more_than=0.8).also(
        median_ratio=float(used.median())
    )


@claim(
    "cooccurrence.D1.D8",
    source="Lemma D.8, last step",
    predicted="the outputs start at 0.01 at the most",
    needs={"start": wide_start.but(attention_scale=0.003)},
    control={"start": wide_start},
    control_is="c0 = 0.1",
    note=(
        "The constant c0 of Condition 1 must be as small as 0.003 for this; c0 = 0.1 gives outputs of 0.2, "
        "c0 = 1 of 2."
    ),
)
def outputs_start_near_zero(start: xr.Dataset) -> Verdict:
    """With c0 = 0.003 no output of the network is larger than 0.01 at the start.

    Threshold: in most seeds, because the lemma says that Condition 1 can make it so."""
    return share_of_seeds("share of seeds", start.output_scale.isel(record=0) <= 0.01).also(
        median=float(start.output_scale.median())
    )


@claim(
    "cooccurrence.corD2",
    source="Corollary D.2",
    predicted="attention starts at 1/L up to order 1/(L m)",
    needs={"starts": starts, "times_width": 0},
    control={"times_width": 1},
    control_is="the deviation times m",
)
def attention_starts_uniform(starts: xr.Dataset, times_width: int) -> Verdict:
    """The largest deviation of attention from 1/L falls like 1/m.

    Threshold: a slope in log-log of at most -0.9, because the corollary gives an upper bound up to
    logarithms."""
    off = starts.attention_off.isel(record=0).transpose("seed", "width") * starts.width**times_width
    return slope("slope on m", np.log(starts.width.values), np.log(off.values), at_most=-0.9)


@claim(
    "cooccurrence.lem41",
    source="Lemma 4.1, Lemma E.4",
    predicted=(
        "at the start every neuron moves towards both targets with its own sign, at a speed of order "
        "(s0^2 + s1^2) m"
    ),
    needs={"start": wide_start},
    control={"start": paper_sizes},
    control_is="m = 128 and m1 = 256, the paper's sizes, where m >= m1 does not hold",
)
def every_neuron_moves_to_the_targets(start: xr.Dataset) -> Verdict:
    """a_j d(w_j W_V mu)/dt is positive for every neuron and both targets; on average it is 1/6 of (s0^2 +
    s1^2) m.

    Threshold: positive in most seeds and the mean within 10 % of 1/6, because the lemma says Theta, and
    (1/2)(1/2 - 1/6) = 1/6 is what its proof gives for uniform attention and outputs near zero."""
    speed = start.signal_speed.isel(record=0)
    return all_of(
        share_of_seeds("share of seeds in which all neurons do", speed.sel(extreme="least") > 0),
        median_over_seeds("mean speed", speed.sel(extreme="mean"), at_least=0.15, at_most=0.1834),
    )


@claim(
    "cooccurrence.lem42",
    source="Lemma 4.2, Lemma E.16",
    predicted="at the start the common word moves neurons much less than the targets do",
    needs={"start": wide_start},
    control={"start": wide_start.but(attention_scale=1.0)},
    control_is="c0 = 1, where the outputs are not small: the bound grows with them",
)
def common_word_hardly_moves_neurons(start: xr.Dataset) -> Verdict:
    """The largest speed of a neuron on the common word is small beside the mean speed on the targets.

    Threshold: at most a quarter, because the lemma's terms are of lower order in m and in the first
    outputs."""
    there = start.isel(record=0)
    common = abs(there.common_speed).max("extreme")
    return median_over_seeds(
        "largest on mu3 over mean on mu1, mu2", common / there.signal_speed.sel(extreme="mean"), at_most=0.25
    )


@claim(
    "cooccurrence.E6",
    source="Lemma E.6, Theorem E.15",
    predicted="at the start a random token moves neurons at a speed of order (s0^2 + s1^2) m / n",
    needs={"start": wide_start},
    control={"start": paper_sizes},
    control_is="m = 128 and m1 = 256, where a neuron's noise is larger than its signal",
)
def random_tokens_hardly_move_neurons(start: xr.Dataset) -> Verdict:
    """n times the largest speed of a neuron on a random token is of order one in units of (s0^2 + s1^2) m.

    Threshold: at most 1, because a token of one sequence has a pull of 1/(2n), and the lemma leaves a
    constant and lower orders."""
    return median_over_seeds(
        "n times the largest speed",
        start.random_speed.isel(record=0) * setting(start, "task.samples"),
        at_most=1,
    )
