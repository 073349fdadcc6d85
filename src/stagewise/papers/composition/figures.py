"""The paper's figures, drawn from our runs, and what lies behind them."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

from stagewise.lab.draw.charts import band, points
from stagewise.lab.draw.figures import figure
from stagewise.lab.draw.phase_diagram import heat
from stagewise.lab.spec.settings import setting
from stagewise.lab.spec.study import BeyondQuick
from stagewise.papers.composition import queries
from stagewise.papers.composition.readings import least_sizes
from stagewise.papers.composition.studies import (
    by_levels,
    by_levels_all,
    curriculum,
    in_turn,
    mixture,
    mixtures,
    patience,
    phase,
    readout_hardest,
    readout_mixture,
    token_hardest,
    token_mixture,
    widths,
)

UPRIGHT = alt.Axis(labelAngle=0)
COLUMNS = alt.Legend(orient="bottom", columns=5, title="hops")


def _staircase(run: xr.Dataset, title: str, stages: str) -> alt.Chart:
    """Losses by hop after every gradient step, the median over seeds; log N is chance."""
    table = band(run.loss, "loss")
    steps = alt.X("step:Q", title=stages, axis=alt.Axis(tickMinStep=1))
    lines = (
        alt.Chart(table, title=title, width=300, height=220)
        .mark_line(point=True, interpolate="step-after")
        .encode(
            steps,
            alt.Y("loss:Q", title="cross-entropy"),
            alt.Color("hops:N", legend=COLUMNS),
            tooltip=["hops:N", "step:Q", "loss:Q", "low:Q", "high:Q"],
        )
    )
    return _chance(run) + lines


def _chance(run: xr.Dataset) -> alt.Chart:
    return (
        alt.Chart(pd.DataFrame({"loss": [float(np.log(setting(run, "task.symbols")))]}))
        .mark_rule(strokeDash=[4, 4], color="#888")
        .encode(y="loss:Q")
    )


@figure(
    "composition.fig3left",
    source="Figure 3 left",
    needs={"run": curriculum},
    paper_shows=(
        "Five losses, for 1 to 16 hops, fall from log 5 to 0 one after another, each in its own stage."
    ),
)
def curriculum_staircase(run: xr.Dataset) -> alt.LayerChart:
    """Algorithm 1: two gradient steps a stage, the first on attention and the second on the readout. Each
    hop's loss falls to 0 in its stage and not before."""
    return _staircase(run, f"curriculum, k = {setting(run, 'task.levels')}", "gradient step, two a stage")


@figure(
    "composition.fig3mid",
    source="Figure 3 middle",
    needs={"run": mixture},
    paper_shows=(
        "Four losses, for 1 to 8 hops, fall one after another although all are trained at once; to 0 "
        "once the readouts are trained."
    ),
)
def mixture_staircase(run: xr.Dataset) -> alt.LayerChart:
    """Algorithm 2: every step trains on all hops, and yet one layer learns at a time. The last step trains
    the readouts and brings all losses to 0."""
    return _staircase(
        run, f"mixture, k = {setting(run, 'task.levels')}", "gradient step, the last on readouts"
    )


@figure(
    "composition.curriculum",
    source="Section 5.4, Appendix D.1",
    needs={"run": mixture},
    paper_shows="No figure: in step t only layer t gets a gradient.",
)
def implicit_curriculum(run: xr.Dataset) -> alt.Chart:
    """The largest entry of each layer's gradient in each step of the mixture: one layer at a time, the others
    many orders below."""
    sizes = run.gradient.max("seed").isel(record=slice(1, run.sizes["layer"] + 1))
    rows = [
        {
            "step": int(s) + 1,
            "layer": int(layer),
            "log10 of the gradient": float(np.log10(max(float(sizes[s, l]), 1e-30))),
        }
        for s in range(sizes.sizes["record"])
        for l, layer in enumerate(sizes.layer.values)
    ]
    table = pd.DataFrame(rows)
    base = alt.Chart(table, width=240, height=200, title="largest entry of the gradient, log10").encode(
        alt.X("step:O", title="gradient step", axis=UPRIGHT), alt.Y("layer:O")
    )
    return base.mark_rect().encode(
        alt.Color("log10 of the gradient:Q", title=None, scale=alt.Scale(scheme="blues"))
    ) + base.mark_text(fontSize=11).encode(
        alt.Text("log10 of the gradient:Q", format=".0f"),
        color=alt.condition("datum['log10 of the gradient'] > -10", alt.value("white"), alt.value("black")),
    )


