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
from stagewise.lab.draw.figures import figure
from stagewise.lab.judge.statistics import slope
from stagewise.papers.cooccurrence.experiments import Descent, FlowToTimes, ThreeForms
from stagewise.papers.cooccurrence.limits import (
    margin_direction,
    seven_number_path,
    seven_numbers,
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
    scales_of,
    setting,
    speed,
    speed_of_G,
    time_all_right,
)
from stagewise.papers.cooccurrence.studies import experiment, lengths, samples, small_start, wide, widths

SCORES = {"S12": (1, 2), "S21": (2, 1), "S31": (3, 1), "S32": (3, 2), "S13": (1, 3)}
RATE = 0.01  # the paper's learning rate: an epoch is a time of 0.01


def _named(curves: dict[str, xr.DataArray], label: str) -> xr.DataArray:
    return xr.concat(list(curves.values()), pd.Index(list(curves), name=label))


def _over_time(flow: xr.Dataset, curves: xr.DataArray, unit: float, x: str) -> xr.DataArray:
    """Curves at common times from T1 / 300 to the first seed's T*, the axis in the unit given."""
    T1 = at_T1(flow).time.isel(seed=0).item()
    times = np.geomspace(T1 / 300, float(at_end(flow).time.min()), 60)
    return on_times(flow, curves, times).assign_coords(time=times * unit).rename(time=x)


def _phases(flow: xr.Dataset, unit: float, x: str) -> alt.Chart:
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
) -> alt.LayerChart:
    """Curves of a flow over time, with its phases."""
    unit, x = (1 / RATE, "epoch") if epochs else (speed(flow), "scaled time")
    table = band(_over_time(flow, _named(curves, "curve"), unit, x), y).dropna()
    drawn = lines(table, y, "curve", title, list(curves), x=x)
    return (_phases(flow, unit, x) + drawn).resolve_scale(color="independent")


def _row(*panels: alt.LayerChart) -> alt.HConcatChart:
    return alt.hconcat(*panels).resolve_scale(color="independent", strokeDash="independent")


