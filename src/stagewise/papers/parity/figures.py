"""The paper's figures, drawn from our runs: medians over seeds as lines, the middle 80 % of seeds as
bands."""

from __future__ import annotations

import altair as alt
import pandas as pd
import xarray as xr

from stagewise.lab.draw.charts import band, lines, points
from stagewise.lab.draw.figures import Drawn, figure
from stagewise.lab.draw.phase_diagram import heat
from stagewise.lab.spec.settings import setting
from stagewise.lab.spec.study import BeyondQuick
from stagewise.papers.parity.readings import at_best_rate, samples_needed, solved
from stagewise.papers.parity.studies.theory import dimensions, phase, proofs
from stagewise.papers.parity.studies.training import (
    again_deep,
    chain_lengths,
    chained_curves,
    full_width,
    grid,
    growth,
    one_hot,
    one_hot_small,
    plain_curves,
    set_sizes,
    two_layers,
)

ARMS = {True: "with a chain of thought", False: "without"}


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _samples_axis(title: str = "samples") -> alt.Y:
    return alt.Y("samples:Q", scale=alt.Scale(type="log"), title=title)


def _needed(runs: xr.Dataset) -> pd.DataFrame:
    """Medians at the best rate, by arm and k; open points are those that most seeds did not reach."""
    needed, done = at_best_rate(samples_needed(runs)), solved(runs)
    done = done.any("learning_rate") if "learning_rate" in done.dims else done
    table = needed.median("seed").rename("samples").to_dataframe()[["samples"]].reset_index()
    reached = (done.mean("seed") > 0.5).rename("reached").to_dataframe()[["reached"]].reset_index()
    table = table.merge(reached)
    return table.assign(
        arm=table.chain_of_thought.map(ARMS),
        reached=table.reached.map({True: "yes", False: "no: at least this many"}),
    )


def _growth(table: pd.DataFrame, title: str) -> Drawn:
    across = alt.X("secret_size:O", title="secret bits k", axis=alt.Axis(labelAngle=0))
    joined = points(
        table,
        across,
        _samples_axis("samples to all answers right"),
        color=alt.Color("arm:N", title=None, legend=alt.Legend(orient="bottom")),
    )
    marks = (
        alt.Chart(table)
        .mark_point(size=70, filled=True)
        .encode(
            across,
            _samples_axis("samples to all answers right"),
            alt.Color("arm:N"),
            shape=alt.Shape(
                "reached:N",
                title="reached by most seeds",
                scale=alt.Scale(domain=["yes", "no: at least this many"], range=["circle", "triangle-up"]),
                legend=alt.Legend(orient="bottom"),
            ),
        )
    )
    return (joined + marks).properties(title=title)


@figure(
    "parity.fig2b",
    source="Figure 2b",
    needs={"runs": growth},
    paper_shows="One layer, one head: without a chain of thought samples grow exponentially with k and k = 4 "
    "exceeds the budget; with one they stay "
    "near 10^4.",
)
def samples_by_secret_size(runs: xr.Dataset) -> Drawn:
    """Samples until every validation answer is right, for one layer of one head: the median over seeds at the
    best of the learning rates. Without a chain of thought every further secret bit multiplies them; with one
    they hardly grow."""
    return _growth(_needed(runs), f"{setting(runs, 'task.bits')} bits, width {setting(runs, 'gpt.width')}")


@figure(
    "parity.fig1a",
    source="Figures 1a, 2a and 2c",
    needs={"runs": BeyondQuick(grid)},
    paper_shows="The same for one to four layers and heads; four layers of four heads in Figure 1a.",
)
def samples_by_layers_and_heads(runs: xr.Dataset) -> Drawn:
    """The same for one and two layers of one and two heads."""
    panels = [
        _growth(_needed(runs.sel(layers=l, heads=h)), f"{_counted(l, 'layer')}, {_counted(h, 'head')}")
        for l in runs.layers.values
        for h in runs.heads.values
    ]
    return alt.vconcat(*(alt.hconcat(*panels[i : i + 2]) for i in range(0, len(panels), 2)))


def _over_samples(run: xr.Dataset, curves: dict[str, xr.DataArray]) -> pd.DataFrame:
    joined = xr.concat(list(curves.values()), pd.Index(list(curves), name="curve"))
    table = band(joined.assign_coords(samples=joined.step * setting(run, "batch")), "value")
    return table.dropna(subset=["value"])


def _accuracy_and_entropy(run: xr.Dataset, title: str, **more: xr.DataArray) -> Drawn:
    entropy = run.entropy.sel(places="all")
    curves = (
        {"accuracy": run.accuracy}
        | {f"entropy, layer {l}": entropy.sel(layer=l).mean("head") for l in run.layer.values}
        | more
    )
    curves = {
        name: curve.drop_vars([c for c in ("layer", "places", "head") if c in curve.coords])
        for name, curve in curves.items()
    }
    return lines(_over_samples(run, curves), "value", "curve", title, list(curves), x="samples")


