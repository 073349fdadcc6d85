"""Long work in units that a session can finish. A unit is a group: what it found is stored when it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil

from stagewise.lab.execute.estimate import estimate
from stagewise.lab.execute.jobs import Group, Jobs
from stagewise.lab.execute.progress import Progress, duration
from stagewise.lab.store.block import Block

MOST_SECONDS = 90 * 60.0  # of a unit at preset long


def in_units(
    jobs: Jobs,
    progress: Progress = Progress(),
    most: float = MOST_SECONDS,
    seconds: Callable[[Group], float] = lambda group: estimate([group]).total,
) -> Jobs:
    """The same jobs, where no group that has not begun takes more than `most` seconds on one core.

    Blocks of seeds are cut where one alone would take longer. A single seed cannot be cut: `progress` is told
    how long it takes."""
    groups: list[Group] = []
    cut: dict[Block, list[Block]] = {}
    for group in jobs.groups:
        if any(block.saved_chunks() or block.failure for block in group):
            groups.append(group)
            continue
        a_seed = seconds(group) / sum(block.last - block.first for block in group)
        room = max(1, int(most / a_seed)) if a_seed > 0 else 10**9
        if a_seed > most:
            progress.note(f"one seed of {group[0].experiment.name} takes about {duration(a_seed)}")
        parts = [part for block in group for part in cut.setdefault(block, _parts(block, room))]
        groups += _together(parts, room)
    blocks = {
        experiment: [part for block in mine for part in cut.get(block, [block])]
        for experiment, mine in jobs.blocks.items()
    }
    return Jobs(blocks, groups)


def _parts(block: Block, room: int) -> list[Block]:
    """A block in as few parts as have room, of nearly equal size."""
    count = ceil((block.last - block.first) / room)
    ends = [block.first + round((block.last - block.first) * i / count) for i in range(count + 1)]
    if count == 1:
        return [block]
    code = block.folder.name.rpartition(".")[2]
    return [
        replace(block, first=first, last=last, folder=block.folder.with_name(f"seeds-{first}-{last}.{code}"))
        for first, last in zip(ends, ends[1:])
    ]


def _together(parts: list[Block], room: int) -> list[Group]:
    """Parts side by side, as many as have room."""
    groups: list[Group] = []
    lanes = room
    for part in parts:
        size = part.last - part.first
        if lanes + size > room:
            groups.append([])
            lanes = 0
        groups[-1].append(part)
        lanes += size
    return groups
