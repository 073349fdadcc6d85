"""Phase diagrams: a quantity over swept settings, as a heat map or a family of lines. Missing results are
marked as missing."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

from stagewise.errors import Refused, nearest, require
from stagewise.lab.draw.figures import Drawn
from stagewise.lab.store.tables import swept

FIRST = ("accuracy", "test_accuracy", "loss", "test_loss")


def at_end(dataset: xr.Dataset, of: str | None = None) -> xr.DataArray:
    """Return a quantity at the end of training, over swept settings and seeds. `of` is its name, such as
    `loss`, or one of its labels, such as `loss[conflicting]`."""
    can = [
        str(name)
        for name, values in dataset.data_vars.items()
        if "seed" in values.dims and values.dtype.kind in "fiub"
    ]
    name, _, label = (of or next((each for each in FIRST if each in can), can[0] if can else "")).partition(
        "["
    )
    if name not in can:
        raise Refused(f"the sweep has no {name!r}{nearest(name, can)}; it has {', '.join(can)} (set --of)")
    values = dataset[name]
    values = _last(values, dataset) if "record" in values.dims else values
    more = [dim for dim in values.dims if dim not in ("seed", *swept(dataset))]
    if not more:
        return values.rename(name)
    labels = {
        ",".join(map(str, combination)): combination for combination in values.stack(label=more).label.values
    }
    chosen = label.rstrip("]") or next(iter(labels))
    require(
        chosen in labels,
        f"{name} has no part {chosen!r}; it has {', '.join(f'{name}[{each}]' for each in labels)} (set --of)",
    )
    return values.sel(dict(zip(more, labels[chosen])), drop=True).rename(f"{name}[{chosen}]")


def _last(values: xr.DataArray, dataset: xr.Dataset) -> xr.DataArray:
    """Return the last record of every cell. A cell with fewer records than others is padded, and its padding
    has no step or time."""
    clock = dataset.coords.get("step", dataset.coords.get("time"))
    if clock is None or set(clock.dims) == {"record"}:
        return values.isel(record=-1, drop=True)
    there = clock.notnull()
    last = (there * xr.DataArray(np.arange(clock.sizes["record"]), dims="record")).max("record")
    return values.drop_vars(["step", "time", "record"], errors="ignore").isel(
        record=last.drop_vars(["step", "time"], errors="ignore")
    )


def diagram(values: xr.DataArray, title: str = "") -> Drawn:
    """Draw one setting as a line, two as a heat map, and three as a family of lines, with a panel for each
    value of the third."""
    axes = [str(dim) for dim in values.dims if dim != "seed"]
    require(1 <= len(axes) <= 3, f"a diagram is of one to three settings, not {len(axes)}")
    return heat(values, axes[0], axes[1], title) if len(axes) == 2 else family(values, axes, title)


def heat(
    values: xr.DataArray, across: str, up: str, title: str = "", log: bool = False, absent: str = "missing"
) -> Drawn:
    """Draw the median over seeds by two settings. A cell in which any seed has no value is marked as absent,
    not averaged."""
    name = str(values.name or "value")
    table = (
        _median(values)
        .rename("value")
        .to_dataframe()[["value"]]
        .reset_index()
        .assign(missing=lambda t: t.value.isna())
    )
    table["value"] = table.value.map(lambda v: float(f"{v:.3g}"))
    x, y = (
        alt.X(f"{across}:O", sort=_order(values, across), axis=_axis(values, across)),
        alt.Y(f"{up}:O", sort=_order(values, up)[::-1], axis=_axis(values, up)),
    )
    base = alt.Chart(
        table, title=title, width=max(180, 46 * values.sizes[across]), height=max(120, 34 * values.sizes[up])
    ).encode(x, y)
    there, scale = (
        base.transform_filter("!datum.missing"),
        alt.Scale(scheme="viridis", type="log") if log else alt.Scale(scheme="viridis"),
    )
    told = alt.Text("value:Q", format=".3~r")
    layers = [
        there.mark_rect().encode(
            alt.Color("value:Q", scale=scale, title=None),
            tooltip=[across, up, alt.Tooltip("value:Q", title=name)],
        ),
        there.mark_text(
            fontSize=10, stroke="white", strokeWidth=2.5, strokeOpacity=0.85, strokeJoin="round"
        ).encode(text=told),
        there.mark_text(fontSize=10, color="black").encode(text=told),
    ]
    if table.missing.any():
        layers.append(
            base.transform_filter("datum.missing")
            .mark_text(fontSize=10, color="#888")
            .encode(text=alt.value(absent))
        )
    return alt.layer(*layers)


def _order(values: xr.DataArray, axis: str) -> list:
    return [value.item() if hasattr(value, "item") else value for value in values[axis].values]


def _axis(values: xr.DataArray, axis: str) -> alt.Axis:
    """Return an axis that shows numbers with four digits and words as they are."""
    return (
        alt.Axis(labelAngle=0, format=".4~r") if values[axis].dtype.kind in "fiu" else alt.Axis(labelAngle=0)
    )


def family(values: xr.DataArray, axes: list[str], title: str = "") -> Drawn:
    """Draw the median over seeds against the first setting, with a line for each value of the second setting
    and a panel for each value of the third."""
    name, first = str(values.name or "value"), axes[0]
    columns = {"low": _median(values, 0.1), "value": _median(values), "high": _median(values, 0.9)}
    table = xr.Dataset(columns).to_dataframe()[list(columns)].reset_index()
    table[list(columns)] = table[list(columns)].map(lambda v: float(f"{v:.4g}"))
    numeric = values[first].dtype.kind in "fiu"
    spread = (
        numeric
        and (values[first].min() > 0).item()
        and (values[first].max() > 20 * values[first].min()).item()
    )
    scale = alt.Scale(type="log", nice=False) if spread else alt.Undefined
    x = alt.X(f"{first}:{'Q' if numeric else 'O'}", scale=scale)
    colour: dict[str, Any] = (
        {"color": alt.Color(f"{axes[1]}:O", scale=alt.Scale(scheme="viridis"))} if len(axes) > 1 else {}
    )

    def panel(part: pd.DataFrame, title: str) -> Drawn:
        base = alt.Chart(part, title=title, width=300, height=220)
        band = base.mark_area(opacity=0.15).encode(x, alt.Y("low:Q", title=name), alt.Y2("high:Q"), **colour)
        line = base.mark_line(point=True).encode(
            x,
            alt.Y("value:Q", title=name),
            tooltip=[*axes, alt.Tooltip("value:Q", title=name), "low:Q", "high:Q"],
            **colour,
        )
        return band + line

    if len(axes) < 3:
        return panel(table, title)
    return alt.hconcat(
        *(panel(part, f"{axes[2]} = {value}") for value, part in table.groupby(axes[2], sort=False)),
        title=title,
    )


def _median(values: xr.DataArray, q: float = 0.5) -> xr.DataArray:
    with np.errstate(invalid="ignore"):
        return values.astype(float).quantile(q, "seed", skipna=False).drop_vars("quantile")
