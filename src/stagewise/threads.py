"""How many threads XLA and numpy have.

One each, unless you say otherwise: programs of preset `quick` lose to a second thread more than they gain
(measured: the same time, an eighth more work). The large presets take all cores, and models that fill one
train a seed on each. Results repeat bit for bit only with the same number: set PJRT_NPROC to choose it."""

import os

GIVEN = "PJRT_NPROC" in os.environ


def one() -> None:
    """The default; it must be set before jax is imported."""
    os.environ.setdefault("PJRT_NPROC", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def all_cores() -> None:
    """One thread a core, unless the user has chosen."""
    if not GIVEN:
        os.environ["PJRT_NPROC"] = str(
            len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        )


def count() -> int:
    """How many XLA has."""
    given = os.environ.get("PJRT_NPROC", "")
    return int(given) if given.isdigit() and int(given) > 0 else os.cpu_count() or 1
