"""Rates, and rows of the table."""

import time
from collections.abc import Callable


def rate(work: Callable[[], object], amount: float, repeats: int = 3) -> float:
    """Amount a second, the best of a few repeats, after one that warms up."""
    work()
    best = min(seconds(work) for _ in range(repeats))
    return amount / best


def row(what: str, unit: str, ours: float, peer: float) -> dict:
    return {"what": what, "unit": unit, "ours": ours, "peer": peer, "ratio": ours / peer}


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
