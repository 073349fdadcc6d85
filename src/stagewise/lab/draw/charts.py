"""Parts of charts that papers share: medians with bands, points on a trend, shaded stages."""

from __future__ import annotations

import warnings
from functools import cache

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

from stagewise.lab.draw.figures import Drawn, Spec, styled
from stagewise.lab.judge.statistics import Verdict

STAGE_TINTS = ("#f2e6c8", "#e0ecd8", "#dde6f2", "#efe0ea")


def band(curves: xr.DataArray, name: str) -> pd.DataFrame:
    """Return the median and the middle 80 % over seeds, in one row for each record and label."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # where no seed has a value, the table has none
        quantiles = curves.quantile([0.1, 0.5, 0.9], "seed")
    parts = [
        quantiles.sel(quantile=q, drop=True).rename(n) for q, n in ((0.1, "low"), (0.5, name), (0.9, "high"))
    ]
    table = xr.merge(parts).to_dataframe().reset_index()
    return table.assign(
        **{column: table[column].map(lambda v: float(f"{v:.5g}")) for column in ("low", name, "high")}
    )


def told(*fields: str) -> list[alt.Tooltip]:
    """Return what is shown when the pointer is over a mark, with numbers to four digits."""
    return [
        alt.Tooltip(field, format=".4~g") if field.endswith(":Q") else alt.Tooltip(field) for field in fields
    ]


def touch(base: alt.Chart, *encodings, tooltip: list[alt.Tooltip]) -> alt.Chart:
    """Draw invisible points that are easily hit, so that hovering over a line shows its values."""
    return base.mark_point(filled=True, opacity=0, size=250).encode(*encodings, tooltip=tooltip)


def kept_records(curves: np.ndarray, most: int) -> np.ndarray:
    """Return which records of curves [record, curve] to keep, so that at most `most` are left and no jump is
    lost. The first and the last are always kept.

    The records are evenly spaced along a path. From one record to the next, the path grows by the changes of
    all curves, each divided by its range, and by an equal step for every record."""
    curves = np.nan_to_num(curves)
    count = len(curves)
    if count <= most:
        return np.arange(count)
    span = np.ptp(curves, axis=0)
    way = (np.abs(np.diff(curves[:, span > 0], axis=0)) / span[span > 0]).sum(1)
    pace = way / way.sum() if way.sum() > 0 else np.zeros(count - 1)
    along = np.concatenate([[0], np.cumsum(pace + 1 / (count - 1))])
    goals = np.linspace(0, along[-1], (most - 2) // 2)
    after = np.searchsorted(along, goals).clip(0, count - 1)
    # Keep both sides of a jump.
    return np.unique(np.concatenate([after, (after - 1).clip(0), [0, count - 1]]))[:count]


def lines(table: pd.DataFrame, y: str, colour: str, title: str, order: list[str], x: str = "step") -> Drawn:
    """Draw lines with bands over steps or time. The axis is logarithmic, so 0 is left out."""
    table = table.loc[table[x] > 0]
    across = alt.X(f"{x}:Q", scale=alt.Scale(type="log", nice=False), title=x)
    legend = alt.Legend(
        symbolType="stroke", symbolOpacity=1, symbolStrokeWidth=2, title=None, orient="bottom", columns=2
    )
    names = alt.Color(f"{colour}:N", sort=order, legend=legend)
    base = alt.Chart(table, title=title, width=280, height=220)
    middle = base.mark_line().encode(
        across,
        alt.Y(f"{y}:Q", title=y),
        names,
        alt.StrokeDash(f"{colour}:N", sort=order, legend=None),
    )
    spread = base.mark_area(opacity=0.2).encode(across, alt.Y("low:Q", title=y), alt.Y2("high:Q"), names)
    return (
        spread
        + middle
        + touch(
            base,
            across,
            alt.Y(f"{y}:Q", title=y),
            tooltip=told(f"{colour}:N", f"{x}:Q", f"{y}:Q", "low:Q", "high:Q"),
        )
    )


def points(table: pd.DataFrame, x: alt.X, y: alt.Y, **more) -> alt.Chart:
    """Draw a trend: points joined by lines."""
    return (
        alt.Chart(table, width=300, height=220)
        .mark_line(point={"size": 60})
        .encode(x, y, tooltip=list(table.columns), **more)
    )


def shaded(stages: dict[str, tuple[float, float]], x: alt.X) -> Drawn:
    """Draw stages as tinted stripes, each from its start to its end on the axis given, with their names on
    top."""
    table = pd.DataFrame([{"stage": name, "from": a, "to": b} for name, (a, b) in stages.items() if b > a])
    tint = alt.Color("stage:N", scale=alt.Scale(domain=list(stages), range=list(STAGE_TINTS)), legend=None)
    stripes = alt.Chart(table).mark_rect(opacity=0.5).encode(x=x, x2="to:Q", color=tint)
    rows = [  # in turn on two lines, so that names of short stages do not run into each other
        alt.Chart(table[line::2])
        .mark_text(align="left", baseline="top", dx=3, dy=2 + 12 * line, fontSize=10, color="#555")
        .encode(x=x, y=alt.value(0), text="stage:N")
        for line in range(min(2, len(table)))
    ]
    return alt.layer(stripes, *rows)


def on_times(trajectory: xr.Dataset, curves: xr.DataArray, times: np.ndarray) -> xr.DataArray:
    """Return curves at common times, where seeds have record times of their own. A curve is NaN before the
    seed's first time and after its last."""

    def at(value: np.ndarray, time: np.ndarray) -> np.ndarray:
        return np.interp(times, time, value, left=np.nan, right=np.nan)

    found = xr.apply_ufunc(
        at,
        curves,
        trajectory.time,
        input_core_dims=[["record"], ["record"]],
        output_core_dims=[["time"]],
        vectorize=True,
    )
    return found.assign_coords(time=times)


