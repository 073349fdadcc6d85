"""The paper's figure and ours, drawn from our runs: medians over seeds as lines, the middle 80 % of seeds as
bands.

Time is scaled, A t with A = s1^2 m m1, unless the axis says epochs. The phases are those that the lab found:
T_0.5 where the balance of Lemma 4.3 begins, T1 = 15 / A, T* where the loss reaches its target."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

from stagewise.lab.draw.charts import band, lines, on_times, shaded
from stagewise.lab.draw.figures import Drawn, figure
from stagewise.papers.cooccurrence.limits import (
    margin_direction,
    seven_number_path,
    three_numbers,
)
from stagewise.papers.cooccurrence.readings import (
    at_end,
    at_T1,
    change,
    entry,
    errors,
    half_time,
    phase,
    setting,
    speed,
    speed_of_G,
)
from stagewise.papers.cooccurrence.studies import experiment, small_start, wide

SCORES = {"S12": (1, 2), "S21": (2, 1), "S31": (3, 1), "S32": (3, 2), "S13": (1, 3)}
RATE = 0.01  # the paper's learning rate: an epoch is a time of 0.01


def _named(curves: dict[str, xr.DataArray], label: str) -> xr.DataArray:
    return xr.concat(list(curves.values()), pd.Index(list(curves), name=label))


def _over_time(flow: xr.Dataset, curves: xr.DataArray, unit: float, x: str) -> xr.DataArray:
    """Curves at common times from T1 / 300 to the first seed's T*, the axis in the unit given."""
    T1 = at_T1(flow).time.isel(seed=0).item()
    times = np.geomspace(T1 / 300, float(at_end(flow).time.min()), 60)
    return on_times(flow, curves, times).assign_coords(time=times * unit).rename(time=x)


def _phases(flow: xr.Dataset, unit: float, x: str) -> Drawn:
    """The phases as stripes, to the first seed's T*. T_0.5 is a median over seeds; where it is not before T1,
    Phase 1 is one stripe."""
    T1, end = at_T1(flow).time.isel(seed=0).item(), float(at_end(flow).time.min())
    half = min(float(half_time(phase(flow, "1")).fillna(np.inf).median()), T1)
    stripes = {
        "Phase 1": (T1 / 300 * unit, half * unit),
        "T0.5": (half * unit, T1 * unit),
        "Phase 2": (T1 * unit, end * unit),
    }
    axis = alt.X("from:Q", scale=alt.Scale(type="log", nice=False), title=x)
    return shaded(stripes, axis)


def _panel(
    flow: xr.Dataset, curves: dict[str, xr.DataArray], y: str, title: str, epochs: bool = False
) -> Drawn:
    """Curves of a flow over time, with its phases."""
    unit, x = (1 / RATE, "epoch") if epochs else (speed(flow), "scaled time")
    table = band(_over_time(flow, _named(curves, "curve"), unit, x), y).dropna()
    drawn = lines(table, y, "curve", title, list(curves), x=x)
    return (_phases(flow, unit, x) + drawn).resolve_scale(color="independent")


def row_of_panels(*panels: Drawn) -> Drawn:
    return alt.hconcat(*panels).resolve_scale(color="independent", strokeDash="independent")


@figure(
    "cooccurrence.fig1a",
    source="Figure 1a",
    needs={"flow": experiment},
    paper_shows="Attention scores over training: all flat in Phase 1; in Phase 2 those between the two "
    "target words rise and those of the "
    "common word for the targets fall.",
)
def scores_in_two_phases(flow: xr.Dataset) -> Drawn:
    """Scores less their start in the paper's experiment (Kaiming start, shared random tokens), by gradient
    flow with an epoch as a time of 0.01. They hardly move while the value path aligns; then S12 and S21 rise
    and S31 and S32 fall, while S13, the target as key for the common word, stays small. S12 is key mu1, query
    mu2."""
    moved = change(flow)
    return _panel(
        flow, {name: entry(moved, *pair) for name, pair in SCORES.items()}, "change of score", "", epochs=True
    ).properties(width=480)


@figure(
    "cooccurrence.fig1b",
    source="Figure 1b",
    needs={"flow": experiment, "small": small_start},
    paper_shows="The losses of the four types: type 1 falls from the start, types 2 and 3 first rise and "
    "then fall, and in Phase 2 all go to "
    "zero.",
)
def losses_by_type(flow: xr.Dataset, small: xr.Dataset) -> Drawn:
    """Left: the paper's experiment. Its first outputs are of order one, and their noise hides the rise of
    types 2 and 3 in about every other seed. Right: a small start (c0 = 0.1), as the proofs assume: both rise
    until the common word's G has come down."""

    def losses(flow, title, epochs):
        return _panel(
            flow,
            {f"type {k}": flow.type_loss.sel(type=k, drop=True) for k in range(1, 5)},
            "loss",
            title,
            epochs,
        )

    return row_of_panels(
        losses(flow, "(a) the experiment, Kaiming start", True),
        losses(small, "(b) from a small start", False),
    )


