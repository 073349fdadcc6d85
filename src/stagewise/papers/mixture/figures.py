"""The paper's figures, drawn from our runs: medians over seeds as lines, the middle 80 % of seeds as bands."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

from stagewise.lab.figures import figure
from stagewise.papers.mixture.experiments import JointTraining, ThreeStages
from stagewise.papers.mixture.recorded import duration
from stagewise.papers.mixture.studies import scales_in_stages, widths


def band(curves: xr.DataArray, name: str) -> pd.DataFrame:
    """Median and middle 80 % over seeds, one row a record and label."""
    quantiles = curves.quantile([0.1, 0.5, 0.9], "seed").round(5)
    parts = [quantiles.sel(quantile=q, drop=True).rename(n) for q, n in ((0.1, "low"), (0.5, name), (0.9, "high"))]
    return xr.merge(parts).to_dataframe().reset_index()


def lines(table: pd.DataFrame, y: str, colour: str, title: str, order: list[str]) -> alt.LayerChart:
    """Lines with bands over training steps; step 0 has no place on a logarithmic axis and is left out."""
    table = table[table.step > 0]
    x = alt.X("step:Q", scale=alt.Scale(type="log", nice=False), title="step")
    legend = alt.Legend(symbolType="stroke", symbolOpacity=1, symbolStrokeWidth=2, title=None, orient="bottom", columns=2)
    names = alt.Color(f"{colour}:N", sort=order, legend=legend)
    base = alt.Chart(table, title=title, width=280, height=220)
    middle = base.mark_line().encode(
        x, alt.Y(f"{y}:Q", title=y), names, alt.StrokeDash(f"{colour}:N", sort=order, legend=None),
        tooltip=[f"{colour}:N", "step:Q", f"{y}:Q"],
    )  # fmt: skip
    spread = base.mark_area(opacity=0.2).encode(x, alt.Y("low:Q", title=y), alt.Y2("high:Q"), names)
    return spread + middle


@figure(
    "mixture.fig1",
    source="Figure 1",
    needs={"joint": JointTraining.plan()},
    paper_shows="(a) The consistent loss drops early and the conflicting loss after a long plateau. (b) The alignments of the "
    "positive head's neurons rise early. (c) Two scores of the group key leave zero late, one up and one down.",
)
def three_stages_of_joint_training(joint: xr.Dataset) -> alt.HConcatChart:
    """Three stages in one run: the consistent loss falls within tens of steps as neurons align with the class signals v and
    then the group signals c; a thousand steps later the scores of key c1 leave zero, and only then the conflicting loss falls."""
    losses = band(joint.loss.sel(kind=["consistent", "conflicting"]), "loss")
    neurons = band(joint.neurons.sel(head="+").drop_vars("head"), "alignment")
    scores = joint.scores.sel(head="+", key=["c1", "v1"], query=["c1", "v1", "v2"]).drop_vars("head")
    table = band(scores, "score")
    table["pair"] = "key " + table.key + ", query " + table["query"]
    return alt.hconcat(
        lines(losses, "loss", "kind", "(a) loss by kind of sample", ["consistent", "conflicting"]),
        lines(neurons, "alignment", "signal", "(b) neurons of the + head", ["v1", "v2", "c1", "c2"]),
        lines(table, "score", "pair", "(c) attention scores of the + head", sorted(table.pair.unique())),
    ).resolve_scale(color="independent", strokeDash="independent")


@figure(
    "mixture.fig4",
    source="Figure 4",
    needs={"joint": JointTraining.plan()},
    paper_shows="All sixteen scores of one head for two groups: the group-key, class-query block dominates.",
)
def all_scores(joint: xr.Dataset) -> alt.Chart:
    """The sixteen scores of the positive head at the end of training (median over seeds): the block of group keys and class
    queries dominates, with opposite signs for the two groups."""
    end = joint.scores.isel(record=-1, drop=True).sel(head="+", drop=True).median("seed").round(3)
    table = end.to_dataframe("score").reset_index()
    cells = alt.Chart(table, width=220, height=220).encode(
        x=alt.X("query:N", title="query", axis=alt.Axis(labelAngle=0)), y=alt.Y("key:N", title="key")
    )
    colour = alt.Color("score:Q", scale=alt.Scale(scheme="blueorange", domainMid=0), title="score")
    return cells.mark_rect().encode(color=colour, tooltip=["key", "query", "score"]) + cells.mark_text().encode(
        text=alt.Text("score:Q", format=".2f")
    )


@figure(
    "mixture.algorithm1",
    source="Algorithm 1",
    needs={"stages": ThreeStages.plan(width="infinite")},
    paper_shows="No figure; the theorem says that stage 1 solves the consistent samples, stage 2 separates the conflicting "
    "ones, and stage 3 drives the loss to zero.",
)
def losses_through_the_stages(stages: xr.Dataset) -> alt.LayerChart:
    """Gradient flow at infinite width: the consistent loss falls in stage 1, the score grows from almost nothing in stage 2
    while neurons rest, and in stage 3 both losses go to zero. Bands mark the stages."""
    one = stages.isel(seed=0)
    curves = {kind: one.loss.sel(kind=kind).values for kind in ("consistent", "conflicting")}
    curves["score of key c1 for query v1"] = one.scores.sel(head="+", key="c1", query="v1").values
    table = pd.concat([pd.DataFrame({"time": one.time.values, "value": c.round(5), "curve": n}) for n, c in curves.items()])
    ends = np.concatenate([[0.0], one.ended.values])
    shades = pd.DataFrame({"from": ends[:-1], "to": ends[1:], "stage": one.stages.values})
    shade = alt.Chart(shades).mark_rect(opacity=0.15).encode(
        x="from:Q", x2="to:Q", color=alt.Color("stage:N", scale=alt.Scale(scheme="greys"), title="stage")
    )  # fmt: skip
    line = alt.Chart(table, width=620, height=240).mark_line().encode(
        x=alt.X("time:Q", scale=alt.Scale(domain=[0, float(ends[-1])]), title="time"), y=alt.Y("value:Q", title="loss, score"),
        color=alt.Color("curve:N", title=None), tooltip=["curve:N", "time:Q", "value:Q"],
    )  # fmt: skip
    return (shade + line).resolve_scale(color="independent")


@figure(
    "mixture.T2_trend",
    source="Theorem 4.1",
    needs={"stages": scales_in_stages},
    paper_shows="No figure; the theorem says that T2 - T1 grows like log 1/omega.",
)
def attention_time_against_scale(stages: xr.Dataset) -> alt.Chart:
    """The time that attention takes is a straight line in log 1/omega."""
    table = pd.DataFrame({"omega": stages.initial_scale.values, "time": duration(stages, "2").isel(seed=0).values})
    return alt.Chart(table, width=300, height=220).mark_line(point=True).encode(
        x=alt.X("omega:Q", scale=alt.Scale(type="log", reverse=True), title="initial scale omega"),
        y=alt.Y("time:Q", title="T2 - T1"), tooltip=["omega", "time"],
    )  # fmt: skip


@figure(
    "mixture.width_trend",
    source="Definition 5.1, Appendix G",
    needs={"finite": widths, "infinite": JointTraining.plan(width="infinite")},
    paper_shows="No figure; the paper says that finite width deviates from infinite width by order 1/sqrt(m).",
)
def error_against_width(finite: xr.Dataset, infinite: xr.Dataset) -> alt.LayerChart:
    """The largest difference of any score at any time from infinite width, for each seed (points) and its median (line),
    beside a line of slope -1/2."""
    error = abs(finite.scores - infinite.scores.isel(seed=0, drop=True)).max(["record", "head", "key", "query"])
    table = error.to_dataframe("error").reset_index()
    middle = error.median("seed")
    guide = pd.DataFrame({"width": middle.width, "error": float(middle[0]) * (middle.width / middle.width[0]) ** -0.5})
    x = alt.X("width:Q", scale=alt.Scale(type="log"), title="width m")
    y = alt.Y("error:Q", scale=alt.Scale(type="log"), title="largest score error")
    points = alt.Chart(table, width=300, height=220).mark_point(opacity=0.4).encode(x=x, y=y, tooltip=["width", "seed", "error"])
    median = alt.Chart(middle.to_dataframe("error").reset_index()).mark_line().encode(x=x, y=y)
    return points + median + alt.Chart(guide).mark_line(strokeDash=[4, 4], color="black").encode(x=x, y=y)
