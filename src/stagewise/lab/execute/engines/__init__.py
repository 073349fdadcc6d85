"""Engines: where groups of jobs are computed. Results come through the run folders, so an engine returns
nothing but what failed.

`process` computes in this process, one group after another; `pool` in several, on the cores of this machine;
`ray` on a Ray cluster; `auto` in a pool where there are groups enough for it, else in this process."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from stagewise import threads
from stagewise.errors import Refused, Unwritable, nearest, one_line, require
from stagewise.lab.execute.jobs import Group
from stagewise.lab.execute.progress import Progress
from stagewise.lab.store.block import Block
from stagewise.lab.store.files import Damaged, read_json

NAMES = ("auto", "process", "pool", "ray")
ENOUGH = 3  # groups that are worth a pool: its workers must begin, and compile what they share once each


class Engine(Protocol):
    """Computes groups; whatever cannot be computed is stored as failed, and the others go on, unless the
    first failure is to end it."""

    @property
    def workers(self) -> int:
        """How many groups are computed at a time."""
        ...

    def run(self, groups: Sequence[Group], root: Path, progress: Progress, fail_fast: bool) -> None: ...


def engine(name: str, workers: int | None = None, address: str | None = None) -> Engine:
    """An engine by its name."""
    require(workers is None or name == "pool", "workers are those of the pool (set --engine pool)")
    require(address is None or name == "ray", "an address is that of a Ray cluster (set --engine ray)")
    if name == "auto":
        return AsFits()
    if name == "pool":
        from stagewise.lab.execute.engines.pool import Pool

        return Pool(workers)
    if name == "ray":
        from stagewise.lab.execute.engines.on_ray import OnRay

        return OnRay(address)
    if name != "process":
        raise Refused(
            f"unknown engine {name!r}{nearest(name, NAMES)}; there are {', '.join(NAMES)} (set --engine)"
        )
    return InProcess()


class AsFits:
    """A pool where there are groups enough to be worth it, else this process."""

    @property
    def workers(self) -> int:
        return len(threads.cores())

    def run(self, groups: Sequence[Group], root: Path, progress: Progress, fail_fast: bool) -> None:
        pool = len(groups) >= ENOUGH and self.workers > 1
        engine("pool" if pool else "process").run(groups, root, progress, fail_fast)


class InProcess:
    """One group after another, here."""

    workers = 1

    def run(self, groups: Sequence[Group], root: Path, progress: Progress, fail_fast: bool) -> None:
        for group in groups:
            if attempt(group, progress, fail_fast) and fail_fast:
                return


def attempt(group: Group, progress: Progress, fail_fast: bool = False) -> list[str]:
    """Compute a group; of one that breaks, each block alone, so that only what is broken is stored as failed.
    Returns the reasons."""
    from stagewise.lab.execute import interrupt
    from stagewise.lab.execute.compute import compute

    try:
        compute(group, progress)
        return []
    except Unwritable:  # no fault of the job
        raise
    except OSError as error:
        raise Refused(f"it stops here, and goes on with the same command: {error}") from error
    except Exception as error:  # whatever a job does wrong is its result
        interrupt.check()  # a library may have made another exception of a request to stop
        if len(group) == 1:
            return [_stored(group[0], error, progress)]
        reasons = []
        for one in parted(group):
            reasons += attempt(one, progress)
            if reasons and fail_fast:
                break
        return reasons


def parted(group: Group) -> list[Group]:
    """The blocks of a group that broke, each alone from now on."""
    for block in group:
        block.part()
    return [[block] for block in group if not block.finished]


def how_far(group: Group) -> float:
    """What share of a group's chunks another process has done."""
    try:
        told = read_json(group[0].folder / "progress.json")
        return min(1.0, told["chunk"] / told["chunks"])
    except (Damaged, KeyError, TypeError, ZeroDivisionError):
        return 0.0  # nothing is told yet, or no longer


def _stored(block: Block, error: Exception, progress: Progress) -> str:
    """Store that a job failed; the first line of why."""
    first = one_line(error)
    block.fail(first + "\n\n" + "".join(traceback.format_exception(error)))
    progress.note(f"{block.folder} failed: {first}")
    return f"{block.name}: {first}"
