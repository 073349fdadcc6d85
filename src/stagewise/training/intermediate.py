"""The size of the largest array that a computation makes on its way, found from shapes without running it."""

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
"""Operations whose results are made as whole arrays. Results of other operations may be fused into what uses
them, and then take no memory."""


def largest(jaxpr: Any) -> int:
    """Return the bytes of the largest result of the operations in KEPT, in a jaxpr and in all jaxprs inside
    it."""
    return max((_bytes(equation.outvars) for equation in _equations(jaxpr.jaxpr)), default=0)


def _equations(jaxpr: Any) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        if equation.primitive.name in KEPT:
            yield equation
        for value in equation.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                inner = getattr(inner, "jaxpr", inner)  # a closed jaxpr holds a jaxpr
                if hasattr(inner, "eqns"):
                    yield from _equations(inner)


def _bytes(variables: Any) -> int:
    shaped = [variable.aval for variable in variables if hasattr(variable.aval, "shape")]
    return sum(int(np.prod(aval.shape, dtype=float)) * _item(aval.dtype) for aval in shaped)


def _item(dtype: Any) -> int:
    return getattr(dtype, "itemsize", 8)  # random keys are two words of four bytes
