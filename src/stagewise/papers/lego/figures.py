"""The paper's figures, drawn from our runs, and what the closed forms show beside them."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

from stagewise.lab.draw.charts import band, lines, points
from stagewise.lab.draw.figures import Drawn, figure
from stagewise.lab.spec.study import BeyondQuick
from stagewise.papers.lego.readings import (
    ORDER,
    action_of,
    at_end_of,
    half_length,
    half_sums,
    missed_at,
    top_of,
    winners,
)
from stagewise.papers.lego.studies.theory import cyclic as one_step
from stagewise.papers.lego.studies.theory import cyclic_sizes, recursion, symmetric_sizes
from stagewise.papers.lego.studies.training import cyclic, recursive, stabilisers, stayed, symmetric
from stagewise.tasks.groups import Action

LENGTH = alt.X("tested:Q", scale=alt.Scale(type="log", base=2), title="length of the chain")
CHAINS = alt.Y("chain:Q", title="chains right throughout", scale=alt.Scale(domain=[0, 1]))


def _curves(named: dict[str, xr.DataArray], title: str) -> Drawn:
    """Chain accuracy by length: medians over seeds, and the middle 80 % as bands."""
    table = pd.concat([band(chain, "chain").assign(curve=name) for name, chain in named.items()])
    colour = alt.Color(
        "curve:N",
        title=None,
        sort=list(named),
        legend=alt.Legend(
            orient="bottom", columns=2, symbolType="stroke", symbolOpacity=1, symbolStrokeWidth=2
        ),
    )
    base = alt.Chart(table, title=title, width=320, height=230)
    middle = base.mark_line(point=True).encode(
        LENGTH, CHAINS, colour, tooltip=["curve:N", "tested:Q", "chain:Q", "low:Q", "high:Q"]
    )
    return (
        base.mark_area(opacity=0.15).encode(
            LENGTH, alt.Y("low:Q", title="chains right throughout"), alt.Y2("high:Q"), colour
        )
        + middle
    )


@figure(
    "lego.fig1a",
    source="Figure 1a",
    needs={"cyclic": BeyondQuick(cyclic), "symmetric": BeyondQuick(symmetric)},
    paper_shows="Trained at length 5: C6 stays near 1 up to 160; S5 falls to 0 beyond a few times 5.",
)
def reach_of_both_groups(cyclic: xr.Dataset, symmetric: xr.Dataset) -> Drawn:
    """The share of chains that are right throughout, by length, after the same training at length 5."""
    return _curves(
        {"C6": at_end_of(cyclic, 0).chain, "S5": at_end_of(symmetric, 0).chain}, "trained at length 5"
    )


@figure(
    "lego.fig1b",
    source="Figure 1b",
    needs={"own": BeyondQuick(recursive), "stayed": BeyondQuick(stayed)},
    paper_shows=(
        "Each stage of self-training, at 10, 20 and 40, moves S5's curve to the right; the last "
        "stays near 1 up to 160."
    ),
)
def reach_by_stage(own: xr.Dataset, stayed: xr.Dataset) -> Drawn:
    """S5 after each stage of training on its own answers, beside as many steps more at length 5 with true
    answers."""
    named = {"trained at 5": at_end_of(own, 0).chain}
    named |= {
        f"own answers at {length}": at_end_of(own, i).chain for i, length in ((1, 10), (2, 20), (3, 40))
    }
    return _curves(named | {"as many steps, all at 5": at_end_of(stayed, 3).chain}, "S5, self-training")


def _heatmap(values: np.ndarray, keys: list[str], title: str) -> Drawn:
    rows = [
        {"query": f"answer {q}", "key": key, "attention": float(values[q, k])}
        for q in range(len(values))
        for k, key in enumerate(keys)
    ]
    return (
        alt.Chart(pd.DataFrame(rows), title=title, width=240, height=130)
        .mark_rect()
        .encode(
            alt.X("key:N", sort=keys, title=None, axis=alt.Axis(labelAngle=-40)),
            alt.Y("query:N", title="asking"),
            alt.Color("attention:Q", scale=alt.Scale(scheme="blues", domain=[0, 1])),
            tooltip=["query:N", "key:N", alt.Tooltip("attention:Q", format=".3f")],
        )
    )


@figure(
    "lego.fig2",
    source="Figures 2a, 5a and 5b",
    needs={"run": cyclic},
    paper_shows=(
        "Two diagonal bands, on the predicate needed next and on the answer itself; with permuted "
        "predicates the first band is permuted with them."
    ),
)
def two_bands(run: xr.Dataset) -> Drawn:
    """C6 after training at length 5: mean attention of answers on predicates and answers. With the predicates
    in another order attention follows them."""
    return _bands(run, "C6")


def _bands(run: xr.Dataset, group: str) -> Drawn:
    keys = [str(key) for key in run.key.values]
    moved = [f"predicate {i + 1}" for i in ORDER] + keys[len(ORDER) :]
    mean = run.mean("seed")
    return alt.hconcat(
        _heatmap(mean.ordered_heatmap.values, keys, f"{group}, in order"),
        _heatmap(mean.permuted_heatmap.values, moved, f"{group}, predicates permuted"),
    )


@figure(
    "lego.fig2.symmetric",
    source="Figures 2b and 5c",
    needs={"run": BeyondQuick(symmetric)},
    paper_shows="The same for S5.",
)
def two_bands_for_s5(run: xr.Dataset) -> Drawn:
    """The same for S5."""
    return _bands(run, "S5")


@figure(
    "lego.fig6",
    source="Figures 6 and 7",
    needs={"cyclic": BeyondQuick(cyclic), "symmetric": BeyondQuick(symmetric)},
    paper_shows=(
        "Lower attention at length 20 than at 10. On predicates it decays along the chain for S5 and "
        "is flat for C6; on answers it is the other way round."
    ),
)
def attention_along_the_chain(cyclic: xr.Dataset, symmetric: xr.Dataset) -> Drawn:
    """Attention on the clause that is needed, along chains twice and four times as long as in training:
    predicates left, answers right."""
    panels = []
    for target in ("predicate", "answer"):
        tables = []
        for group, run in (("C6", cyclic), ("S5", symmetric)):
            seen = at_end_of(run, 0).attention.sel(target=target)
            for length in (10, 20):
                rows = band(seen.sel(looked=length).isel(place=slice(0, length)), "attention")
                tables.append(rows.assign(place=rows.place / length, curve=f"{group}, length {length}"))
        across, up = (
            alt.X("place:Q", title="place in the chain"),
            alt.Y("attention:Q", scale=alt.Scale(domain=[0, 1])),
        )
        panels.append(
            points(
                pd.concat(tables),
                across,
                up,
                color=alt.Color("curve:N", title=None, legend=alt.Legend(orient="bottom", columns=2)),
            ).properties(title=f"on the {target}")
        )
    return alt.hconcat(*panels)


@figure(
    "lego.curriculum",
    source="Section 6.1, Definition B.3",
    needs={"run": one_step},
    paper_shows="No figure: features are learned one after another, in the order of their size at the start.",
)
def features_take_turns(run: xr.Dataset) -> Drawn:
    """Stage 1, one seed: the half sums V_psi of the neurons that win, over B, one curve a feature. They rise
    one after another."""
    action, first = action_of(run), run.isel(seed=0)
    sums = half_sums(first.V.values, action) / top_of(run)
    chosen = winners(sums[-1])
    rows = [
        {
            "time": t,
            "V over B": float(sums[i, j, chosen[j, y], y]),
            "feature": f"{y} to {j}",
            "low": 0.0,
            "high": 0.0,
        }
        for i, t in enumerate(first.time.values)
        for j in range(action.values)
        for y in range(action.values)
    ]
    table = pd.DataFrame(rows)
    across = alt.X("time:Q", scale=alt.Scale(type="log", nice=False))
    return alt.layer(
        alt.Chart(table[table.time > 0], width=420, height=230, title=f"{action}, q = 32, d = 256")
        .mark_line(strokeWidth=1)
        .encode(
            across,
            alt.Y("V over B:Q"),
            alt.Color("feature:N", legend=None),
            tooltip=["feature:N", "time:Q", "V over B:Q"],
        )
    )


@figure(
    "lego.concentration",
    source="Theorems 4.1 and 5.1",
    needs={"cyclic": cyclic_sizes, "symmetric": symmetric_sizes},
    paper_shows="No figure: epsilon falls as a power of d for C_n and stays a constant for S_n.",
)
def concentration_by_vocabulary(cyclic: xr.Dataset, symmetric: xr.Dataset) -> Drawn:
    """Attention that misses both clauses needed, by vocabulary size: stopped at the same relative loss (left)
    C6 sharpens and the symmetric group does not; at the same time d^2 (right) both do."""
    panels = []
    for rule, title in (("loss", "stopped at 1.1 times the least loss"), ("2", "stopped at time d²")):
        rows = [
            {"d": float(d), "epsilon": float(np.exp(value)), "group": str(action_of(runs))}
            for runs in (cyclic, symmetric)
            for d, value in zip(runs.vocabulary.values, missed_at(runs, rule))
            if np.isfinite(value)
        ]
        x, y = alt.X("d:Q", scale=alt.Scale(type="log")), alt.Y("epsilon:Q", scale=alt.Scale(type="log"))
        panels.append(
            points(
                pd.DataFrame(rows),
                x,
                y,
                color=alt.Color("group:N", title=None, legend=alt.Legend(orient="bottom")),
            ).properties(title=title)
        )
    return alt.hconcat(*panels)


@figure(
    "lego.stages",
    source="Section 6.2.1",
    needs={"runs": cyclic_sizes},
    paper_shows="No figure: the gap opens (stage 2.1), stays (2.2) and closes (2.3) while epsilon falls.",
)
def stages_of_attention(runs: xr.Dataset) -> Drawn:
    """C6, d = 1024: attention misses less and less; the lead of predicates over answers, the gap, opens and
    closes again."""
    run = runs.sel(vocabulary=1024.0).isel(seed=0)
    rows = [
        {"time": t, "value": float(v), "curve": name, "low": float(v), "high": float(v)}
        for name, key in (("epsilon", "missed"), ("gap", "gap"))
        for t, v in zip(run.time.values, run[key].values)
    ]
    return lines(
        pd.DataFrame(rows), "value", "curve", "attention on C6, Algorithm 1", ["epsilon", "gap"], x="time"
    )


@figure(
    "lego.recursion",
    source="Theorem 5.1",
    needs={"run": recursion},
    paper_shows=(
        "No figure: each stage of Algorithm 2 solves twice the length it was trained at, and a "
        "constant factor at most."
    ),
)
def recursion_doubles(run: xr.Dataset) -> Drawn:
    """Algorithm 2 with four numbers: chains right throughout, by length over training length, after each
    stage."""
    table = run.chain.isel(record=0).median("seed").rename("chain").to_dataframe()[["chain"]].reset_index()
    table = table.assign(stage=table.stages.map(lambda L: f"trained at {L}"))
    across = alt.X("times:Q", scale=alt.Scale(type="log", base=2), title="length over training length")
    order = [f"trained at {L}" for L in run.stages.values]
    return points(
        table,
        across,
        CHAINS,
        color=alt.Color("stage:N", title=None, sort=order, legend=alt.Legend(orient="bottom", columns=2)),
    )


@figure(
    "lego.stabilisers",
    source="beyond the paper",
    needs={"runs": BeyondQuick(stabilisers)},
    paper_shows="Nothing: the paper has stabilisers of 1 (C6) and 24 (S5) only.",
)
def reach_by_stabiliser(runs: xr.Dataset) -> Drawn:
    """The length at which every other chain is right, for S4 on cosets of larger and larger subgroups:
    against the stabiliser's order, and against the number of values. One point a seed."""
    rows = []
    for generators in runs.subgroup.values:
        action = Action("S4", "cosets", str(generators))
        for length in half_length(runs.sel(subgroup=generators).chain.isel(record=-1)):
            rows.append(
                {"stabiliser": action.stabiliser, "values": action.values, "half length": float(length)}
            )
    table = pd.DataFrame(rows)
    up = alt.Y("half length:Q", scale=alt.Scale(type="log"), title="length with every other chain right")
    panels = [
        alt.Chart(table, width=260, height=220)
        .mark_point(filled=True, size=60, opacity=0.6)
        .encode(
            alt.X(f"{x}:Q", scale=alt.Scale(type="log", base=2), title=title), up, tooltip=list(table.columns)
        )
        for x, title in (("stabiliser", "order of the stabiliser"), ("values", "number of values"))
    ]
    return alt.hconcat(*panels)