@figure(
    "parity.fig1b",
    source="Figure 1b",
    needs={"chained": chained_curves, "plain": plain_curves},
    paper_shows=(
        "Accuracy jumps at the very time at which the normalised entropy of first-layer attention "
        "falls, with and without a chain of thought."
    ),
)
def accuracy_and_entropy(chained: xr.Dataset, plain: xr.Dataset) -> Drawn:
    """Exact match on validation inputs, and the normalised entropy of the paper (the least over all places,
    mean over heads). With a chain of thought entropy falls first and accuracy follows. Without one, seeds
    differ: some heads become sparse on part of the secret and stay there."""
    left = _accuracy_and_entropy(
        chained, f"with a chain of thought, k = {setting(chained, 'task.secret_size')}"
    )
    return alt.hconcat(
        left, _accuracy_and_entropy(plain, f"without, k = {setting(plain, 'task.secret_size')}")
    ).resolve_scale(color="shared")


@figure(
    "parity.full_width",
    source="Figure 1b, one layer and one head",
    needs={"run": full_width},
    paper_shows="(Of one layer the paper gives sample counts only.)",
)
def at_the_papers_width(run: xr.Dataset) -> Drawn:
    """One seed at the paper's sizes (width 720, 30 bits, batch 512), one layer of one head, two secret bits,
    without a chain of thought: the jump, and attention that finds the two bits."""
    mass = run.mass.sel(layer=1, head=1, answer=1).drop_vars("answer")
    return _accuracy_and_entropy(
        run, "width 720, n = 30, k = 2", **{"attention on the secret": mass}
    ).properties(width=420)


def _map(run: xr.Dataset, layer: int, head: int, title: str) -> Drawn:
    """Where the answers of seed 0 look, mean over inputs; crosses mark the bits they need."""
    seen = run.looked_at.isel(seed=0).sel(layer=layer, head=head)
    table = (
        seen.rename("attention")
        .to_dataframe()[["attention"]]
        .reset_index()
        .assign(attention=lambda t: t.attention.round(4))
    )
    needed = run.secret_bits.isel(seed=0).rename("needed").to_dataframe()[["needed"]].reset_index()
    rows, columns = (
        alt.Y("answer:O", title="step of the chain of thought"),
        alt.X("bit:O", title="input bit", axis=alt.Axis(labelOverlap=True)),
    )
    shade = alt.Color("attention:Q", scale=alt.Scale(scheme="blues", domain=[0, 1]))
    heat = (
        alt.Chart(table, title=title, width=320, height=200)
        .mark_rect()
        .encode(columns, rows, shade, tooltip=["answer", "bit", "attention"])
    )
    return heat + alt.Chart(needed[needed.needed > 0]).mark_point(
        shape="cross", size=18, color="#D55E00", strokeWidth=1
    ).encode(columns, rows)


@figure(
    "parity.fig3b",
    source="Figure 3b",
    needs={"run": one_hot_small},
    paper_shows=(
        "A heat map with one dark cell a row: the i-th step of the chain of thought attends to the "
        "i-th secret bit."
    ),
)
def where_steps_look(run: xr.Dataset) -> Drawn:
    """Attention of the chain of thought's steps to the input bits in seed 0 of a narrow model; orange crosses
    are the secret bits that each step needs."""
    return _map(
        run,
        1,
        1,
        f"width {setting(run, 'gpt.width')}, n = {setting(run, 'task.bits')}, k = "
        f"{setting(run, 'task.secret_size')}",
    )


@figure(
    "parity.fig3b.wide",
    source="Figure 3b",
    needs={"run": BeyondQuick(one_hot)},
    paper_shows="The same, at this width.",
)
def where_steps_look_at_full_width(run: xr.Dataset) -> Drawn:
    """The same at the paper's width."""
    return _map(
        run,
        1,
        1,
        f"width {setting(run, 'gpt.width')}, n = {setting(run, 'task.bits')}, k = "
        f"{setting(run, 'task.secret_size')}",
    )


@figure(
    "parity.fig8",
    source="Figure 8",
    needs={"run": BeyondQuick(two_layers)},
    paper_shows=(
        "Two layers of two heads: the first layer's heads have one-hot rows that together cover the "
        "secret, the second layer is smooth."
    ),
)
def where_two_layers_look(run: xr.Dataset) -> Drawn:
    """Attention of all heads of two layers in seed 0; orange crosses are the secret bits that each step
    needs."""
    panels = [_map(run, l, h, f"layer {l}, head {h}") for l in (1, 2) for h in (1, 2)]
    return alt.vconcat(alt.hconcat(*panels[:2]), alt.hconcat(*panels[2:]))


@figure(
    "parity.fig3a",
    source="Figure 3a",
    needs={"runs": BeyondQuick(chain_lengths)},
    paper_shows="Samples grow about linearly with k, from 20 to 100 of 100 bits.",
)
def samples_by_chain_length(runs: xr.Dataset) -> Drawn:
    """Samples to an exact match of 0.995 with a chain of thought, median over seeds."""
    needed = samples_needed(runs)
    table = pd.DataFrame({"k": needed.secret_size.values, "samples": needed.median("seed").values})
    return points(table, alt.X("k:Q", title="secret bits k"), alt.Y("samples:Q", scale=alt.Scale(zero=True)))


