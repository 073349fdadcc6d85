"""What a run recorded, as named arrays: a dataset without its machinery, which many small runs would
notice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr

Variables = Mapping[str, tuple[tuple[str, ...], np.ndarray]]


@dataclass(frozen=True, eq=False)
class NamedArrays:
    """Variables and coordinates, each (dimensions, values), and what is said about them."""

    variables: Variables
    coords: Variables
    about: Mapping[str, str]

    @cached_property
    def dataset(self) -> xr.Dataset:
        return xr.Dataset(dict(self.variables), dict(self.coords), dict(self.about))

    @classmethod
    def of(cls, dataset: xr.Dataset) -> NamedArrays:
        """A dataset taken apart."""
        variables, coords = (
            {str(name): (tuple(map(str, values.dims)), values.values) for name, values in part.items()}
            for part in (dataset.data_vars, dataset.coords)
        )
        return cls(variables, coords, dataset.attrs)

    @property
    def seeds(self) -> int:
        return len(self.coords["seed"][1])

    def at_seeds(self, index: np.ndarray, first: int = 0) -> NamedArrays:
        """The seeds at these places, counted from `first` again."""
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
    """Blocks of seeds of one run, together."""
    return (
        parts[0]
        if len(parts) == 1
        else NamedArrays.of(
            xr.concat([part.dataset for part in parts], "seed", join="exact", combine_attrs="override")
        )
    )
