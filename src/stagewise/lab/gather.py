"""Trajectories of a grid as one labelled dataset."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import numpy as np
import xarray as xr

from stagewise.errors import require


def gather(axes: Mapping[str, Sequence[Any]], trajectories: Sequence[xr.Dataset | None]) -> xr.Dataset:
    """One dataset with the axes as leading dimensions; the trajectories come in row-major order, None where a job failed. An axis that is called like
    something recorded becomes `swept_` and its name.

    Where cells differ in shape (more groups, more signals), missing entries are NaN; so is all of a failed cell, which `missing` marks."""
    cells = _marked(trajectories) if any(one is None for one in trajectories) else list(trajectories)
    taken = {str(name) for one in cells for name in (*one.variables, *one.dims)}
    named = {f"swept_{name}" if name in taken else name: _labels(values) for name, values in axes.items()}
    return (stacked(named, cells) if alike(cells) else joined(named, cells)).assign_attrs(swept=" ".join(named))


def _labels(values: Sequence[Any]) -> list[Any]:
    return list(values) if all(isinstance(v, (int, float)) for v in values) else [str(v) for v in values]


def _marked(trajectories: Sequence[xr.Dataset | None]) -> list[xr.Dataset]:
    """Failed cells as NaN in the shape of one that is there, their own times too."""
    there = next((one for one in trajectories if one is not None), None)
    require(there is not None, "every job of the sweep is missing, so there is nothing to gather")
    own = {name: values for name, values in there.coords.items() if "seed" in values.dims and name != "seed"}
    nothing = there.map(_blank).assign_coords({name: _blank(values) for name, values in own.items()})
    return [(nothing if one is None else one).assign(missing=one is None) for one in trajectories]


def _blank(values: xr.DataArray) -> xr.DataArray:
    return xr.full_like(values, np.nan, dtype=float if values.dtype.kind in "biuf" else object)


def alike(cells: Sequence[xr.Dataset]) -> bool:
    """Whether cells have the same variables in the same shapes, and the same labels along them."""
    first = cells[0]
    shapes = {name: (values.dims, values.shape) for name, values in first.variables.items()}
    labels = {name: first[name].values for name in first.dims if name in first.coords}
    return all(
        {name: (values.dims, values.shape) for name, values in one.variables.items()} == shapes and all(np.array_equal(one[name].values, found) for name, found in labels.items())
        for one in cells[1:]
    )  # fmt: skip


def stacked(named: Mapping[str, list], cells: Sequence[xr.Dataset]) -> xr.Dataset:
    """The same as `joined` for cells that are alike, at a hundredth of its cost."""
    first, sizes = cells[0], tuple(len(values) for values in named.values())

    def together(name: str) -> tuple[tuple[str, ...], np.ndarray]:
        whole = np.stack([one.variables[name].values for one in cells])
        return (*named, *first.variables[name].dims), whole.reshape(*sizes, *whole.shape[1:])

    shared = {name for name, values in first.coords.items() if name in first.dims or all(values.variable.equals(one.variables[name]) for one in cells[1:])}
    coords = {name: first.variables[name] if name in shared else together(name) for name in first.coords}
    return xr.Dataset({name: together(name) for name in first.data_vars}, coords | dict(named), first.attrs)


def joined(named: Mapping[str, list], cells: Sequence[xr.Dataset]) -> xr.Dataset:
    """Cells of any shapes, by xarray."""
    nested = list(cells)
    for name, labels in reversed(named.items()):
        rows = [nested[i : i + len(labels)] for i in range(0, len(nested), len(labels))]
        nested = [xr.concat(row, dim=xr.Variable(name, labels), join="outer", coords="different", compat="equals", data_vars="all") for row in rows]
    return nested[0]