def _pattern(values: np.ndarray, title: str) -> alt.Chart:
    looked = np.argwhere(values > 0.01)
    rows = pd.DataFrame(
        [{"query": int(q), "key": int(k), "attention": float(f"{values[q, k]:.3g}")} for q, k in looked]
    )
    size = len(values)
    return (
        alt.Chart(rows, title=title, width=150, height=150)
        .mark_rect()
        .encode(
            alt.X(
                "key:O", scale=alt.Scale(domain=list(range(size))), axis=alt.Axis(labels=False, ticks=False)
            ),
            alt.Y(
                "query:O", scale=alt.Scale(domain=list(range(size))), axis=alt.Axis(labels=False, ticks=False)
            ),
            alt.Color("attention:Q", scale=alt.Scale(scheme="blues", domain=[0, 1]), legend=None),
            tooltip=["query:O", "key:O", "attention:Q"],
        )
    )


@figure(
    "composition.patterns",
    source="Figure 2, Theorem 4",
    needs={"run": mixture},
    paper_shows=(
        "A drawing: layer 1 looks at the hidden permutation's image in its own level, later layers "
        "at levels 1, 2, 4, … further on."
    ),
)
def learned_beside_built(run: xr.Dataset) -> alt.VConcatChart:
    """Attention on one sequence, layer by layer (tokens by level, then symbol): learned by the mixture above,
    built by Theorem 4 below."""
    from stagewise.models.attention_only import stream
    from stagewise.papers.composition.construction import theorem4
    from stagewise.papers.composition.initial import hidden_of
    from stagewise.papers.composition.learning import example
    from stagewise.tasks.composition import Composition

    task = Composition(setting(run, "task.levels"), setting(run, "task.symbols"))
    seed = int(run.seed.values[0])
    built = theorem4(hidden_of(task, seed), example(task)[None])
    _, patterns = stream(built.first, built.scores)
    learned = run.pattern.isel(seed=0, record=-1).values
    return alt.vconcat(
        alt.hconcat(*(_pattern(each, f"layer {n + 1}, learned") for n, each in enumerate(learned))),
        alt.hconcat(*(_pattern(each[0], f"layer {n + 1}, built") for n, each in enumerate(patterns))),
    )


@figure(
    "composition.samples",
    source="Theorem 7",
    needs={"one": by_levels, "every": by_levels_all},
    paper_shows="No figure: k^4 N^6 samples are enough.",
)
def samples_needed(one: xr.Dataset, every: xr.Dataset) -> alt.Chart:
    """The fewest sequences with which every query of a stage looks at the right key, by number of levels: far
    fewer than k^4 N^6 (1e9 for k = 16), and fewer still if all queries of a sequence are asked."""
    rows = []
    for name, runs in (("one query", one), ("all queries", every)):
        for stage in ("first", "last"):
            least = least_sizes(runs, "levels", stage)
            rows += [
                {
                    "levels": int(k),
                    "sequences": float(np.median(least[:, i])),
                    "curve": f"{stage} stage, {name}",
                }
                for i, k in enumerate(runs.levels.values)
            ]
    table = pd.DataFrame(rows).dropna()
    across = alt.X(
        "levels:Q", scale=alt.Scale(type="log", base=2), title="levels k", axis=alt.Axis(values=[2, 4, 8, 16])
    )
    up = alt.Y("sequences:Q", scale=alt.Scale(type="log"))
    return points(
        table,
        across,
        up,
        color=alt.Color("curve:N", title=None, legend=alt.Legend(orient="bottom", columns=2)),
    )


@figure(
    "composition.phase",
    source="Theorem 7, beyond the paper",
    needs={"runs": phase},
    paper_shows="Nothing: the theorem has k^4 N^6.",
)
def samples_by_levels_and_symbols(runs: xr.Dataset) -> alt.LayerChart:
    """A phase diagram: the fewest samples, of one query each, with which the last stage looks at the right
    key everywhere, by number of levels k and of symbols N. They grow with k and hardly change with N."""
    # [seed, levels, symbols]
    least = np.stack([least_sizes(runs.sel(symbols=N), "levels", "last") for N in runs.symbols.values], -1)
    values = xr.DataArray(
        least.astype(float),
        dims=("seed", "levels", "symbols"),
        coords={"levels": runs.levels.values, "symbols": runs.symbols.values},
        name="samples",
    )
    return heat(
        values.transpose("levels", "symbols", "seed"),
        "levels",
        "symbols",
        "fewest samples, last stage",
        log=True,
        absent="more",
    )


