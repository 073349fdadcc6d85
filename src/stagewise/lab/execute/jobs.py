"""What is to be computed, as data: the blocks of some experiments, and the missing blocks in groups. The
blocks of a group run as one program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from stagewise.errors import require
from stagewise.lab.execute.progress import Progress
from stagewise.lab.spec.experiment import Experiment
from stagewise.lab.spec.settings import from_json, which
from stagewise.lab.store.block import Block, code_of
from stagewise.lab.store.files import Damaged
from stagewise.lab.store.runs import blocks

MOST_LANES = 256  # the most lanes that run side by side, unless a program takes fewer

Group = list[Block]  # blocks whose programs are equal: they differ only in constants and seeds


@dataclass(frozen=True)
class Jobs:
    """The blocks of some experiments: all of them by experiment, and those that are missing, in groups."""

    blocks: Mapping[Experiment, list[Block]]
    groups: list[Group]

    @property
    def missing(self) -> list[Block]:
        return [block for group in self.groups for block in group]

    @property
    def all(self) -> list[Block]:
        return list({block.folder: block for parts in self.blocks.values() for block in parts}.values())

    @property
    def failed(self) -> dict[Block, str]:
        """The missing blocks that failed when they were run, with the reason."""
        return {block: reason for block in self.missing if (reason := block.failure)}

    def forgive(self) -> None:
        """Let blocks that failed be tried again."""
        for block in self.failed:
            block.forgive()

    @property
    def to_run(self) -> list[Group]:
        """The groups to run: the missing blocks without those that failed."""
        left = [[block for block in group if not block.failure] for group in self.groups]
        return [group for group in left if group]

    def left(self) -> Jobs:
        """Return the same jobs some time later. Only blocks that were missing are looked at again."""
        still = [[block for block in group if not block.finished] for group in self.groups]
        return Jobs(self.blocks, [group for group in still if group])


def jobs_of(
    experiments: Iterable[Experiment],
    root: Path,
    progress: Progress = Progress(),
    grouping: Sequence[Sequence[str]] = (),
    most_lanes: int | None = None,
    only_look: bool = False,
) -> Jobs:
    """Find the blocks of some experiments, and put those that are missing into groups. Experiments that
    differ only in their number of seeds share the blocks of the one with the most seeds.

    `grouping` lists the groups of an earlier plan, each block by the path of its folder below the root.
    Blocks that were grouped before stay together, whatever else is missing now, unless their group broke. So
    do blocks that ran to the end as one group that was not finished. `most_lanes` bounds all other groups.
    With `only_look`, damaged blocks are not set aside."""
    unique = list(dict.fromkeys(experiments))
    most: dict[tuple[str, str, int], Experiment] = {}
    for experiment in unique:
        known = most.setdefault(_identity(experiment), experiment)
        if experiment.lanes > known.lanes:
            most[_identity(experiment)] = experiment
    stored = {identity: blocks(experiment, root) for identity, experiment in most.items()}
    missing = {
        block.name: block
        for parts in stored.values()
        for block in parts
        if not is_whole(block, progress, only_look)
    }
    companies = dict.fromkeys(block.company for block in missing.values() if block.company)
    alone = [[missing.pop(name)] for name, block in list(missing.items()) if block.alone]
    kept = [[missing.pop(name) for name in names if name in missing] for names in (*grouping, *companies)]
    groups = (
        alone
        + [part for group in kept if group for part in _together(group)]
        + grouped(missing.values(), most_lanes or MOST_LANES)
    )
    return Jobs({experiment: stored[_identity(experiment)] for experiment in unique}, groups)


def _together(group: Group) -> list[Group]:
    """Return a planned group whole, or in parts if it cannot run as one. It is in parts if another sweep has
    taken some of its blocks further, since that work would be lost, or if its programs are not equal (in a
    plan that was tampered with).

    A group whose first save was cut short stays whole: some of its blocks have that one state, the others
    none, and all begin anew."""
    saved = [block.saved_chunks() for block in group]
    begun = [chunks for chunks in saved if chunks]
    in_common = not begun or (len(begun) == len(saved) and set.intersection(*saved))
    first_save_cut_short = len(set(map(frozenset, begun))) == 1 and len(begun[0]) == 1
    return (
        [group]
        if (in_common or first_save_cut_short) and len({_program(block) for block in group}) == 1
        else grouped(group, sum(block.last - block.first for block in group))
    )


def grouped(missing: Iterable[Block], most_lanes: int) -> list[Group]:
    """Put blocks whose programs are equal into groups, up to a number of lanes in each.

    A block that was interrupted is grouped only with blocks that have a saved chunk in common with it, so it
    does not wait for fresh ones."""
    groups: list[tuple[Any, Group, set[int], int]] = []
    programs: dict[Experiment, Any] = {}
    open_groups: dict[Any, list[int]] = {}
    for block in sorted(missing, key=lambda block: str(block.folder)):
        if block.experiment not in programs:
            programs[block.experiment] = _program(block)
        program, saved, size = (
            programs[block.experiment],
            block.saved_chunks() or {0},
            block.last - block.first,
        )
        for i in open_groups.setdefault(program, []):
            _, group, common, lanes = groups[i]
            if common & saved and lanes + size <= min(most_lanes, getattr(program, "most_lanes", 0)):
                groups[i] = (program, [*group, block], common & saved, lanes + size)
                break
        else:
            open_groups[program].append(len(groups))
            groups.append((program, [block], saved, size))
    return [group for _, group, _, _ in groups]


@contextmanager
def held(group: Group, waiting: Callable[[Block], None] = lambda block: None) -> Iterator[None]:
    """Hold the locks of all blocks of a group; `waiting` is called with each block that another process
    holds."""
    with ExitStack() as all_of_them:
        # One order for all processes, or two could wait for each other.
        for block in sorted(group, key=lambda block: str(block.folder)):
            all_of_them.enter_context(block.locked(partial(waiting, block)))
        yield


def _program(block: Block) -> Any:
    """Return a block's program, or the error if it cannot be made. No two errors are equal, so such a block
    is in a group of its own, and its run fails with the error."""
    try:
        return block.experiment.program()
    except Exception as error:
        return error


def is_whole(block: Block, progress: Progress, only_look: bool = False) -> bool:
    """Whether a block is finished and undamaged; a damaged one is set aside, by one process alone."""
    try:
        if block.finished:
            block.check()
        return block.finished
    except Damaged:
        if only_look:
            return False
        with block.locked(lambda: None):
            try:  # another process may have set it aside, or made it again, before this one had the lock
                if block.finished:
                    block.check()
                return block.finished
            except Damaged as error:
                progress.note(
                    f"{error}; the folder is kept as {block.set_aside().name} and the run is made again"
                )
                return False


def to_json(group: Group) -> list[dict[str, Any]]:
    """A group as plain values, for another process or machine."""
    return [
        {
            "experiment": block.experiment.name,
            "settings": block.experiment.stored(),
            "seeds": [block.first, block.last],
            "folder": block.name,
        }
        for block in group
    ]


def read_group(stored: Sequence[Mapping[str, Any]], root: Path) -> Group:
    """The group that `to_json` wrote, with its folders below a root."""
    from stagewise.lab import catalogue

    known = catalogue.experiments()
    for one in stored:
        ours, theirs = code_of(known[one["experiment"]]), one["folder"].rpartition(".")[2]
        require(
            ours == theirs,
            f"the code of {one['experiment']} is another here ({ours}) than where the sweep was planned "
            f"({theirs}): install the same stagewise everywhere",
        )
    group = []
    for one in stored:
        first, last = one["seeds"]
        experiment = from_json(known[one["experiment"]], one["settings"] | which(first, last))
        group.append(Block(experiment, first, last, root.joinpath(*one["folder"].split("/"))))
    return group


def _identity(experiment: Experiment) -> tuple[str, str, int]:
    return experiment.name, experiment.digest, experiment.seeds_from
