"""Several processes on this machine, one thread and one core each."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from stagewise import process, threads
from stagewise.errors import Refused, require
from stagewise.lab.execute.engines import attempt, how_far, parted
from stagewise.lab.execute.jobs import Group, read_group, to_json
from stagewise.lab.execute.progress import Progress

LOOK_EVERY = 1.0  # seconds between two looks at how far the workers are
TRIES = 3  # how many times a group is tried if its workers die


class Pool:
    """Workers are spawned, never forked. A group whose worker dies is tried again by a new worker. If its
    workers die TRIES times, each of its blocks is run alone, so that only the block that kills its worker
    fails."""

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
        left, died = Left(groups), Counter()
        workers = [Worker(core, root, fail_fast) for core in self.cores[: len(groups)]]
        progress.begin(f"{len(groups)} groups of jobs on {len(workers)} workers", len(groups))
        try:
            while left or any(worker.busy for worker in workers):
                for worker in workers:
                    if left and not worker.busy:
                        others = [other.group for other in workers if other.busy]
                        worker.begin(left.next_after(worker.group, others))
                for worker in _ended(workers, progress):
                    try:
                        failed, refused = worker.result()
                    except BrokenProcessPool:
                        failed, refused = _died(worker, died, left, progress), ""
                    if refused:
                        raise Refused(refused)
                    for line in failed:
                        progress.note(f"failed: {line}")
                    if failed and fail_fast:
                        return
        finally:
            for worker in workers:
                worker.end()
            progress.end()


class Left:
    """The groups that no worker has begun, by experiment. A worker stays with an experiment while there is
    more of it, since what its groups share is then compiled once."""

    def __init__(self, groups: Sequence[Group]):
        self.by_name: dict[str, list[Group]] = {}
        for group in groups:
            self.by_name.setdefault(_name(group), []).append(group)

    def __bool__(self) -> bool:
        return any(self.by_name.values())

    def again(self, group: Group) -> None:
        """Put a group back, in front of all others."""
        self.by_name = {_name(group): [group, *self.by_name.pop(_name(group), [])]} | self.by_name

    def next_after(self, last: Group, others: Sequence[Group]) -> Group:
        """Return the next group for a worker: one of the experiment that it did last; else one of an
        experiment that no other worker is at; else any. Of several experiments, the one with the most groups
        left is chosen."""
        there = {name: groups for name, groups in self.by_name.items() if groups}
        if last and _name(last) in there:
            return there[_name(last)].pop(0)
        taken = {_name(group) for group in others}
        free = [name for name in there if name not in taken] or list(there)
        return there[max(free, key=lambda name: len(there[name]))].pop(0)


def _name(group: Group) -> str:
    return group[0].experiment.name


class Worker:
    """A process on a core, and the group that it computes. The process starts when it gets its first group,
    and is started again after it died."""

    def __init__(self, core: int, root: Path, fail_fast: bool):
        self.core, self.root, self.fail_fast = core, root, fail_fast
        self.group: Group = []
        self.future: Future | None = None
        self._start()

    def _start(self) -> None:
        context = get_context("spawn")
        self.begun = context.Event()
        self.pool = ProcessPoolExecutor(1, context, _begin, (self.core, os.getpid(), self.begun))

    @property
    def busy(self) -> bool:
        return self.future is not None

    def begin(self, group: Group) -> None:
        self.group = group
        with _interrupts_held():  # a worker inherits this, and ends when this process tells it to
            self.future = self.pool.submit(_work, to_json(group), str(self.root), self.fail_fast)

    def result(self) -> tuple[list[str], str]:
        """Return what failed in the group, and why all work must stop, or an empty text if it need not.
        Raises BrokenProcessPool if the process has died."""
        assert self.future is not None
        future, self.future = self.future, None
        return future.result()

    def start_again(self) -> None:
        self.pool.shutdown()
        self._start()

    def end(self) -> None:
        """Ask the process to stop, if it is at work. It saves what it has done before it ends."""
        if self.busy:
            for one in (self.pool._processes or {}).values():
                if one.pid is not None:
                    os.kill(one.pid, signal.SIGTERM)
        self.pool.shutdown(cancel_futures=True)


def _ended(workers: Sequence[Worker], progress: Progress) -> Iterator[Worker]:
    """Wait for at most LOOK_EVERY seconds, show how far the workers are, and yield those that have ended
    their group."""
    at_work = {worker.future: worker for worker in workers if worker.future}
    began = time.monotonic()
    ended, _ = wait(at_work, LOOK_EVERY, FIRST_COMPLETED)
    progress.partly(sum(how_far(worker.group) for future, worker in at_work.items() if future not in ended))
    for future in ended:
        yield at_work[future]
        progress.advance("running", 0, time.monotonic() - began)


def _died(worker: Worker, died: Counter, left: Left, progress: Progress) -> list[str]:
    """Start a worker again that has died, and put its group back, whole or as single blocks. Returns what has
    failed for good."""
    group, begun = worker.group, worker.begun.is_set()
    worker.start_again()
    names = tuple(block.name for block in group)
    died[names] += 1
    require(
        begun or died[names] < TRIES,
        "the workers of the pool die before they begin (a script that calls sweep needs `if __name__ == "
        "'__main__':` around it)",
    )
    if died[names] < TRIES:
        progress.note("a worker died; what it had begun goes on from its last checkpoint")
        left.again(group)
    elif len(group) > 1:
        for part in parted(group):
            left.again(part)
    else:
        group[0].fail(f"its worker died {TRIES} times (out of memory?)")
        return [f"{group[0].name}: its worker died {TRIES} times"]
    return []


@contextmanager
def _interrupts_held():
    """Hold Ctrl-C back for a moment. Processes that are started in that time never get it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(core: int, parent: int, begun: Any) -> None:
    """Begin a worker: it uses one core and the threads of a process of ours, takes SIGTERM as a request to
    stop, and ends when its parent ends."""
    process.begin()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    from stagewise.lab.execute import interrupt

    interrupt.listen()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    begun.set()


def _work(stored: list[dict[str, Any]], root: str, fail_fast: bool) -> tuple[list[str], str]:
    """Compute a group. Returns what failed, and why all work must stop, or an empty text if it need not."""
    try:
        return attempt(read_group(stored, Path(root)), Progress(), fail_fast), ""
    except Refused as refusal:
        return [], str(refusal)
