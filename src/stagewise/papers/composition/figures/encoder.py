"""Figure 3 right: the encoder, what it learns, where it is stuck, what decides; how targets correlate."""

from __future__ import annotations

import altair as alt
import pandas as pd
import xarray as xr

from stagewise.lab.draw.charts import band, points
from stagewise.lab.draw.figures import Drawn, figure
from stagewise.lab.spec.study import BeyondQuick
from stagewise.papers.composition import queries
from stagewise.papers.composition.figures.theory import UPRIGHT, chance
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


def _learning(run: xr.Dataset, title: str) -> Drawn:
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
        chance(run)
        + spread
        + base.mark_line().encode(
            across, up, names, tooltip=["hops:N", "step:Q", "loss:Q", "low:Q", "high:Q"]
        )
    )


def _passages(runs: dict[str, xr.Dataset]) -> Drawn:
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
) -> Drawn:
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
def correlations_by_level(symbols: int) -> Drawn:
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


def _inside(run: xr.Dataset, hops: int, title: str) -> Drawn:
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
def where_a_run_is(run: xr.Dataset) -> Drawn:
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
def what_the_token_does(run: xr.Dataset) -> Drawn:
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
def what_decides(runs: xr.Dataset, wide: xr.Dataset, patient: xr.Dataset, in_turn: xr.Dataset) -> Drawn:
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
