"""Engines: where groups of jobs are computed. Results come through the run folders, so an engine returns nothing but what failed.

`process` computes in this process, one group after another; `pool` in several, on the cores of this machine; `ray` on a Ray cluster."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Protocol, Sequence

from stagewise.errors import Refused, nearest
from stagewise.lab.jobs import Group
from stagewise.lab.progress import Silent

NAMES = ("process", "pool", "ray")


class Engine(Protocol):
    """Computes groups; whatever cannot be computed is stored as failed, and the others go on."""

    def run(self, groups: Sequence[Group], root: Path, progress: Silent, fail_fast: bool) -> None: ...


def engine(name: str, workers: int | None = None, address: str | None = None) -> Engine:
    """An engine by its name."""
    if name == "pool":
        from stagewise.lab.engines.pool import Pool

        return Pool(workers)
    if name == "ray":
        from stagewise.lab.engines.on_ray import OnRay

        return OnRay(address)
    if name != "process":
        raise Refused(f"unknown engine {name!r}{nearest(name, NAMES)}; there are {', '.join(NAMES)} (set --engine)")
    return InProcess()


class InProcess:
    """One group after another, here."""

    def run(self, groups: Sequence[Group], root: Path, progress: Silent, fail_fast: bool) -> None:
        for group in groups:
            stop_on(attempt(group, progress), fail_fast)


def attempt(group: Group, progress: Silent) -> list[str]:
    """Compute a group; of one that breaks, each block alone, so that only what is broken is stored as failed. Returns the reasons."""
    from stagewise.lab.engine import compute

    try:
        compute(group, progress)
        return []
    except Refused:  # a full disk, a folder that cannot be written: no fault of the job
        raise
    except Exception as error:  # whatever a job does wrong is its result
        if len(group) > 1:
            for block in group:
                block.part()
            return [reason for block in group for reason in attempt([block], progress)]
        reason = f"{type(error).__name__}: {error}".strip()
        group[0].fail(reason + "\n\n" + "".join(traceback.format_exception(error)))
        progress.note(f"{group[0].folder} failed: {reason.splitlines()[0]}")
        return [f"{'/'.join(group[0].folder.parts[-3:])}: {reason.splitlines()[0]}"]


def stop_on(reasons: list[str], fail_fast: bool) -> None:
    if reasons and fail_fast:
        raise Refused(f"a job failed, and the rest was not run: {reasons[0]}")
