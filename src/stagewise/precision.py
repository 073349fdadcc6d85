"""Double precision for the programs that need it and the models that they return, and for no other code.

Theorems are checked in double precision, but a program that imports us may expect jax's single precision. jax
keeps its precision separately in each thread, so every function that needs double precision switches to it by
itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Found = TypeVar("Found")


def in_double(function: Callable[Given, Found]) -> Callable[Given, Found]:
    """Return a function that does the same in double precision, whichever thread calls it."""

    @wraps(function)
    def doubled(*given: Given.args, **named: Given.kwargs) -> Found:
        import jax

        with jax.enable_x64(True):
            return function(*given, **named)

    return doubled
