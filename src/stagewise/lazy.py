"""jax, jax.numpy and xarray, imported when first used.

Settings, tasks and claims are plain values that `stagewise list` reads; importing these takes seconds,
so the modules that hold them take them from here."""

from importlib import import_module

import numpy as np


class _Lazy:
    def __init__(self, module: str):
        self._module = module

    def __getattr__(self, name: str):
        return getattr(import_module(self._module), name)


jax = _Lazy("jax")
jnp = _Lazy("jax.numpy")
xr = _Lazy("xarray")


def numpy_of(x):
    """numpy for its own arrays, and jax.numpy for jax's: for code that runs on both."""
    return np if isinstance(x, np.ndarray) else jnp