def _learning(run: xr.Dataset, title: str) -> alt.LayerChart:
    """Losses by hop over steps: the median over seeds and their middle 80 %; log N is chance."""
    table = band(run.loss, "loss")
    names = alt.Color(
        "hops:N",
        legend=alt.Legend(
            orient="bottom", title="hops", symbolType="stroke", symbolOpacity=1, symbolStrokeWidth=2
        ),
    )
    base = alt.Chart(table, title=title, width=230, height=190)
    across, up = alt.X("step:Q"), alt.Y("loss:Q", title="cross-entropy")
    spread = base.mark_area(opacity=0.2).encode(
        across, alt.Y("low:Q", title="cross-entropy"), alt.Y2("high:Q"), names
    )
    return (
        _chance(run)
        + spread
        + base.mark_line().encode(
            across, up, names, tooltip=["hops:N", "step:Q", "loss:Q", "low:Q", "high:Q"]
        )
    )


def _passages(runs: dict[str, xr.Dataset]) -> alt.Chart:
    """The share of seeds that have learned the most hops, by step."""
    rows = [
        {"step": int(step), "share": float(((run.done_at >= 0) & (run.done_at <= step)).mean()), "arm": name}
        for name, run in runs.items()
        for step in run.step.values
    ]
    names = {
        "scale": alt.Scale(domain=list(runs)),
        "legend": alt.Legend(orient="bottom", columns=2, title=None, symbolType="stroke", symbolOpacity=1),
    }
    return (
        alt.Chart(pd.DataFrame(rows), title="share of seeds that have learned 4 hops", width=300, height=190)
        .mark_line(interpolate="step-after")
        .encode(
            alt.X("step:Q"),
            alt.Y("share:Q", title=None, scale=alt.Scale(domain=[0, 1])),
            alt.Color("arm:N", **names),
            alt.StrokeDash("arm:N", **names),
            tooltip=["arm:N", "step:Q", "share:Q"],
        )
    )


@figure(
    "composition.fig3right",
    source="Figure 3 right",
    needs={
        "mixture": BeyondQuick(token_mixture),
        "hardest": BeyondQuick(token_hardest),
        "readouts": BeyondQuick(readout_mixture),
        "alone": BeyondQuick(readout_hardest),
    },
    paper_shows="With the mixture the loss on 4 hops falls to 0, with 4-fold data alone it stays at log N.",
)
def encoder_learns(
    mixture: xr.Dataset, hardest: xr.Dataset, readouts: xr.Dataset, alone: xr.Dataset
) -> alt.VConcatChart:
    """A standard encoder: losses by hops, medians and the middle 80 % of seeds, and how many seeds have
    learned 4 hops by when. Above with a token that says how many hops, as in the paper; below with a readout
    for each. Left the mixture, right 4 hops alone."""
    named = {
        "token, mixture": mixture,
        "token, 4 hops alone": hardest,
        "readouts, mixture": readouts,
        "readouts, 4 hops alone": alone,
    }
    losses = alt.concat(*(_learning(run, title) for title, run in named.items()), columns=2)
    return alt.vconcat(losses, _passages(named)).resolve_scale(color="independent", strokeDash="independent")


@figure(
    "composition.correlations",
    source="Theorem 5, Lemma 10",
    needs={"symbols": 5},
    paper_shows="No figure: targets are nearly uncorrelated.",
)
def correlations_by_level(symbols: int) -> alt.HConcatChart:
    """Two random targets: the root mean square of their correlation falls by N - 1 with every level, and most
    pairs become orthogonal to the last digit."""
    rows = pd.DataFrame(
        [
            {
                "levels": k,
                "correlation": queries.root_mean_square(k, N),
                "orthogonal": queries.share_orthogonal(k, N),
                "symbols": f"N = {N}",
            }
            for N in (3, symbols, 8)
            for k in range(1, 17)
        ]
    )
    across, names = (
        alt.X("levels:Q", title="levels k"),
        alt.Color("symbols:N", title=None, legend=alt.Legend(orient="bottom")),
    )
    return alt.hconcat(
        points(
            rows,
            across,
            alt.Y("correlation:Q", scale=alt.Scale(type="log"), title="root mean square of <f, f'>"),
            color=names,
        ),
        points(rows, across, alt.Y("orthogonal:Q", title="share of pairs exactly orthogonal"), color=names),
    )


