"""Engines: where groups of blocks are computed. Results and failures are stored in the run folders, so an
engine returns nothing.

`process` computes in this process, one group after another; `pool` in several processes, on the cores of this
machine; `ray` on a Ray cluster; `auto` in a pool if there are enough groups for it, else in this process."""

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
# With fewer groups than this a pool gains nothing: each worker must start, and compile what groups share.
ENOUGH = 3


class Engine(Protocol):
    """Computes groups. A block that cannot be computed is stored as failed, and the others go on; with
    `fail_fast` the first failure ends the work."""

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
    """Uses a pool if there are enough groups to be worth it, else this process."""

    @property
    def workers(self) -> int:
        return len(threads.cores())

    def run(self, groups: Sequence[Group], root: Path, progress: Progress, fail_fast: bool) -> None:
        pool = len(groups) >= ENOUGH and self.workers > 1
        engine("pool" if pool else "process").run(groups, root, progress, fail_fast)


class InProcess:
    """Computes one group after another in this process."""

    workers = 1

    def run(self, groups: Sequence[Group], root: Path, progress: Progress, fail_fast: bool) -> None:
        for group in groups:
            if attempt(group, progress, fail_fast) and fail_fast:
                return


def attempt(group: Group, progress: Progress, fail_fast: bool = False) -> list[str]:
    """Compute a group. If it breaks, each of its blocks is computed alone, so that only those that are broken
    are stored as failed. Returns the reasons of those that failed."""
    from stagewise.lab.execute import interrupt
    from stagewise.lab.execute.compute import compute

    try:
        compute(group, progress)
        return []
    except Unwritable:  # the disk is at fault, not the job
        raise
    except OSError as error:
        raise Refused(f"it stops here, and goes on with the same command: {error}") from error
    except Exception as error:  # whatever goes wrong in a job is stored as its result
        interrupt.check()  # a library may have turned a request to stop into another exception
        if len(group) == 1:
            return [_stored(group[0], error, progress)]
        reasons = []
        for one in parted(group):
            reasons += attempt(one, progress)
            if reasons and fail_fast:
                break
        return reasons


def parted(group: Group) -> list[Group]:
    """Return the unfinished blocks of a group that broke, each as a group that runs alone from now on."""
    for block in group:
        block.part()
    return [[block] for block in group if not block.finished]


def how_far(group: Group) -> float:
    """Return which share of a group's chunks is done, as another process has written it."""
    try:
        told = read_json(group[0].folder / "progress.json")
        return min(1.0, told["chunk"] / told["chunks"])
    except (Damaged, KeyError, TypeError, ZeroDivisionError):
        return 0.0  # nothing is written yet, or it is already deleted


def _stored(block: Block, error: Exception, progress: Progress) -> str:
    """Store a block as failed. Returns its name and the first line of the reason."""
    first = one_line(error)
    block.fail(first + "\n\n" + "".join(traceback.format_exception(error)))
    progress.note(f"{block.folder} failed: {first}")
    return f"{block.name}: {first}"
