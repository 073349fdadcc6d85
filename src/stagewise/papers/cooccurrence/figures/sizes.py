"""Trends in width, samples and length, seven numbers beside the flow, and the forms of one flow."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

from stagewise.lab.draw.figures import Drawn, figure
from stagewise.lab.judge.statistics import slope
from stagewise.papers.cooccurrence.experiments import Descent, FlowToTimes, ThreeForms
from stagewise.papers.cooccurrence.figures.phases import row_of_panels
from stagewise.papers.cooccurrence.limits import (
    seven_numbers,
)
from stagewise.papers.cooccurrence.readings import (
    at_end,
    at_T1,
    change,
    entry,
    scales_of,
    setting,
    speed,
    time_all_right,
)
from stagewise.papers.cooccurrence.studies import lengths, samples, widths


def _trend(data: xr.DataArray, along: str) -> tuple[pd.DataFrame, str]:
    """Every seed's values, and the fitted slope with its interval in words."""
    found = slope("", np.log(data[along].values), np.log(data.transpose("seed", along).values)).measured[""]
    table = data.to_dataframe("value").reset_index().loc[:, ["seed", along, "value"]]
    return table, f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _trends(curves: dict[str, xr.DataArray], along: str, title: str, name: str) -> Drawn:
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
def trends_in_the_sizes(widths: xr.Dataset, samples: xr.Dataset, lengths: xr.Dataset) -> Drawn:
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
        row_of_panels(
            _trends(early, "width", "(a) end of Phase 1", "width m"),
            _trends(
                {"C12": _signal(widths), "random": at_end(widths).S_change_random},
                "width",
                "(b) changes of scores at T*",
                "width m",
            ),
        ),
        row_of_panels(
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
def seven_numbers_beside_the_flow(samples: xr.Dataset, lengths: xr.Dataset) -> Drawn:
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
def closed_weights_and_descent(forms: xr.Dataset, descent: xr.Dataset, flow: xr.Dataset) -> Drawn:
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
    return row_of_panels(left, right)
