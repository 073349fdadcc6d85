"""How many threads there are: one for XLA and one for numpy in a process of ours, and a lane on each core.

A second thread for XLA gains less than a second lane or a second process does, and results repeat bit for bit
only with the same number; so it is one on every engine and at every preset. Set PJRT_NPROC to choose another.
A process that is not ours keeps the threads it has."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable
from itertools import islice
from typing import TypeVar

Lane = TypeVar("Lane")
Found = TypeVar("Found")


ONE = {"PJRT_NPROC": "1", "OPENBLAS_NUM_THREADS": "1", "JAX_CPU_ENABLE_ASYNC_DISPATCH": "0"}
"""Without asynchronous dispatch, lanes on several threads do not wait for one another."""


def one() -> None:
    """The default of our own processes; it must be set before jax and numpy are imported."""
    for name, value in ONE.items():
        os.environ.setdefault(name, value)


def cores() -> list[int]:
    """The cores that this process may use."""
    return (
        sorted(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else list(range(os.cpu_count() or 1))
    )


def of_xla() -> int:
    """How many XLA has."""
    given = os.environ.get("PJRT_NPROC", "")
    return int(given) if given.isdigit() and int(given) > 0 else len(cores())


_compiled: set[Hashable] = set()


def on_each_core(what: Hashable, function: Callable[[Lane], Found], lanes: Iterable[Lane]) -> list[Found]:
    """What a function finds for each lane, in double precision, as many at a time as there are cores. The
    first time that this is computed, its first lane goes alone: it compiles for all."""
    from concurrent.futures import ThreadPoolExecutor

    from stagewise.precision import in_double

    waiting, doubled = iter(lanes), in_double(function)
    found = [] if what in _compiled else [doubled(lane) for lane in islice(waiting, 1)]
    _compiled.add(what)
    with ThreadPoolExecutor(len(cores())) as pool:
        return found + list(pool.map(doubled, waiting))
