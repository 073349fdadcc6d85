"""The number of threads: XLA and numpy have one each in a process of ours, and lanes may run on all cores.

A second thread for XLA gains less than a second lane or a second process does. Results repeat bit for bit
only with the same number of threads, so it is one on every engine and at every preset. Set PJRT_NPROC to
choose another number. In a process that only imports us, the number stays as it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable
from itertools import islice
from typing import TypeVar

Lane = TypeVar("Lane")
Found = TypeVar("Found")


ONE = {"PJRT_NPROC": "1", "OPENBLAS_NUM_THREADS": "1", "JAX_CPU_ENABLE_ASYNC_DISPATCH": "0"}
"""The environment variables that give one thread to XLA and one to numpy. Without asynchronous dispatch,
lanes on several threads do not wait for one another."""


def one() -> None:
    """Use one thread, unless the user has chosen another number. Call it before jax and numpy are
    imported."""
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
    """Return how many threads XLA uses."""
    given = os.environ.get("PJRT_NPROC", "")
    return int(given) if given.isdigit() and int(given) > 0 else len(cores())


_compiled: set[Hashable] = set()


def on_each_core(what: Hashable, function: Callable[[Lane], Found], lanes: Iterable[Lane]) -> list[Found]:
    """Return what a function finds for each lane, in the order of the lanes. It runs in double precision, on
    as many lanes at a time as there are cores.

    `what` names the computation. When it is run for the first time, its first lane runs alone, because this
    compiles the function for all lanes."""
    from concurrent.futures import ThreadPoolExecutor

    from stagewise.precision import in_double

    waiting, doubled = iter(lanes), in_double(function)
    found = [] if what in _compiled else [doubled(lane) for lane in islice(waiting, 1)]
    _compiled.add(what)
    with ThreadPoolExecutor(len(cores())) as pool:
        return found + list(pool.map(doubled, waiting))