@figure(
    "cooccurrence.fig1a",
    source="Figure 1a",
    needs={"flow": experiment},
    paper_shows="Attention scores over training: all flat in Phase 1; in Phase 2 those between the two "
    "target words rise and those of the "
    "common word for the targets fall.",
)
def scores_in_two_phases(flow: xr.Dataset) -> alt.LayerChart:
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
def losses_by_type(flow: xr.Dataset, small: xr.Dataset) -> alt.HConcatChart:
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

    return _row(
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
def values_and_their_speeds(flow: xr.Dataset, experiment: xr.Dataset) -> alt.HConcatChart:
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
    return _row(G + dashed, _panel(flow, speeds, "speed over A", "(b) speeds"), paths)


@figure(
    "cooccurrence.balance",
    source="Lemmas 4.3 to 4.5, Theorem F.8",
    needs={"flow": wide},
    paper_shows="No figure; the lemmas say that in Phase 2 these ratios stay within constants.",
)
def automatic_balance(flow: xr.Dataset) -> alt.HConcatChart:
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

    return _row(
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


def _trend(data: xr.DataArray, along: str) -> tuple[pd.DataFrame, str]:
    """Every seed's values, and the fitted slope with its interval in words."""
    found = slope("", np.log(data[along].values), np.log(data.transpose("seed", along).values)).measured[""]
    return data.to_dataframe("value").reset_index()[
        ["seed", along, "value"]
    ], f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _trends(curves: dict[str, xr.DataArray], along: str, title: str, name: str) -> alt.LayerChart:
    """Medians joined by lines, seeds as points, slopes in the legend."""
    tables, order = [], []
    for curve, data in curves.items():
        table, words = _trend(data, along)
        order.append(f"{curve}: {words}")
        tables.append(table.assign(curve=order[-1]))
    table = pd.concat(tables)
    x = alt.X(f"{along}:Q", scale=alt.Scale(type="log", nice=False, padding=12), title=name)
    y = alt.Y("value:Q", scale=alt.Scale(type="log"), title=None, axis=alt.Axis(format=".0e"))
    legend = alt.Legend(title=None, orient="bottom", columns=1, labelLimit=300)
    base = alt.Chart(table, title=title, width=260, height=220).encode(
        x=x, color=alt.Color("curve:N", sort=order, legend=legend)
    )
    seeds = base.mark_point(opacity=0.5, size=18).encode(y=y, tooltip=["curve", along, "seed", "value"])
    middle = base.mark_line().encode(y=alt.Y("median(value):Q", scale=alt.Scale(type="log"), title=None))
    return seeds + middle


def _signal(flow: xr.Dataset) -> xr.DataArray:
    """The mean size of the changes of S12 and S21 at T*."""
    moved = change(flow).isel(record=-1)
    return (entry(moved, 1, 2) + entry(moved, 2, 1)) / 2


@figure(
    "cooccurrence.scaling",
    source="Theorems 3.1 and 3.3",
    needs={"widths": widths, "samples": samples, "lengths": lengths},
    paper_shows=(
        "No figure; the theorems say T1 ~ 1/m; changes by T1 of 1/m, m^-1.5 and m^-2; and C ~ m^-1.5 "
        "/ L^2 at the end."
    ),
)
def trends_in_the_sizes(widths: xr.Dataset, samples: xr.Dataset, lengths: xr.Dataset) -> alt.HConcatChart:
    """Points are seeds, lines medians; the legend gives fitted slopes with their 95 % intervals. (a) The time
    from which on all samples are right, and the largest changes by T1, against the width. (b) The change of
    S12 and S21 at T* and the largest change with a random token. (c) The same against the length, at a fixed
    number of samples: steeper than 1/L^2, because longer sequences have more private tokens. (d) Test loss
    over training loss against the number of samples."""
    there = at_T1(widths)
    early = {
        "T1 as found": time_all_right(widths),
        "values": there.CV_change,
        "scores": there.S_change,
        "keys": there.CK_change,
    }
    end = at_end(samples)
    return alt.vconcat(
        _row(
            _trends(early, "width", "(a) end of Phase 1", "width m"),
            _trends(
                {"C12": _signal(widths), "random": at_end(widths).S_change_random},
                "width",
                "(b) changes of scores at T*",
                "width m",
            ),
        ),
        _row(
            _trends({"C12": _signal(lengths)}, "length", "(c) changes of scores at T*", "length L"),
            _trends(
                {"test over training loss": end.test_loss / end.loss},
                "samples",
                "(d) generalisation at T*",
                "samples n",
            ),
        ),
    )


@figure(
    "cooccurrence.limit7",
    source="beyond the paper",
    needs={"samples": samples, "lengths": lengths},
    paper_shows="No figure: the seven-number model is ours.",
)
def seven_numbers_beside_the_flow(samples: xr.Dataset, lengths: xr.Dataset) -> alt.Chart:
    """The changes of S12 and S31 at T* and the scaled time T*, measured over predicted by the seven-number
    model, which has no fitted constant: one is perfect. Each point is a seed."""
    rows = []
    for study, along in ((samples, "samples"), (lengths, "length")):
        s0, _ = scales_of(study)
        for cell in study[along].values:
            one = study.sel({along: cell})
            n, L = (
                (cell, setting(study, "task.length"))
                if along == "samples"
                else (setting(study, "task.samples"), cell)
            )
            said, A, m = (
                seven_numbers(int(n), int(L), setting(study, "target_loss")),
                speed(one),
                setting(study, "width"),
            )
            s0L = s0 * np.sqrt(setting(study, "task.length") / L)  # Condition 1: s0 falls with the length
            unit, moved, end = s0L**2 * np.sqrt(m) / (A * L), change(one).isel(record=-1), at_end(one)
            measured = {
                "C12": entry(moved, 1, 2) / unit / said["c12"],
                "C31": entry(moved, 3, 1) / unit / said["c31"],
                "T*": end.time * A / said["scaled_time"],
            }
            rows += [
                {"case": f"n={n}, L={L}", "quantity": q, "seed": int(s), "ratio": round(float(v), 4)}
                for q, values in measured.items()
                for s, v in zip(one.seed.values, values.values)
            ]
    table = pd.DataFrame(rows).drop_duplicates()
    marks = (
        alt.Chart(table, width=320, height=220)
        .mark_point()
        .encode(
            x=alt.X("case:N", title=None, sort=None, axis=alt.Axis(labelAngle=-30)),
            y=alt.Y("ratio:Q", title="measured over predicted", scale=alt.Scale(zero=False)),
            color=alt.Color("quantity:N", title=None),
            xOffset="quantity:N",
            tooltip=list(table.columns),
        )
    )
    return marks + alt.Chart(pd.DataFrame({"ratio": [1.0]})).mark_rule(strokeDash=[4, 4]).encode(y="ratio:Q")


@figure(
    "cooccurrence.forms",
    source="Appendices A to C",
    needs={"forms": ThreeForms.plan(), "descent": Descent.plan(), "flow": FlowToTimes.plan()},
    paper_shows=(
        "No figure; the closed system is said to govern the flow, and the experiment uses gradient "
        "descent in its place."
    ),
)
def closed_weights_and_descent(forms: xr.Dataset, descent: xr.Dataset, flow: xr.Dataset) -> alt.HConcatChart:
    """Left: the largest relative difference between the flow on the weights and the two closed systems, over
    Runge-Kutta steps: rounding and the solver's errors only, and the same for both. Right: the loss of the
    experiment by gradient descent (lines) and by gradient flow (points at the solver's steps) for three
    seeds."""
    plain = forms.G.sel(form="weights", drop=True)
    off = (
        (abs(forms.G.sel(form=["six kinds", "compact"]) - plain).max("word") / abs(plain).max())
        .max("seed")
        .clip(1e-17)
    )
    table = off.assign_coords(step=forms.step).to_dataframe("difference").reset_index()
    left = (
        alt.Chart(table[table.step > 0], title="(a) closed systems against weights", width=280, height=220)
        .mark_line()
        .encode(
            alt.X("step:Q", scale=alt.Scale(type="log", nice=False), title="step"),
            alt.Y(
                "difference:Q",
                scale=alt.Scale(type="log"),
                axis=alt.Axis(format=".0e"),
                title="relative difference of G",
            ),
            alt.Color("form:N", title=None, legend=alt.Legend(orient="bottom")),
            tooltip=["form", "step", "difference"],
        )
    )
    seeds = descent.seed.values[:3]
    stepped = (
        descent.loss.sel(seed=seeds)
        .assign_coords(time=descent.step * setting(descent, "learning_rate"))
        .to_dataframe()
        .reset_index()
    )
    solved = pd.concat(
        [
            pd.DataFrame(
                {"seed": s, "time": flow.time.sel(seed=s).values, "loss": flow.loss.sel(seed=s).values}
            )
            for s in seeds
        ]
    ).drop_duplicates()
    x, y = (
        alt.X(
            "time:Q",
            scale=alt.Scale(type="log", nice=False, domain=[0.01, float(stepped.time.max())], clamp=True),
        ),
        alt.Y("loss:Q", scale=alt.Scale(type="log")),
    )
    colour = alt.Color("seed:N", legend=alt.Legend(orient="bottom"))
    by_steps = alt.Chart(
        stepped[stepped.time >= 0.01][["seed", "time", "loss"]],
        title="(b) descent (lines) and flow (points)",
        width=280,
        height=220,
    )
    right = by_steps.mark_line().encode(x, y, colour) + alt.Chart(solved[solved.time >= 0.01]).mark_point(
        size=22
    ).encode(x, y, colour)
    return _row(left, right)