@figure(
    "parity.fig5",
    source="Figures 5, 10 and 11",
    needs={"runs": BeyondQuick(set_sizes), "deep": BeyondQuick(again_deep)},
    paper_shows=(
        "Few inputs, used again and again: after a plateau accuracy jumps to one while entropy "
        "falls. A million inputs: nothing happens."
    ),
)
def many_passes(runs: xr.Dataset, deep: xr.Dataset) -> Drawn:
    """Accuracy on training and validation inputs, and first-layer entropy, for training sets of different
    sizes; below, two layers of three heads."""

    def panel(all_runs: xr.Dataset, size: int, what: str) -> Drawn:
        run = all_runs.sel(training_set=size)
        return _accuracy_and_entropy(
            run, f"{what}, {size:,} inputs", **{"accuracy in training": run.training_accuracy}
        )

    rows = [
        [panel(runs, n, _counted(setting(runs, "gpt.layers"), "layer")) for n in runs.training_set.values],
        [panel(deep, n, "2 layers") for n in deep.training_set.values],
    ]
    return alt.vconcat(
        *(alt.hconcat(*part) for row in rows for part in (row[:2], row[2:]) if part)
    ).resolve_scale(color="shared")


@figure(
    "parity.three_steps",
    source="Theorem 3, Section 3.2",
    needs={"run": proofs},
    paper_shows="(A proof in three steps: neurons, then attention, then outputs.)",
)
def three_steps_of_descent(run: xr.Dataset) -> Drawn:
    """Before training and after each step: attention on the secret (the least over answers) jumps in the
    second, accuracy in the third."""
    shown = {"attention on the secret": run.mass.min("answer"), "accuracy": run.accuracy}
    table = pd.concat(
        [
            pd.DataFrame({"step": run.step.values, "value": curve.median("seed").values, "curve": name})
            for name, curve in shown.items()
        ]
    )
    x = alt.X("step:O", title="steps of gradient descent", axis=alt.Axis(labelAngle=0))
    left = points(
        table,
        x,
        alt.Y("value:Q", title="median over seeds"),
        color=alt.Color("curve:N", title=None, legend=alt.Legend(orient="bottom")),
    )
    scores = pd.concat(
        [
            pd.DataFrame(
                {
                    "answer": run.answer.values,
                    "score": run[name].isel(record=2).median("seed").values,
                    "place": place,
                }
            )
            for name, place in (("on_score", "on the secret (least)"), ("off_score", "elsewhere (most)"))
        ]
    )
    right = (
        alt.Chart(scores, width=220, height=220, title="scores after two steps")
        .mark_bar()
        .encode(
            alt.X("place:N", title=None, axis=alt.Axis(labels=False)),
            alt.Y("score:Q"),
            alt.Color("place:N", title=None, legend=alt.Legend(orient="bottom")),
            column=alt.Column("answer:O", header=alt.Header(titleOrient="bottom", labelOrient="bottom")),
        )
    )
    return alt.hconcat(left, right.properties(width=60)).resolve_scale(color="independent")


@figure(
    "parity.construction",
    source="Theorem 1, Lemma 4",
    needs={"runs": dimensions},
    paper_shows="(A construction; Lemma 4 bounds the response to other bits by 1/2.)",
)
def construction_by_dimension(runs: xr.Dataset) -> Drawn:
    """Largest response of V to a bit that is not secret, as embeddings get longer: it falls like d^-1/2.
    Where it is below 1 (dashed) the explicit weights compute the parity without an error."""
    shown = {
        "largest response to other bits": runs.V_elsewhere.max("seed"),
        "accuracy (worst seed)": runs.accuracy.min("seed"),
    }
    table = pd.concat(
        [
            pd.DataFrame({"d": runs.dimension.values, "value": curve.squeeze().values, "curve": name})
            for name, curve in shown.items()
        ]
    )
    x = alt.X("d:Q", scale=alt.Scale(type="log"), title="dimension d (k = 8)")
    rule = alt.Chart(pd.DataFrame({"y": [1.0]})).mark_rule(strokeDash=[4, 4], color="#555").encode(y="y:Q")
    return (
        points(
            table,
            x,
            alt.Y("value:Q", title=None),
            color=alt.Color("curve:N", title=None, legend=alt.Legend(orient="bottom")),
        )
        + rule
    )


@figure(
    "parity.phase",
    source="Theorem 3, beyond the paper",
    needs={"runs": BeyondQuick(phase)},
    paper_shows="Nothing: the theorem asks for enough dimensions and neurons.",
)
def where_three_steps_are_enough(runs: xr.Dataset) -> Drawn:
    """A phase diagram of the three steps: the share of seeds with every answer right, by the dimension of
    embeddings and the number of neurons (of 2m), with 2000 samples a step."""
    right = (
        (runs.accuracy.isel(record=-1) >= 1)
        .mean("seed")
        .expand_dims("seed")
        .rename("share")
        .transpose("dimension", "neurons", "seed")
    )
    return heat(right, "dimension", "neurons", "share of seeds with every answer right")