def _inside(run: xr.Dataset, hops: int, title: str) -> alt.HConcatChart:
    """Of some seeds, when so many hops are asked: attention of the best head of each layer on what a hop
    needs, and partial hops read off each layer."""
    asked = run.sel(hops=hops)
    looked = (
        asked.looked.mean("seed").rename("attention").to_dataframe()[["attention"]].reset_index().dropna()
    )
    probed = asked.probed.mean("seed").rename("accuracy").to_dataframe()[["accuracy"]].reset_index()
    order, across = [str(target) for target in run.target.values], alt.X("layer:O", axis=UPRIGHT)
    heat = (
        alt.Chart(looked.round(3), title=f"{title}: attention of the best head", width=200, height=150)
        .mark_rect()
        .encode(
            across,
            alt.Y("target:N", sort=order, title=None),
            alt.Color("attention:Q", scale=alt.Scale(scheme="blues", domain=[0, 1])),
            tooltip=["layer:O", "target:N", "attention:Q"],
        )
    )
    lines = (
        alt.Chart(probed.round(3), title="partial hops read off a layer", width=200, height=150)
        .mark_line(point=True)
        .encode(
            across,
            alt.Y("accuracy:Q", scale=alt.Scale(domain=[0, 1])),
            alt.Color("partial:N", title="hops", legend=alt.Legend(orient="bottom")),
            tooltip=["layer:O", "partial:N", "accuracy:Q"],
        )
    )
    return alt.hconcat(heat, lines).resolve_scale(color="independent")


@figure(
    "composition.stuck",
    source="beyond the paper",
    needs={"run": readout_mixture},
    paper_shows="Nothing: the paper does not look inside the encoder.",
)
def where_a_run_is(run: xr.Dataset) -> alt.VConcatChart:
    """Inside the encoder with readouts, apart for seeds that learned 4 hops and seeds that did not: how much
    of its attention the best head of each layer puts on the tokens that a hop needs, and how well 1 and 2
    hops can be read off each layer by a linear map. Where 2 hops cannot be read off before the last layer, no
    layer is left to use them."""
    solved = run.done_at >= 0
    groups = {"solved": run.sel(seed=solved), "stuck": run.sel(seed=~solved)}
    return alt.vconcat(
        *(
            _inside(some, int(run.hops[-1]), f"{name}, {some.sizes['seed']} seeds")
            for name, some in groups.items()
            if some.sizes["seed"]
        )
    )


@figure(
    "composition.gate",
    source="beyond the paper",
    needs={"run": BeyondQuick(token_mixture)},
    paper_shows="Nothing: the paper does not look inside the encoder.",
)
def what_the_token_does(run: xr.Dataset) -> alt.VConcatChart:
    """Inside the encoder with a token that says how many hops, by what is asked, the mean over seeds. A
    circuit that is used for 2 hops and gone when 4 are asked has been switched off by the token."""
    return alt.vconcat(
        *(_inside(run, int(hops), f"{hops} hop{'s' if hops > 1 else ''} asked") for hops in run.hops.values)
    )


@figure(
    "composition.decides",
    source="beyond the paper",
    needs={
        "runs": BeyondQuick(mixtures),
        "wide": BeyondQuick(widths),
        "patient": BeyondQuick(patience),
        "in_turn": BeyondQuick(in_turn),
    },
    paper_shows="Nothing: the paper has one mixture and one encoder.",
)
def what_decides(runs: xr.Dataset, wide: xr.Dataset, patient: xr.Dataset, in_turn: xr.Dataset) -> alt.Chart:
    """The share of seeds that learn 4 hops: by the hops in the mixture, by width, with ten times the steps,
    and with one number of hops after another."""
    named = {
        f"hops {hops}, {form}": runs.sel(asked_hops=hops, form=form)
        for hops in runs.asked_hops.values
        for form in runs["form"].values
    }
    named |= {
        f"(1, 2, 4), {form}, width {int(w)}": wide.sel(width=w, form=form)
        for form in wide["form"].values
        for w in wide.width.values
    }
    named |= {f"(1, 2, 4), {form}, 20000 steps": patient.sel(form=form) for form in patient["form"].values}
    named |= {f"1, then 2, then 4, {form}": in_turn.sel(form=form) for form in in_turn["form"].values}
    rows = pd.DataFrame(
        [
            {"set-up": name, "share": float((run.done_at.values >= 0).mean()), "seeds": int(run.done_at.size)}
            for name, run in named.items()
        ]
    )
    return (
        alt.Chart(rows, width=300, height=18 * len(rows))
        .mark_bar()
        .encode(
            alt.X("share:Q", scale=alt.Scale(domain=[0, 1]), title="share of seeds that learn 4 hops"),
            alt.Y("set-up:N", sort=list(named), title=None, axis=alt.Axis(labelLimit=260)),
            tooltip=list(rows.columns),
        )
    )
