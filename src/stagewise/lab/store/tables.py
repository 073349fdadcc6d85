"""Datasets as files that others read: netCDF, Parquet, CSV."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stagewise.errors import Refused
from stagewise.lab.store.files import check_ending, make_folder, write

if TYPE_CHECKING:
    import xarray as xr

ENDINGS = (".nc", ".parquet", ".csv")


def check(path: Path) -> None:
    """Refuse a table of a kind that cannot be written, before anything is run for it."""
    check_ending(path, ENDINGS, "results are")
    if path.suffix == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise Refused("Parquet needs pyarrow: pip install 'stagewise[table]'") from error


def save(dataset: xr.Dataset, path: Path) -> None:
    """Write a dataset. A netCDF file holds it as it is; Parquet and CSV hold it as a table (`flat`) with one
    row for every combination of setting, seed and record."""
    check(path)
    make_folder(path.absolute().parent)
    if path.suffix == ".nc":
        # The encoding is dropped. With it, what was a whole number in a file would be written as one again,
        # and NaN as -2147483648.
        plain = dataset.drop_encoding()
        write(path, lambda beside: plain.to_netcdf(beside, engine="scipy", format="NETCDF3_64BIT"))
        return
    table = flat(dataset)
    write(
        path,
        lambda beside: (
            table.to_parquet(beside) if path.suffix == ".parquet" else table.to_csv(beside, index=False)
        ),
    )


def flat(dataset: xr.Dataset):
    """Return a table with one row for every combination of setting, seed and record. An array with further
    labels gets a column for each label, such as `loss[consistent]`; one with more than 256 labels is left
    out."""
    import numpy as np

    along = [dim for dim in dataset.dims if dim in ("seed", "record") or dim in swept(dataset)]
    columns = {}
    for name, values in {
        **dataset.data_vars,
        **{n: c for n, c in dataset.coords.items() if n in ("step", "time", "stage")},
    }.items():
        more = [dim for dim in values.dims if dim not in along]
        if not more:
            columns[str(name)] = values
            continue
        if int(np.prod([values.sizes[dim] for dim in more])) > 256:
            continue  # matrices are for netCDF
        joined = values.stack(label=more)
        for n, label in enumerate(joined.label.values):
            columns[f"{name}[{','.join(map(str, label))}]"] = joined.isel(label=n, drop=True)
    import xarray as xr

    plain = {name: values.reset_coords(drop=True) for name, values in columns.items()}
    return xr.Dataset(plain).to_dataframe(dim_order=along).reset_index()


def swept(dataset: xr.Dataset) -> list[str]:
    """The dimensions that a sweep went over, in order."""
    return list(dataset.attrs.get("swept", "").split()) if dataset.attrs.get("swept") else []
