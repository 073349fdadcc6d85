"""Dynamics: the attention, the scores, the losses and the stage, which one slider over training time
moves."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import xarray as xr

from stagewise.lab.draw.charts import band, kept_records, shaded, told, touch
from stagewise.lab.draw.figures import Drawn
from stagewise.lab.spec.study import filled

MOST_FRAMES, MOST_POINTS = 64, 160
MOST_SEEDS = 8  # the most seeds that are drawn as lines of their own


@dataclass(frozen=True)
class Heat:
    """A matrix over time: [record, row, column], of one seed or the median over seeds. The colours end at
    `most`; values may be negative, as scores are."""

    values: xr.DataArray
    most: float | None = None

    @property
    def rows(self) -> str:
        return str(self.values.dims[1])

    @property
    def columns(self) -> str:
        return str(self.values.dims[2])


@dataclass(frozen=True)
class Frames:
    """Matrices and curves over the same records. Curves are [seed, record, label]; each stage has the times
    at which it begins and ends."""

    axis: str  # what time is measured in: step, time or samples
    times: np.ndarray
    heats: Mapping[str, Heat]
    curves: Mapping[str, xr.DataArray]
    stages: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @cached_property
    def shown(self) -> np.ndarray:
        """The records at which the slider stops: few enough for a page, with no jump lost."""
        everything = [_by_record(heat.values) for heat in self.heats.values()] + [
            _by_record(curve.median("seed")) for curve in self.curves.values()
        ]
        return kept_records(np.concatenate(everything, 1), MOST_FRAMES)

    def labels(self) -> list[str]:
        """Return the text that is shown at each stop of the slider."""
        told = []
        for time in self.times[self.shown]:
            stage = next((name for name, (a, b) in self.stages.items() if a <= time <= b), "")
            told.append(f"{self.axis} {time:.4g}" + (f", {stage}" if stage else ""))
        return told


@dataclass(frozen=True, eq=False)
class Dynamics:
    """A function from trajectories to frames; its docstring says what one should see."""

    id: str
    shows: str
    needs: Mapping[str, Any]
    frames: Callable[..., Frames]

    def needs_at(self, preset: str) -> dict[str, Any]:
        return filled(self.needs, preset)


def dynamics(id: str, *, needs: Mapping[str, Any]):
    """Make dynamics from a function that takes trajectories and returns frames."""

    def make(frames: Callable[..., Frames]) -> Dynamics:
        return Dynamics(id, " ".join(inspect.cleandoc(frames.__doc__ or "").split()), needs, frames)

    return make


def draw(frames: Frames) -> Drawn:
    """Draw everything as one chart. Its parameter `now` is the number of the frame that it shows; its
    parameter `singles` shows seeds as lines of their own."""
    shown = frames.shown
    heats = [_heat(name, heat, shown) for name, heat in frames.heats.items()]
    curves = [_curve(name, curve, frames, shown) for name, curve in frames.curves.items()]
    moved = [alt.param(name="now", value=len(shown) - 1).param, alt.param(name="singles", value=False).param]
    return alt.vconcat(
        alt.hconcat(*heats, resolve=_apart("color")),
        alt.hconcat(*curves, resolve=_apart("color", "strokeDash")),
        params=moved,
        resolve=_apart("color"),
    )


def _apart(*scales: str) -> alt.Resolve:
    apart: dict[str, Any] = dict.fromkeys(scales, "independent")
    return alt.Resolve(scale=alt.ScaleResolveMap(**apart))


def _heat(name: str, heat: Heat, shown: np.ndarray) -> Drawn:
    values, (rows, columns) = heat.values.isel(record=shown), (heat.rows, heat.columns)
    table = (
        values.assign_coords(record=np.arange(values.sizes["record"]))
        .rename(record="frame")
        .to_dataframe("value")["value"]
        .reset_index()
    )
    most = heat.most if heat.most is not None else float(np.nanmax(np.abs(values))) or 1.0
    signed = bool((values < -most / 100).any())
    colours = (
        alt.Scale(scheme="blueorange", domain=[-most, most], clamp=True)
        if signed
        else alt.Scale(scheme="blues", domain=[0, most], clamp=True)
    )
    labels = {
        dim: [v.item() if hasattr(v, "item") else v for v in values[dim].values] for dim in (rows, columns)
    }
    # Values near 0 are left out of the table below; these cells are seen in their place.
    cells = table[table.frame == 0].assign(value=0.0, near="about 0").drop(columns="frame")
    table = table[table.value.abs() > most / 500].assign(
        value=lambda t: t.value.map(lambda v: float(f"{v:.3g}"))
    )
    size, many = (
        (max(120, min(260, 30 * len(labels[dim]))) for dim in (columns, rows)),
        max(map(len, labels.values())) > 16,
    )
    axis = alt.Axis(labels=not many, ticks=not many, labelAngle=0)
    width, height = size
    where = (
        alt.X(f"{columns}:O", scale=alt.Scale(domain=labels[columns]), axis=axis),
        alt.Y(f"{rows}:O", scale=alt.Scale(domain=labels[rows]), axis=axis),
    )
    ground, moving = (
        alt.Chart(each, title=name, width=width, height=height)
        .mark_rect()
        .encode(*where, alt.Color("value:Q", scale=colours, title=None))
        for each in (cells, table)
    )
    names = [f"{rows}:O", f"{columns}:O"]
    return ground.encode(tooltip=told(*names, "near:N")) + moving.transform_filter(
        "datum.frame == now"
    ).encode(tooltip=told(*names, "value:Q"))


def _curve(name: str, curve: xr.DataArray, frames: Frames, shown: np.ndarray) -> Drawn:
    label = next(str(dim) for dim in curve.dims if dim not in ("seed", "record"))
    curve = (
        curve.assign_coords(record=frames.times)
        .isel(record=kept_records(_by_record(curve.median("seed")), MOST_POINTS))
        .rename(record="t")
    )
    table = band(curve, "value").rename(columns={label: "of"})
    own = (
        curve.isel(seed=slice(MOST_SEEDS))
        .to_dataframe("value")["value"]
        .reset_index()
        .rename(columns={label: "of"})
    )
    own = own.assign(value=own.value.map(lambda v: float(f"{v:.4g}")))
    positive = frames.times > 0
    scale = (
        alt.Scale(type="log", nice=False, domain=[float(frames.times[positive][0]), float(frames.times[-1])])
        if (frames.times[-1] > 20 * frames.times[positive][0])
        else alt.Scale(nice=False)
    )
    if scale.type == "log":
        table, own = table[table.t > 0], own[own.t > 0]
    x, order = (
        alt.X("t:Q", scale=scale, title=frames.axis),
        [v.item() if hasattr(v, "item") else v for v in curve[label].values],
    )
    legend = alt.Legend(
        title=label if label != "curve" else None,
        orient="bottom",
        columns=3,
        symbolType="stroke",
        symbolOpacity=1,
    )
    colour, dash = (
        alt.Color("of:N", sort=order, legend=legend),
        alt.StrokeDash("of:N", sort=order, legend=None),
    )
    base = alt.Chart(table, title=name, width=320, height=190)
    spread = base.mark_area(opacity=0.2).encode(x, alt.Y("low:Q", title=None), alt.Y2("high:Q"), colour)
    middle = base.mark_line().encode(x, alt.Y("value:Q", title=None), colour, dash)
    hit = touch(
        base, x, alt.Y("value:Q", title=None), tooltip=told("of:N", "t:Q", "value:Q", "low:Q", "high:Q")
    )
    singles = (
        alt.Chart(own)
        .mark_line(strokeWidth=0.6)
        .encode(
            x,
            alt.Y("value:Q"),
            colour,
            alt.Detail("seed:N"),
            opacity=alt.condition("singles", alt.value(0.8), alt.value(0)),
        )
    )
    moments = pd.DataFrame({"frame": np.arange(len(shown)), "t": frames.times[shown]})
    now = (
        alt.Chart(moments[moments.t > 0] if scale.type == "log" else moments)
        .transform_filter("datum.frame == now")
        .mark_rule(color="#333", strokeDash=[3, 3])
        .encode(x)
    )
    ends = {
        stage: (max(a, float(frames.times[positive][0])) if scale.type == "log" else a, b)
        for stage, (a, b) in frames.stages.items()
    }
    striped = [shaded(ends, alt.X("from:Q", scale=scale, title=frames.axis))] if ends else []
    return alt.layer(*striped, alt.layer(singles, spread, middle, hit), now).resolve_scale(
        color="independent"
    )


def _by_record(values: xr.DataArray) -> np.ndarray:
    return values.transpose("record", ...).values.reshape(values.sizes["record"], -1)
