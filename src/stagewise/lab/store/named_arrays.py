"""What a run recorded, as named arrays. They hold the same as an xarray dataset but are faster to make, which
matters when there are many small runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr

Variables = Mapping[str, tuple[tuple[str, ...], np.ndarray]]


@dataclass(frozen=True, eq=False)
class NamedArrays:
    """Variables and coordinates by name, each as (dimensions, values), and texts about them by name."""

    variables: Variables
    coords: Variables
    about: Mapping[str, str]

    @cached_property
    def dataset(self) -> xr.Dataset:
        return xr.Dataset(dict(self.variables), dict(self.coords), dict(self.about))

    @classmethod
    def of(cls, dataset: xr.Dataset) -> NamedArrays:
        """Return the arrays of an xarray dataset."""
        variables, coords = (
            {str(name): (tuple(map(str, values.dims)), values.values) for name, values in part.items()}
            for part in (dataset.data_vars, dataset.coords)
        )
        return cls(variables, coords, dataset.attrs)

    @property
    def seeds(self) -> int:
        return len(self.coords["seed"][1])

    def at_seeds(self, index: np.ndarray, first: int = 0) -> NamedArrays:
        """Return the arrays of the seeds at these places, which are then numbered from `first` on."""
        taken = [
            {
                name: (dims, values.take(index, dims.index("seed")) if "seed" in dims else values)
                for name, (dims, values) in part.items()
            }
            for part in (self.variables, self.coords)
        ]
        return NamedArrays(
            taken[0], taken[1] | {"seed": (("seed",), first + np.arange(len(index)))}, self.about
        )


def one_after_another(parts: list[NamedArrays]) -> NamedArrays:
    """Join what several blocks of one run recorded."""
    return (
        parts[0]
        if len(parts) == 1
        else NamedArrays.of(
            xr.concat([part.dataset for part in parts], "seed", join="exact", combine_attrs="override")
        )
    )
