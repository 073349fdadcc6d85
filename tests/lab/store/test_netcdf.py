"""What is written is what xarray reads."""

import numpy as np
import pytest
import xarray as xr

from stagewise.lab.store.named_arrays import NamedArrays
from stagewise.lab.store.netcdf import encode, read


def test_a_dataset_comes_back_as_xarray_writes_it(tmp_path):
    rng = np.random.default_rng(0)
    variables = {
        "loss": (("seed", "record", "kind"), rng.standard_normal((2, 3, 2))),
        "small": (("seed",), rng.standard_normal(2).astype(np.float32)),
        "count": (("seed",), np.array([-1, 2**31 - 1])),
        "right": (("seed", "record"), np.array([[True, False, True], [False, True, True]])),
        "bits": (("seed",), np.array([0, 1], np.int8)),
    }
    coords = {
        "seed": (("seed",), np.arange(2)),
        "record": (("record",), np.arange(3)),
        "kind": (("kind",), np.array(["all", "größer"])),
        "stage": (("record",), np.array(["1.1", "1.1", "2"], dtype=object)),
        "time": (("seed", "record"), rng.standard_normal((2, 3))),
    }
    about = {"experiment": "x", "settings": '{"a": "ü"}'}
    (tmp_path / "ours.nc").write_bytes(encode(NamedArrays(variables, coords, about)))
    xr.Dataset(variables, coords, about).to_netcdf(
        tmp_path / "theirs.nc", engine="scipy", format="NETCDF3_64BIT"
    )
    ours, theirs = (xr.load_dataset(tmp_path / name, engine="scipy") for name in ("ours.nc", "theirs.nc"))
    xr.testing.assert_identical(ours, theirs)
    assert set(ours.coords) == set(coords) and all(
        ours[name].dtype == theirs[name].dtype for name in variables
    )
    for name in ("ours.nc", "theirs.nc"):  # and read here as by xarray
        found = read(tmp_path / name).dataset
        xr.testing.assert_identical(found.drop_attrs(deep=True), theirs.drop_attrs(deep=True))
        assert found.attrs == theirs.attrs and all(
            found[name].dtype == theirs[name].dtype for name in found.variables
        )


def test_numbers_that_do_not_fit_are_not_cut():
    with pytest.raises(ValueError, match="cannot hold"):
        encode(NamedArrays({"count": (("n",), np.array([2**40]))}, {}, {}))
