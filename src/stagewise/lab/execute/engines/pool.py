"""Several processes on this machine, one thread and one core each."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from stagewise import process, threads
from stagewise.errors import Refused, require
from stagewise.lab.execute.engines import attempt, parted
from stagewise.lab.execute.jobs import Group, read_group, to_json
from stagewise.lab.execute.progress import Progress

TRIES = 3  # that a group has if its worker dies


class Pool:
    """Workers are spawned, never forked. If one dies, the groups that had begun are tried one by one, so that
    the one that kills its worker is known."""

    def __init__(self, workers: int | None = None):
        cores = threads.cores()
        require(
            workers is None or 1 <= workers <= 1024,
            f"a pool has between 1 and 1024 workers, not {workers} (set --workers)",
        )
        self.cores = [cores[n % len(cores)] for n in range(workers or len(cores))]

    @property
    def workers(self) -> int:
        return len(self.cores)

    def run(self, groups: Sequence[Group], root: Path, progress: Progress, fail_fast: bool) -> None:
        left, idle = list(groups), 0
        progress.begin(f"{len(groups)} groups of jobs on {len(self.cores)} workers", len(groups))
        try:
            while left:
                before = len(left)
                if self._round(left, self.cores, root, progress, fail_fast):
                    return
                suspects = [
                    group
                    for group in left
                    if any(block.folder.exists() and not block.finished for block in group)
                ]
                for group in suspects:
                    left.remove(group)
                    if self._alone(group, root, progress, fail_fast):
                        return
                idle = idle + 1 if len(left) == before else 0
                require(
                    idle < TRIES,
                    "the workers of the pool die before they begin (a script that calls sweep needs `if "
                    "__name__ == '__main__':` around it)",
                )
        finally:
            progress.end()

    def _alone(self, group: Group, root: Path, progress: Progress, fail_fast: bool) -> bool:
        """A group that may have killed its worker, by itself, until it is done or has died too often; then
        each of its blocks alone, to find the one that does. Whether all should end."""
        one = [group]
        for _ in range(TRIES):
            if self._round(one, self.cores[:1], root, progress, fail_fast):
                return True
            if not one:
                return False
        if len(group) > 1:
            return any(self._alone(part, root, progress, fail_fast) for part in parted(group))
        group[0].fail(f"its worker died {TRIES} times (out of memory?)")
        progress.note(f"{group[0].folder} failed: its worker died {TRIES} times")
        return fail_fast

    def _round(
        self, left: list[Group], cores: Sequence[int], root: Path, progress: Progress, fail_fast: bool
    ) -> bool:
        """One pool, until all is done or a worker dies and takes the pool with it; what is done is taken from
        `left`. Whether all should end, for a failure."""
        context = get_context("spawn")
        free = context.SimpleQueue()
        for core in cores:
            free.put(core)
        pool = ProcessPoolExecutor(min(len(cores), len(left)), context, _begin, (free, os.getpid()))
        try:
            with _interrupts_held():  # workers inherit that, and end when they are told to
                waiting: dict[Future, Group] = {
                    pool.submit(_work, to_json(group), str(root), fail_fast): group for group in left
                }
            while waiting:
                began = time.monotonic()
                ended, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in ended:
                    failed, refused = future.result()
                    left.remove(waiting.pop(future))
                    if refused:
                        raise Refused(refused)
                    for line in failed:
                        progress.note(f"failed: {line}")
                    progress.advance("sweeping", 0, time.monotonic() - began)
                    if failed and fail_fast:
                        _end(pool)
                        return True
        except BrokenProcessPool:
            progress.note("a worker died; what it had begun goes on from its last checkpoint")
        except BaseException:
            _end(pool)
            raise
        finally:
            pool.shutdown(cancel_futures=True)
        return False


def _end(pool: ProcessPoolExecutor) -> None:
    """Ask the workers to stop: what they have done is saved at their next chunk."""
    for worker in (pool._processes or {}).values():
        if worker.pid is not None:
            os.kill(worker.pid, signal.SIGTERM)


@contextmanager
def _interrupts_held():
    """Hold Ctrl-C back for a moment. Processes that are started meanwhile never get it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(cores: Any, parent: int) -> None:
    """A worker has one core, the threads of a process of ours, takes SIGTERM as a request to stop, and ends
    with its parent."""
    process.begin()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {cores.get()})
    from stagewise.lab.execute import interrupt

    interrupt.listen()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _work(stored: list[dict[str, Any]], root: str, fail_fast: bool) -> tuple[list[str], str]:
    """Compute a group: what failed, and why all must stop, if so."""
    try:
        return attempt(read_group(stored, Path(root)), Progress(), fail_fast), ""
    except Refused as refusal:
        return [], str(refusal)
