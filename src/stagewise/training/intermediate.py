"""The largest array that a computation makes on its way, from its shapes alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

KEPT = {
    "dot_general",
    "conv_general_dilated",
    "scan",
    "while",
    "sort",
    "scatter",
    "scatter-add",
    "random_bits",
}
"""Operations whose results are made whole; others may be fused into what uses them, and take nothing."""


def largest(jaxpr: Any) -> int:
    """The bytes of the largest result that is made whole, in a jaxpr and those within it."""
    return max((_bytes(equation.outvars) for equation in _equations(jaxpr.jaxpr)), default=0)


def _equations(jaxpr: Any) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        if equation.primitive.name in KEPT:
            yield equation
        for value in equation.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                inner = getattr(inner, "jaxpr", inner)  # closed over constants, or not
                if hasattr(inner, "eqns"):
                    yield from _equations(inner)


def _bytes(variables: Any) -> int:
    shaped = [variable.aval for variable in variables if hasattr(variable.aval, "shape")]
    return sum(int(np.prod(aval.shape, dtype=float)) * _item(aval.dtype) for aval in shaped)


def _item(dtype: Any) -> int:
    return getattr(dtype, "itemsize", 8)  # keys of random numbers are two words
