"""Double precision, for the programs that need it and the models they hand out, and for nobody else.

Theorems are checked in double precision, while the code around ours may count on single. jax knows its
precision by thread, so every function that computes enters double precision itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Found = TypeVar("Found")


def in_double(function: Callable[Given, Found]) -> Callable[Given, Found]:
    """The same function, in double precision in whatever thread it is called."""

    @wraps(function)
    def doubled(*given: Given.args, **named: Given.kwargs) -> Found:
        import jax

        with jax.enable_x64(True):
            return function(*given, **named)

    return doubled
