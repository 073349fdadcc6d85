"""jax, jax.numpy and xarray, imported when first used.

`stagewise list` only reads settings, tasks and claims, which are plain values. Importing jax and xarray takes
seconds, so the modules with these values import them from here. A type checker sees the real modules."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import jax as jax
    import jax.numpy as jnp
    import xarray as xr
else:

    class _Lazy:
        def __init__(self, module: str):
            self._module = module

        def __getattr__(self, name: str):
            return getattr(import_module(self._module), name)

    jax, jnp, xr = _Lazy("jax"), _Lazy("jax.numpy"), _Lazy("xarray")


def numpy_of(x: Any) -> Any:
    """Return numpy for a numpy array and jax.numpy for a jax array: for code that runs on both."""
    return np if isinstance(x, np.ndarray) else jnp
