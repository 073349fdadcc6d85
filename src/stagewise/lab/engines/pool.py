"""Several processes on this machine, one thread and one core each."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Sequence

from stagewise.errors import Refused, require
from stagewise.lab.engines import stop_on
from stagewise.lab.jobs import Group, to_json
from stagewise.lab.progress import Silent

TRIES = 3  # that a group has if its worker dies


class Pool:
    """Workers are spawned, never forked. One that dies is replaced, and its group tried again from its last checkpoint."""

    def __init__(self, workers: int | None = None):
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
        require(workers is None or 1 <= workers <= 1024, f"a pool has between 1 and 1024 workers, not {workers} (set --workers)")
        self.cores = [cores[n % len(cores)] for n in range(workers or len(cores))]

    def run(self, groups: Sequence[Group], root: Path, progress: Silent, fail_fast: bool) -> None:
        left = {n: TRIES for n in range(len(groups))}
        progress.begin(f"{len(groups)} groups of jobs on {len(self.cores)} workers", len(groups))
        try:
            while left:
                self._round(groups, left, root, progress, fail_fast)
        finally:
            progress.end()

    def _round(self, groups: Sequence[Group], left: dict[int, int], root: Path, progress: Silent, fail_fast: bool) -> None:
        """One pool, until all is done or a worker dies and takes the pool with it."""
        context = get_context("spawn")
        cores = context.SimpleQueue()
        for core in self.cores:
            cores.put(core)
        pool = ProcessPoolExecutor(min(len(self.cores), len(left)), context, _begin, (cores, os.getpid()))
        try:
            waiting: dict[Future, int] = {pool.submit(_work, to_json(groups[n]), str(root)): n for n in left}
            while waiting:
                began = time.monotonic()
                ended, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in ended:
                    n = waiting.pop(future)
                    failed, refused = future.result()
                    del left[n]
                    if refused:
                        raise Refused(refused)
                    for line in failed:
                        progress.note(f"failed: {line}")
                    progress.advance("sweeping", 0, time.monotonic() - began)
                    stop_on(failed, fail_fast)
        except BrokenProcessPool:
            self._count(groups, left, progress)
        except BaseException:
            for process in (pool._processes or {}).values():  # what they have done is saved at their next chunk
                os.kill(process.pid, signal.SIGTERM)
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _count(self, groups: Sequence[Group], left: dict[int, int], progress: Silent) -> None:
        """A worker died. Nobody knows with which group, so all that had begun have one try less."""
        progress.note("a worker died; its group goes on from its last checkpoint")
        for n in list(left):
            begun = any(block.folder.exists() and not block.finished for block in groups[n])
            left[n] -= begun
            if not left[n]:
                for block in groups[n]:
                    if not block.finished:
                        block.fail(f"its worker died {TRIES} times (out of memory?)")
                del left[n]


def _begin(cores: Any, parent: int) -> None:
    """A worker has one thread and one core, takes SIGTERM as a request to stop, and ends with its parent."""
    os.environ["PJRT_NPROC"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {cores.get()})
    from stagewise.lab import interrupt

    interrupt.listen()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _work(stored: list[dict[str, Any]], root: str) -> tuple[list[str], str]:
    """Compute a group: what failed, and why all must stop, if so."""
    from stagewise.lab.engines import attempt
    from stagewise.lab.jobs import read_group

    try:
        return attempt(read_group(stored, Path(root)), Silent()), ""
    except Refused as refusal:
        return [], str(refusal)
