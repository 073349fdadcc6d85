"""The paper's figures, drawn from our runs: medians over seeds as lines, the middle 80 % of seeds as
bands."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

from stagewise.lab.draw.charts import STAGE_TINTS, band, lines, points
from stagewise.lab.draw.figures import Drawn, figure
from stagewise.lab.draw.phase_diagram import heat
from stagewise.papers.mixture.experiments import JointTraining, ManyGroups, ThreeStages
from stagewise.papers.mixture.features import margins
from stagewise.papers.mixture.readings import ONSET, attention, duration, score_error, time_to_learn
from stagewise.papers.mixture.studies import (
    gaussian_neurons,
    groups,
    groups_in_stages,
    phase,
    phase_of_bias,
    starts,
    targets_in_stages,
    widths,
)
from stagewise.probes.crossing import first_above


@figure(
    "mixture.fig1",
    source="Figure 1",
    needs={"joint": JointTraining.plan()},
    paper_shows="(a) The consistent loss drops early and the conflicting loss after a long plateau. (b) The "
    "alignments of the "
    "positive head's neurons rise early. (c) Two scores of the group key leave zero late, one up and one "
    "down.",
)
def three_stages_of_joint_training(joint: xr.Dataset) -> Drawn:
    """Three stages in one run: the consistent loss falls within tens of steps as neurons align with the class
    signals v and then the group signals c; a thousand steps later the scores of key c1 leave zero, and only
    then the conflicting loss falls."""
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
    "mixture.fig2",
    source="Figure 2",
    needs={"joint": JointTraining.plan()},
    paper_shows="Four heat maps of the positive head's attention, queries down and keys across: on "
    "conflicting samples of label + the "
    "class tokens look at the group token, on those of label - they avoid it.",
)
def attention_on_four_samples(joint: xr.Dataset) -> Drawn:
    """Attention of the positive head at the end of training on the four samples of group 1 (median over
    seeds). On X(1,+,-) both class tokens look at c1; on X(1,-,+) neither does; on consistent samples one does
    and the other does not, and it hardly matters."""
    samples = {
        "X(1,+,+)": ["c1", "v1", "v2"],
        "X(1,-,-)": ["c1", "-v1", "-v2"],
        "X(1,+,-)": ["c1", "v1", "-v2"],
        "X(1,-,+)": ["c1", "-v1", "v2"],
    }
    end, tables = joint.isel(record=-1, drop=True), []
    for name, tokens in samples.items():
        table = attention(end, tokens).median("seed").round(3).to_dataframe("attention").reset_index()
        position = {token: f"{i + 1}. {token}" for i, token in enumerate(tokens)}
        query, key = (cast(pd.Series, table[side]).map(position) for side in ("at", "to"))
        tables.append(table.assign(sample=name, query=query, key=key))
    cells = alt.Chart(pd.concat(tables)).encode(
        x=alt.X("key:N", title="key", axis=alt.Axis(labelAngle=0)), y=alt.Y("query:N", title="query")
    )
    colour = alt.Color("attention:Q", scale=alt.Scale(scheme="blues", domain=[0, 1]), title="attention")
    ink = alt.condition("datum.attention > 0.6", alt.value("white"), alt.value("black"))
    shown = cells.mark_rect().encode(color=colour, tooltip=["sample:N", "query:N", "key:N", "attention:Q"])
    written = cells.mark_text().encode(text=alt.Text("attention:Q", format=".2f"), color=ink)
    return (
        (shown + written)
        .properties(width=150, height=150)
        .facet(column=alt.Column("sample:N", title=None))
        .resolve_scale(x="independent", y="independent")
    )


@figure(
    "mixture.fig3",
    source="Figure 3",
    needs={"attention": gaussian_neurons(0.1, "attention"), "joint": gaussian_neurons(0.1, "both")},
    paper_shows=(
        "The loss of a run that trains only the attention on top of Gaussian neurons: it does not go down."
    ),
)
def loss_of_attention_alone(attention: xr.Dataset, joint: xr.Dataset) -> Drawn:
    """Training only the attention on top of random neurons lowers the loss a little and then stalls; training
    all weights from the very same start learns the task."""
    losses: list[xr.DataArray] = [attention.loss.sel(kind="all"), joint.loss.sel(kind="all")]
    curves = xr.concat(losses, pd.Index(["attention only", "all weights"], name="trained"))
    return lines(band(curves, "loss"), "loss", "trained", "", ["attention only", "all weights"])


@figure(
    "mixture.fig4",
    source="Figure 4",
    needs={"joint": JointTraining.plan()},
    paper_shows="All sixteen scores of one head for two groups: the group-key, class-query block dominates.",
)
def all_scores(joint: xr.Dataset) -> Drawn:
    """The sixteen scores of the positive head at the end of training (median over seeds): the block of group
    keys and class queries dominates, with opposite signs for the two groups."""
    end = joint.scores.isel(record=-1, drop=True).sel(head="+", drop=True).median("seed").round(3)
    table = end.to_dataframe("score").reset_index()
    cells = alt.Chart(table, width=220, height=220).encode(
        x=alt.X("query:N", title="query", axis=alt.Axis(labelAngle=0)), y=alt.Y("key:N", title="key")
    )
    colour = alt.Color("score:Q", scale=alt.Scale(scheme="blueorange", domainMid=0), title="score")
    ink = alt.condition("abs(datum.score) > 2", alt.value("white"), alt.value("black"))
    return cells.mark_rect().encode(
        color=colour, tooltip=["key", "query", "score"]
    ) + cells.mark_text().encode(text=alt.Text("score:Q", format=".2f"), color=ink)


def _many_groups(K: int, number: int):
    @figure(
        f"mixture.fig{number}",
        source=f"Figure {number}",
        needs={"joint": ManyGroups.plan(**{"task.groups": K})},
        paper_shows=f"The three panels of Figure 1 for {K} groups: the same stages, later.",
    )
    def panels(joint: xr.Dataset) -> Drawn:
        last = int(joint.done_at.max()) if (joint.done_at >= 0).all() else int(joint.step[-1])
        joint = joint.isel(record=np.flatnonzero(joint.step <= last))  # after that every seed rests
        names = ["own class", "other class"]
        losses = band(joint.loss.sel(kind=["consistent", "conflicting"]), "loss")
        plus = joint.sel(head="+").drop_vars("head")
        mean: dict[str, xr.DataArray] = {
            "v": plus.neurons.isel(signal=slice(K, None)).mean("signal"),
            "c": plus.neurons.isel(signal=slice(K)).mean("signal"),
        }
        neurons = band(xr.concat(list(mean.values()), pd.Index(list(mean), name="signals")), "alignment")
        block = plus.scores.isel(key=slice(K), query=slice(K, None)).values
        own = np.diagonal(block, axis1=-2, axis2=-1).mean(-1)
        other = (block.sum((-1, -2)) - own * K) / (K * (K - 1))
        scores = xr.DataArray(
            [own, other], dims=("query", "seed", "record"), coords={"query": names, "step": plus.step}
        )
        return alt.hconcat(
            lines(losses, "loss", "kind", "(a) loss by kind of sample", ["consistent", "conflicting"]),
            lines(neurons, "alignment", "signals", "(b) neurons of the + head, means", ["v", "c"]),
            lines(band(scores, "score"), "score", "query", "(c) scores of a group key, means", names),
        ).resolve_scale(color="independent", strokeDash="independent")

    return replace(
        panels,
        shows=f"Joint training with {K} groups: the stages of Figure 1, with a longer plateau before "
        "attention starts. "
        "The score for the own class signal rises, those for the others sink by an equal share each.",
    )


three_groups, four_groups, eight_groups = _many_groups(3, 5), _many_groups(4, 6), _many_groups(8, 7)


@figure(
    "mixture.algorithm1",
    source="Algorithm 1",
    needs={"stages": ThreeStages.plan(width="infinite")},
    paper_shows="No figure; the theorem says that stage 1 solves the consistent samples, stage 2 separates "
    "the conflicting "
    "ones, and stage 3 drives the loss to zero.",
)
def losses_through_the_stages(stages: xr.Dataset) -> Drawn:
    """Gradient flow at infinite width: the consistent loss falls in stage 1, the score grows from almost
    nothing in stage 2 while neurons rest, and in stage 3 both losses go to zero. Bands mark the stages."""
    one = stages.isel(seed=0)
    curves = {kind: one.loss.sel(kind=kind).values for kind in ("consistent", "conflicting")}
    curves["score of key c1 for query v1"] = one.scores.sel(head="+", key="c1", query="v1").values
    table = pd.concat(
        [pd.DataFrame({"time": one.time.values, "value": c.round(5), "curve": n}) for n, c in curves.items()]
    )
    ends = np.concatenate([[0.0], one.ended.values])
    shades = pd.DataFrame({"from": ends[:-1], "to": ends[1:], "stage": one.stages.values})
    shade = (
        alt.Chart(shades)
        .mark_rect(opacity=0.35)
        .encode(
            x="from:Q",
            x2="to:Q",
            color=alt.Color("stage:N", scale=alt.Scale(range=list(STAGE_TINTS)), title="stage"),
        )
    )
    line = (
        alt.Chart(table, width=620, height=240)
        .mark_line()
        .encode(
            x=alt.X("time:Q", scale=alt.Scale(domain=[0, float(ends[-1])]), title="time"),
            y=alt.Y("value:Q", title="loss, score"),
            color=alt.Color("curve:N", title=None, sort=list(curves)),
            tooltip=["curve:N", "time:Q", "value:Q"],
        )
    )
    return (shade + line).resolve_scale(color="independent")


@figure(
    "mixture.T2_trend",
    source="Theorem 4.1, for several numbers of groups",
    needs={"stages": groups_in_stages},
    paper_shows="No figure; the theorem says that T2 - T1 grows like log 1/omega for two groups.",
)
def attention_time_against_scale(stages: xr.Dataset) -> Drawn:
    """The time that attention takes is a straight line in log 1/omega for every number of groups, with a
    slope in proportion to the number of groups less one."""
    time = (stages.ended.sel(stages="2", drop=True) - stages.ended.sel(stages="1", drop=True)).isel(
        seed=0, drop=True
    )
    table = time.to_dataframe("time").reset_index()
    x = alt.X("initial_scale:Q", scale=alt.Scale(type="log", reverse=True), title="initial scale omega")
    return points(
        table,
        x,
        alt.Y("time:Q", title="T2 - T1"),
        color=alt.Color("groups:O", title="groups", scale=alt.Scale(scheme="viridis")),
    )


@figure(
    "mixture.T3_trend",
    source="Theorem 4.1",
    needs={"stages": targets_in_stages},
    paper_shows="No figure; the theorem says that T3 - T2 grows like 1/epsilon.",
)
def convergence_time_against_target(stages: xr.Dataset) -> Drawn:
    """The time of stage 3 against the inverse of the target loss, on logarithmic axes: a line of slope
    one."""
    table = pd.DataFrame(
        {"inverse_target": 1 / stages.target_loss.values, "time": duration(stages, "3").isel(seed=0).values}
    )
    x = alt.X("inverse_target:Q", scale=alt.Scale(type="log"), title="1 / epsilon")
    return points(table, x, alt.Y("time:Q", scale=alt.Scale(type="log"), title="T3 - T2"))


@figure(
    "mixture.margin",
    source="Sections 4 and 5.1",
    needs={"joint": JointTraining.plan(), "starts": starts},
    paper_shows=(
        "No figure; the text says that the attention features go from nearly non-separable to well separated."
    ),
)
def margin_over_time(joint: xr.Dataset, starts: xr.Dataset) -> Drawn:
    """Left: the maximum margin of the conflicting samples' features is tiny until attention is learned and
    then jumps, while that of the consistent samples is never lost. Right: before training it grows with omega
    squared and shrinks with the root of m."""
    some = joint.isel(
        seed=slice(8), record=np.unique(np.linspace(0, joint.sizes["record"] - 1, 30).astype(int))
    )
    kinds = ["consistent", "conflicting"]
    curves = xr.concat([margins(some, kind) for kind in kinds], pd.Index(kinds, name="kind"))
    start = (
        margins(starts.isel(record=0, drop=True), "conflicting")
        .median("seed")
        .to_dataframe("margin")
        .reset_index()
    )
    x, y = (
        alt.X("width:Q", scale=alt.Scale(type="log"), title="width m"),
        alt.Y("margin:Q", scale=alt.Scale(type="log"), title="initial margin"),
    )
    return alt.hconcat(
        lines(band(curves, "margin"), "margin", "kind", "maximum margin during training", kinds),
        points(start, x, y, color=alt.Color("initial_scale:O", title="omega")).properties(
            title="at the start, conflicting samples"
        ),
    ).resolve_scale(color="independent", strokeDash="independent")


@figure(
    "mixture.groups_trend",
    source="Observation 1",
    needs={"runs": groups},
    paper_shows="No figure; the observation says that training takes longer with more groups.",
)
def onset_against_groups(runs: xr.Dataset) -> Drawn:
    """The step at which attention starts, at infinite width, is a straight line in the number of groups."""
    step = first_above(runs.scores.sel(pair="same", key_type="c", query_type="v"), ONSET).isel(seed=0).values
    table = pd.DataFrame({"groups": runs.groups.values, "onset": step.round(1)})
    return points(
        table,
        alt.X("groups:Q", title="number of groups K"),
        alt.Y("onset:Q", title="step at which attention starts"),
    )


@figure(
    "mixture.width_trend",
    source="Definition 5.1, Appendix G",
    needs={"finite": widths, "infinite": JointTraining.plan(width="infinite")},
    paper_shows=(
        "No figure; the paper says that finite width deviates from infinite width by order 1/sqrt(m)."
    ),
)
def error_against_width(finite: xr.Dataset, infinite: xr.Dataset) -> Drawn:
    """The largest difference of any score at any time from infinite width, for each seed (points) and its
    median (line), beside a line of slope -1/2."""
    error = score_error(finite, infinite)
    table = error.to_dataframe("error").reset_index()
    middle = error.median("seed")
    guide = pd.DataFrame(
        {"width": middle.width, "error": float(middle[0]) * (middle.width / middle.width[0]) ** -0.5}
    )
    x = alt.X("width:Q", scale=alt.Scale(type="log"), title="width m")
    y = alt.Y("error:Q", scale=alt.Scale(type="log"), title="largest score error")
    points = (
        alt.Chart(table, width=300, height=220)
        .mark_point(opacity=0.4)
        .encode(x=x, y=y, tooltip=["width", "seed", "error"])
    )
    median = alt.Chart(middle.to_dataframe("error").reset_index()).mark_line().encode(x=x, y=y)
    return points + median + alt.Chart(guide).mark_line(strokeDash=[4, 4], color="black").encode(x=x, y=y)


@figure(
    "mixture.phase",
    source="beyond the paper",
    needs={"runs": phase, "biases": phase_of_bias},
    paper_shows="Nothing: the paper speaks of small initial attention and large width, and of some bias.",
)
def when_attention_is_learned(runs: xr.Dataset, biases: xr.Dataset) -> Drawn:
    """Phase diagrams. Left: the step at which the conflicting loss has fallen to half, by width and by the
    scale omega that attention starts from: the scale decides, the width hardly matters. Right: the step at
    which attention begins to choose, at infinite width, by the fixed bias and omega."""
    learned = time_to_learn(runs, "conflicting").rename("step").transpose("width", "initial_scale", "seed")
    begun = (
        first_above(biases.scores.sel(pair="same", key_type="c", query_type="v"), ONSET)
        .rename("step")
        .transpose("bias", "initial_scale", "seed")
    )
    return alt.hconcat(
        heat(
            learned, "width", "initial_scale", "conflicting samples learned, step", log=True, absent="not yet"
        ),
        heat(begun, "bias", "initial_scale", "attention begins to choose, step", log=True, absent="not yet"),
    ).resolve_scale(color="independent")
