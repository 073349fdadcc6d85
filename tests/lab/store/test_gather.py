"""Results of a grid as one dataset, and as tables that others read."""

import numpy as np
import pytest
import xarray as xr

import stagewise as sw
from stagewise.commands.main import main
from stagewise.lab.store import gather
from stagewise.lab.store.named_arrays import NamedArrays

OVER = {"learning_rate": (0.02, 0.05), "width": (4, 8)}
SMALL = dict(steps=40, seeds=2)


def test_what_is_missing_is_nan_in_every_kind_of_file(runs, broken, tmp_path):
    words = [
        "sweep",
        "mixture.joint",
        "--over",
        "width=4,8",
        "--set",
        "steps=40",
        "--seeds",
        "2",
        "--runs",
        str(runs),
        "--out",
    ]
    assert main([*words, str(tmp_path / "x.nc")]) == 1
    stored = xr.load_dataset(tmp_path / "x.nc", engine="scipy")
    assert np.isnan(stored.done_at.sel(width=8)).all() and (stored.done_at.sel(width=4) == -1).all()


def test_cells_of_different_length_end_where_they_end(runs, tmp_path):
    from stagewise.lab.draw.phase_diagram import at_end

    found = sw.sweep("mixture.joint", {"steps": (40, 300)}, runs=runs, width=4, seeds=2)
    last = at_end(found, "loss[conflicting]")
    assert np.isfinite(last).all() and np.allclose(
        last.sel(steps=300), found.loss.sel(steps=300, kind="conflicting").isel(record=-1)
    )
    alone = sw.run("mixture.joint", runs=runs, steps=40, width=4, seeds=2).trajectory
    assert np.allclose(last.sel(steps=40), alone.loss.sel(kind="conflicting").isel(record=-1))


def test_a_setting_named_like_something_recorded_has_a_name_of_its_own():
    trajectory = xr.Dataset(
        {"signal": (("seed", "record"), np.ones((2, 3)))}, {"seed": [0, 1], "record": np.arange(3)}
    )
    grid = sw.Sweep("parity.three_steps", {"signal": (40.0, 60.0)}).grid
    found = gather.gather(grid.axes, [NamedArrays.of(trajectory)] * 2)
    assert (
        found.sizes["swept_signal"] == 2
        and found.signal.dims == ("swept_signal", "seed", "record")
        and found.attrs["swept"] == "swept_signal"
    )


def test_cells_that_are_alike_are_stacked_as_xarray_would_join_them(runs):

    found = sw.sweep("mixture.joint", OVER, runs=runs, **SMALL)
    cells = [
        found.sel(learning_rate=rate, width=width, drop=True).drop_vars("missing")
        for rate in found.learning_rate.values
        for width in found.width.values
    ]
    # Times of their own.
    cells = [
        cell.assign_coords(time=(("seed", "record"), np.full((2, cell.sizes["record"]), float(n))))
        for n, cell in enumerate(cells)
    ]
    named = {name: found[name].values.tolist() for name in OVER}
    plain = [NamedArrays.of(cell) for cell in cells]
    assert gather.alike(plain)
    xr.testing.assert_identical(gather.stacked(named, plain), gather.joined(named, cells))
    assert not gather.alike([plain[0], NamedArrays.of(cells[1].isel(record=slice(3)))]) and not gather.alike(
        [plain[0], NamedArrays.of(cells[1].assign_coords(seed=[5, 6]))]
    )


def test_results_are_tables_that_others_read(runs, tmp_path):
    pytest.importorskip("pyarrow")
    import pandas as pd

    words = [
        "sweep",
        "mixture.joint",
        "--over",
        "width=4,8",
        "--set",
        "steps=40",
        "--seeds",
        "2",
        "--runs",
        str(runs),
        "--out",
    ]
    for ending in ("nc", "csv", "parquet"):
        assert main([*words, str(tmp_path / f"all.{ending}")]) == 0
    dataset, table, columns = (
        xr.load_dataset(tmp_path / "all.nc"),
        pd.read_csv(tmp_path / "all.csv"),
        pd.read_parquet(tmp_path / "all.parquet"),
    )
    assert len(table) == len(columns) == 2 * 2 * dataset.sizes["record"]
    last = table[(table.width == 8) & (table.seed == 1)].iloc[-1]
    assert last["loss[conflicting]"] == pytest.approx(
        dataset.loss.sel(width=8, seed=1, kind="conflicting").values[-1], rel=1e-12
    )
    assert last["step"] == 40
