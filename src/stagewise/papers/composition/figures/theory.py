"""The paper's figures, drawn from our runs, and what lies behind them."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

from stagewise.lab.draw.charts import band, points
from stagewise.lab.draw.figures import Drawn, figure
from stagewise.lab.draw.phase_diagram import heat
from stagewise.lab.spec.settings import setting
from stagewise.papers.composition.readings import least_sizes
from stagewise.papers.composition.studies import (
    by_levels,
    by_levels_all,
    curriculum,
    mixture,
    phase,
)

UPRIGHT = alt.Axis(labelAngle=0)
COLUMNS = alt.Legend(orient="bottom", columns=5, title="hops")


def _staircase(run: xr.Dataset, title: str, stages: str) -> Drawn:
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
    return chance(run) + lines


def chance(run: xr.Dataset) -> Drawn:
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
def curriculum_staircase(run: xr.Dataset) -> Drawn:
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
def mixture_staircase(run: xr.Dataset) -> Drawn:
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
def implicit_curriculum(run: xr.Dataset) -> Drawn:
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


def _pattern(values: np.ndarray, title: str) -> Drawn:
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
def learned_beside_built(run: xr.Dataset) -> Drawn:
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
def samples_needed(one: xr.Dataset, every: xr.Dataset) -> Drawn:
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
def samples_by_levels_and_symbols(runs: xr.Dataset) -> Drawn:
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