@figure(
    "cooccurrence.values",
    source="Section 4, Theorems 3.1 and 3.2",
    needs={"flow": wide, "experiment": experiment},
    paper_shows="No figure; the text says that G of the targets rises first, that the common word's G then "
    "falls faster than either rises, and "
    "that the path through W is negligible.",
)
def values_and_their_speeds(flow: xr.Dataset, experiment: xr.Dataset) -> Drawn:
    """Left: G of the three special words at m = 2048, beside the seven-number model (black, dashed) and the
    three-number model of many samples (dotted), from which private random tokens part in Phase 2. Middle:
    their speeds over A; -dG3 overtakes dG1 at T_0.5. Right: how much of dG goes through W, at m = 2048 and in
    the paper's experiment, where it is the larger part."""
    words = [f"G{i}" for i in (1, 2, 3)]
    G = _panel(
        flow, {name: flow.G.isel(word=i, drop=True) for i, name in enumerate(words)}, "G", "(a) G at m = 2048"
    )
    few, path = seven_number_path(
        setting(flow, "task.samples"), setting(flow, "task.length"), setting(flow, "target_loss")
    )
    many, said = three_numbers(few[-1])

    def predicted(times, curves, dash):
        kept = times > at_T1(flow).time.isel(seed=0).item() * speed(flow) / 300
        table = pd.concat(
            [
                pd.DataFrame({"t": times[kept], "G": curve[kept].round(4), "which": i})
                for i, curve in enumerate(curves)
            ]
        )
        x = alt.X("t:Q", scale=alt.Scale(type="log"))
        return (
            alt.Chart(table)
            .mark_line(strokeDash=dash, color="black", strokeWidth=1.5)
            .encode(x, alt.Y("G:Q"), detail="which:N")
        )

    dashed = predicted(few, path[:2], [6, 3]) + predicted(many, (said["G1"], said["G3"]), [1, 3])
    moving = speed_of_G(flow) / speed(flow)
    speeds = {
        "dG1": moving.isel(word=0, drop=True),
        "dG2": moving.isel(word=1, drop=True),
        "-dG3": -moving.isel(word=2, drop=True),
    }

    def share(flow):
        return (abs(flow.dG_neurons) / (abs(flow.dG_neurons) + abs(flow.dG_values))).isel(word=0, drop=True)

    parts = [
        band(
            _over_time(one, _named({name: share(one)}, "curve"), speed(one), "scaled time"), "share through W"
        )
        for name, one in (("m = 2048, m1 = 64", flow), ("experiment, m = 128, m1 = 256", experiment))
    ]
    order = ["m = 2048, m1 = 64", "experiment, m = 128, m1 = 256"]
    paths = lines(
        pd.concat(parts).dropna(),
        "share through W",
        "curve",
        "(c) share of dG1 through W",
        order,
        x="scaled time",
    )
    return row_of_panels(G + dashed, _panel(flow, speeds, "speed over A", "(b) speeds"), paths)


@figure(
    "cooccurrence.balance",
    source="Lemmas 4.3 to 4.5, Theorem F.8",
    needs={"flow": wide},
    paper_shows="No figure; the lemmas say that in Phase 2 these ratios stay within constants.",
)
def automatic_balance(flow: xr.Dataset) -> Drawn:
    """Left: -dG3/dG1 and S2/S1 beside the values of the max-margin direction with private random tokens
    (dashed). Middle: the three ratios of Lemma 4.5. Right: what 1/loss gained since T1 over the scaled time
    since, beside the predicted slope."""
    said = margin_direction(setting(flow, "task.samples"), setting(flow, "task.length"))
    moving, (one, two, three, four) = speed_of_G(flow), errors(flow)
    total = one + two + three + four
    ratios = {
        "-dG3/dG1": -moving.isel(word=2, drop=True) / moving.isel(word=0, drop=True),
        "S2/S1": two / one,
        "S3/S2": three / two,
    }
    sums = {
        "S/(S2+S3+S4-S1)": total / (two + three + four - one),
        "S/(S1-S2)": total / (one - two),
        "S/(S1-S3)": total / (one - three),
    }
    first = at_T1(flow)
    late = flow.time > 1.2 * first.time
    rate = ((1 / flow.loss - 1 / first.loss) / ((flow.time - first.time) * speed(flow))).where(late)

    def ruled(chart, *values):
        rule = alt.Chart(pd.DataFrame({"value": values})).mark_rule(strokeDash=[4, 4]).encode(y="value:Q")
        return chart + rule

    return row_of_panels(
        ruled(
            _panel(
                flow, {n: c.where(abs(c) < 3) for n, c in ratios.items()}, "ratio", "(a) speeds and errors"
            ),
            said["balance"],
            said["errors"],
        ),
        _panel(
            flow,
            {n: c.where((c > 0) & (c < 15)) for n, c in sums.items()},
            "ratio",
            "(b) all errors over differences",
        ),
        ruled(
            _panel(flow, {"measured": rate}, "slope of 1/loss", "(c) 1/loss grows linearly"), said["slope"]
        ),
    )
