"""Which of a test's parameters are for every day, and which for `make test-all`."""

from collections.abc import Iterable
from typing import Any

import pytest


def some_fast(params: Iterable[Any], *fast: Any) -> list[Any]:
    """The parameters, all but the fast ones marked slow."""
    found, fast_ones = [], list(fast)
    for param in params:
        values = param if isinstance(param, tuple) else (param,)
        found.append(param if param in fast_ones else pytest.param(*values, marks=pytest.mark.slow))
    assert all(one in params for one in fast_ones), "a fast parameter that is none"
    return found