def measured(title: str, verdict: Verdict, control: Verdict) -> Spec | None:
    """Draw what a claim measured, with intervals, beside its control. Each quantity has a row with its own
    scale. Returns None if nothing was measured."""
    rows = [
        {"of": name, "value": found.value, "low": found.low, "high": found.high, "what": what}
        for what, judged in (("claim", verdict), ("control", control))
        for name, found in judged.measured.items()
        if np.isfinite([found.value, found.low, found.high]).all()
    ]
    if not rows:
        return None
    look = _measured()
    [data], names = look["datasets"], list(dict.fromkeys(row["of"] for row in rows))
    return look | {
        "title": f"{title}: {verdict.outcome}",
        "datasets": {data: rows},
        "facet": {"row": look["facet"]["row"] | {"sort": names}},
    }


@cache
def _measured() -> Spec:
    """Return the chart that all claims share, with placeholder data. There are hundreds of claims, and their
    charts differ only in values."""
    table = pd.DataFrame([{"of": "", "value": 0.0, "low": 0.0, "high": 0.0, "what": ""}])
    base = alt.Chart(table, width=320, height=36).encode(
        y=alt.Y("what:N", title=None), color=alt.Color("what:N", legend=None)
    )
    bars = base.mark_rule().encode(x=alt.X("low:Q", title=None, scale=alt.Scale(zero=False)), x2="high:Q")
    dots = base.mark_point(filled=True, size=60).encode(
        x="value:Q", tooltip=told("of:N", "what:N", "value:Q", "low:Q", "high:Q")
    )
    facet = alt.Row(
        "of:N",
        title=None,
        header=alt.Header(
            labelAngle=0, labelAlign="left", labelAnchor="start", labelOrient="top", labelLimit=400
        ),
    )
    return styled((bars + dots).facet(row=facet, title="").resolve_scale(x="independent"))
