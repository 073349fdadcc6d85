"""Computes a group of blocks as one compiled program. It goes on where the group was stopped, saves states on
the way, and stores the results."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import jax
import numpy as np

from stagewise.errors import number
from stagewise.lab.execute import interrupt, memory
from stagewise.lab.execute.jobs import Group, held
from stagewise.lab.execute.progress import Progress
from stagewise.lab.store.block import Block
from stagewise.lab.store.netcdf import encode
from stagewise.lab.store.run import at_full_length, flatten, label, unflatten
from stagewise.precision import in_double
from stagewise.training.program import Program, State, nudged

SECONDS_BETWEEN_CHECKPOINTS = number(
    "STAGEWISE_CHECKPOINT_SECONDS", os.environ.get("STAGEWISE_CHECKPOINT_SECONDS", "5")
)
SECONDS_BETWEEN_WORDS = 1.0  # how often at most progress.json is written
SHARE_OF_TIME = 0.05  # share of the time that checkpoints may take at most; the same for progress.json


@in_double
def compute(group: Group, progress: Progress) -> None:
    """Run a group to its end, from where it was left, and store it. Blocks that another process has finished
    in the meantime are left out."""
    program = group[0].experiment.program()
    with held(group, lambda block: progress.note(f"{block.folder} is being run by another process; waiting")):
        group = [block for block in group if not block.finished]
        if not group:
            return
        lanes = sum(block.last - block.first for block in group)
        names = dict.fromkeys(block.experiment.name for block in group)
        progress.begin(f"{', '.join(names)} ({lanes} seeds)", program.chunks)
        try:
            _compute_locked(program, group, progress)
        finally:
            progress.end()


def _compute_locked(program: Program, group: Group, progress: Progress) -> None:
    if all(block.stored for block in group):  # the process was killed before all were marked as finished
        for block in group:
            block.finish()
        return
    for block in group:
        block.prepare(like=group[0])
    state, kept, chunk, spent = _resume(program, group, progress)
    lanes = [block.last - block.first for block in group]
    started, saving, telling = (
        time.monotonic(),
        Pace(SECONDS_BETWEEN_CHECKPOINTS),
        Pace(SECONDS_BETWEEN_WORDS),
    )
    progress.resume(chunk)
    if chunk < program.chunks:
        memory.check(program.takes(state, chunk), "one step", "smaller sizes or fewer --seeds may do")
    try:
        while chunk < program.chunks and not program.finished(state):
            interrupt.check()
            before = time.monotonic()
            advanced, records = program.advance(state, chunk)
            state, kept, chunk = jax.tree.map(np.asarray, advanced), [*kept, records], chunk + 1
            stage, steps = program.describe(chunk - 1)
            progress.advance(stage, steps * sum(lanes), (now := time.monotonic()) - before)
            if telling.due():
                for block in group:
                    block.tell(chunk, program.chunks, stage, steps * sum(lanes) / (now - before))
                telling.done()
            if saving.due():
                _checkpoint(group, lanes, state, kept, chunk, spent + now - started)
                saving.done()
    except KeyboardInterrupt:
        if kept:
            _checkpoint(group, lanes, state, kept, chunk, spent + time.monotonic() - started)
        raise
    seconds = spent + time.monotonic() - started
    company, lasting = [block.name for block in group], seconds >= 1
    records = {
        name: at_full_length(np.concatenate([part[name] for part in kept], 1), program.records)
        for name in kept[0]
    }
    outcomes, final, labels = program.outcomes(state), flatten(program.final(state)), program.labels()
    for block, lane in zip(group, _lanes(lanes)):
        mine, ended, last = (
            {name: array[lane] for name, array in part.items()} for part in (records, outcomes, final)
        )
        trajectory = encode(label(program, labels, mine, ended, block))
        block.store(trajectory, last, seconds / len(group), company, lasting)
    # Finish only when all are stored: after a kill in between, no block may run again in another group.
    for block in group:
        block.finish(lasting)


class Pace:
    """Says when something is to be done again: after `seconds` at the earliest, and so rarely that it takes
    at most SHARE_OF_TIME of the time."""

    def __init__(self, seconds: float):
        self.seconds = self.wait = seconds
        self.last = self.began = time.monotonic()

    def due(self) -> bool:
        self.began = time.monotonic()
        return self.began - self.last > self.wait

    def done(self) -> None:
        self.last = time.monotonic()
        self.wait = max(self.seconds, (self.last - self.began) / SHARE_OF_TIME)


def _resume(program: Program, group: list[Block], progress: Progress):
    """Return the state of the whole group after the latest chunk that all its blocks have saved, or at its
    start if there is none; also the records so far, the number of chunks done and the seconds spent."""
    saved = [block.checkpoints(progress.note) for block in group]
    common = set.intersection(*(set(chunks) for chunks in saved))
    if common:
        chunk = max(common)
        for block in group:
            block.go_back(chunk)
        parts, seconds = zip(*(chunks[chunk] for chunks in saved))
        arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        state = unflatten({name: array for name, array in arrays.items() if not name.startswith("record/")})
        kept = {
            name.removeprefix("record/"): array
            for name, array in arrays.items()
            if name.startswith("record/")
        }
        return state, [kept] if kept else [], chunk, sum(seconds)
    for block in group:
        block.begin_again()
    memory.check_state(group)
    return started(group), [], 0, 0.0


def started(group: Group) -> State:
    """Return the state of all lanes of a group at its start."""
    parts = [
        nudged(block.experiment.start(np.arange(block.first, block.last)), block.experiment.perturbed)
        for block in group
    ]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def _checkpoint(group, lanes, state, kept, chunk, seconds) -> None:
    """Save the state and the records so far, in one file for each block."""
    records = {f"record/{name}": np.concatenate([part[name] for part in kept], axis=1) for name in kept[0]}
    arrays = flatten(state) | records
    for block, lane in zip(group, _lanes(lanes)):
        block.save_checkpoint(
            {name: array[lane] for name, array in arrays.items()}, chunk, seconds / len(group)
        )


def _lanes(sizes: Sequence[int]) -> list[slice]:
    ends = np.cumsum(sizes)
    return [slice(int(end - size), int(end)) for end, size in zip(ends, sizes)]
