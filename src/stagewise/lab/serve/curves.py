"""Curves of runs of any experiment: of one run, also while it runs, or of several in one chart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

from stagewise.lab.draw.charts import band, kept_records, on_times, told, touch
from stagewise.lab.draw.figures import Drawn, Spec, styled

FIRST = ("loss", "accuracy", "test_loss", "test_accuracy", "margin", "entropy", "type_loss")
MOST_CHARTS, MOST_LABELS, MOST_POINTS = 6, 6, 200


def drawn(runs: Mapping[str, xr.Dataset]) -> Spec | None:
    """Draw a chart for each quantity that all runs have: medians with bands. Several runs are told apart by
    colour, and labels by dashes. Returns None if there is no curve."""
    names = [
        name for name in _in_order(next(iter(runs.values()))) if all(name in run for run in runs.values())
    ]
    charts = [_chart(name, {label: run[name] for label, run in runs.items()}) for name in names[:MOST_CHARTS]]
    if not charts:
        return None
    scales: Any = {"color": "independent" if len(runs) == 1 else "shared", "strokeDash": "independent"}
    rows = [alt.hconcat(*charts[i : i + 2]).resolve_scale(**scales) for i in range(0, len(charts), 2)]
    return styled(alt.vconcat(*rows).resolve_scale(**scales))


def _in_order(run: xr.Dataset) -> list[str]:
    """Return the names of what can be drawn as curves: arrays over seeds and records, with at most one more
    dimension, which must be short."""
    found = []
    for name, values in run.data_vars.items():
        more = [dim for dim in values.dims if dim not in ("seed", "record")]
        if (
            {"seed", "record"} <= set(values.dims)
            and values.sizes["record"] > 1
            and len(more) <= 1
            and values.dtype.kind in "fiu"
        ):
            if not more or values.sizes[more[0]] <= MOST_LABELS:
                found.append(str(name))
    return sorted(found, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))


def _chart(name: str, values: Mapping[str, xr.DataArray]) -> Drawn:
    table = pd.concat([_table(name, each).assign(run=label) for label, each in values.items()])
    across = "time" if next(iter(values.values())).coords.get("time") is not None else "step"
    positive = table[table.when > 0]
    log = len(positive) > 0 and positive.when.max() > 20 * positive.when.min()
    x = alt.X("when:Q", title=across, scale=alt.Scale(type="log", nice=False) if log else alt.Scale())
    alone, legend = len(values) == 1, {"orient": "bottom", "symbolType": "stroke", "symbolOpacity": 1}
    labels = next(
        (str(dim) for dim in next(iter(values.values())).dims if dim not in ("seed", "record")), None
    )
    colour = (
        alt.Color("of:N", title=labels, sort=None, legend=alt.Legend(columns=3, **legend))
        if alone
        else alt.Color(
            "run:N", title=None, sort=list(values), legend=alt.Legend(columns=1, labelLimit=500, **legend)
        )
    )
    dash: dict[str, Any] = (
        {}
        if alone or table.of.nunique() == 1
        else {
            "strokeDash": alt.StrokeDash("of:N", title=labels, legend=alt.Legend(orient="bottom", columns=3))
        }
    )
    base = alt.Chart(positive if log else table, title=name, width=340, height=200)
    spread = base.mark_area(opacity=0.15).encode(
        x, alt.Y("low:Q", title=None), alt.Y2("high:Q"), colour, alt.Detail("of:N")
    )
    middle = base.mark_line().encode(x, alt.Y("value:Q", title=None), colour, **dash)
    return (
        spread
        + middle
        + touch(
            base,
            x,
            alt.Y("value:Q", title=None),
            tooltip=told("run:N", "of:N", "when:Q", "value:Q", "low:Q", "high:Q"),
        )
    )


def _table(name: str, values: xr.DataArray) -> pd.DataFrame:
    """Return a table with the columns when, of, low, value, high. If seeds have record times of their own,
    they are read at common times."""
    label = next((dim for dim in values.dims if dim not in ("seed", "record")), None)
    over = values.coords.get("time", values.coords.get("step"))
    if "seed" in over.dims:
        at = _common_times(over.values.astype(float))
        plain = on_times(values.to_dataset(name="curve"), values, at).drop_vars("time").rename(time="record")
    else:
        at, plain = (
            over.values.astype(float),
            xr.DataArray(
                values.values, dims=values.dims, coords={label: values[label].values} if label else {}
            ),
        )
    kept = kept_records(
        plain.median("seed").transpose("record", ...).values.reshape(len(at), -1), MOST_POINTS
    )
    table = band(plain.assign_coords(record=np.arange(len(at))).isel(record=kept), "value")
    table = table.assign(when=at[table.record.values], of=table[label].astype(str) if label else name)
    return table.loc[:, ["when", "of", "low", "value", "high"]].dropna()


def _common_times(times: np.ndarray) -> np.ndarray:
    """Return common times for times [seed, record]. They are evenly spaced in the sorted list of all seeds'
    times, so they are dense where solvers took short steps."""
    every = np.unique(times[np.isfinite(times)])
    return every[np.linspace(0, len(every) - 1, min(MOST_POINTS, len(every))).round().astype(int)]
