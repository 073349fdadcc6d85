"""Trajectories as netCDF 3 files. xarray reads and writes such files too, but takes ten times as long, which
matters when there are many small runs."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import netcdf_file

from stagewise.lab.store.named_arrays import NamedArrays


def encode(recorded: NamedArrays) -> bytes:
    """Return what was recorded as the bytes of a file, as xarray would write it."""
    held = _Held()
    file = netcdf_file(held, "w", version=2)
    for name, value in recorded.about.items():
        setattr(file, name, value.encode())
    labels = [name for name, (dims, _) in recorded.coords.items() if dims != (name,)]
    if labels:
        file.coordinates = " ".join(labels).encode()  # so that they are read as coordinates
    for name, (dims, array) in {**recorded.coords, **recorded.variables}.items():
        _write(file, name, dims, np.asarray(array))
    file.close()
    return held.content


class _Held(BytesIO):
    """A file in memory whose bytes can still be read after it is closed, since scipy writes them only when it
    closes the file."""

    def close(self) -> None:
        self.content = self.getvalue()
        super().close()


def read(path: Path) -> NamedArrays:
    """Return what is in a file, as xarray would read it."""
    with netcdf_file(path, mmap=False) as file:
        about = {
            name: value.decode() if isinstance(value, bytes) else value
            for name, value in file._attributes.items()
        }
        labels = {about.pop("coordinates", "")} | {
            variable._attributes.get("coordinates", b"").decode() for variable in file.variables.values()
        }
        found = {name: _read(variable) for name, variable in file.variables.items()}
    named = set(" ".join(labels).split())
    coords = {name: found.pop(name) for name in list(found) if name in named or found[name][0] == (name,)}
    return NamedArrays(found, coords, about)


def _read(variable: Any) -> tuple[tuple[str, ...], np.ndarray]:
    array, dims, about = np.asarray(variable.data), variable.dimensions, variable._attributes
    if "_Encoding" in about:
        words = np.ascontiguousarray(array).view(f"S{array.shape[-1]}")[..., 0]
        return dims[:-1], np.array([word.decode() for word in words.ravel()], dtype=object).reshape(
            words.shape
        )
    return dims, array.astype(bool if about.get("dtype") == b"bool" else array.dtype.newbyteorder("="))


def _write(file: netcdf_file, name: str, dims: tuple[str, ...], array: np.ndarray) -> None:
    attributes: dict[str, Any] = {}
    if array.dtype.kind in "OU":
        array, dims, attributes = _letters(array, dims)
    elif array.dtype.kind == "b":
        array, attributes = array.astype(np.int8), {"dtype": b"bool"}
    elif array.dtype.kind in "iu" and array.dtype.itemsize > 2:
        small = array.astype(np.int32)
        if not np.array_equal(small, array):
            raise ValueError(f"{name} has whole numbers that a netCDF 3 file cannot hold")
        array = small
    for dim, size in zip(dims, array.shape):
        if dim not in file.dimensions:
            file.createDimension(dim, size)
    made = file.createVariable(name, array.dtype.newbyteorder(">"), dims)
    made[...] = array
    for key, value in attributes.items():
        setattr(made, key, value)


def _letters(
    array: np.ndarray, dims: tuple[str, ...]
) -> tuple[np.ndarray, tuple[str, ...], dict[str, bytes]]:
    """Return words as rows of letters, with the dimensions and attributes that say so."""
    words = np.array([str(word).encode() for word in array.ravel()]).reshape(array.shape)
    wide = max(1, words.dtype.itemsize)
    return (
        words.astype(f"S{wide}").view("S1").reshape(*array.shape, wide),
        (*dims, f"string{wide}"),
        {"_Encoding": b"utf-8"},
    )
