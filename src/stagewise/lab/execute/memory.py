"""Checks before a group is run whether there is enough memory for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from stagewise.errors import Refused
from stagewise.precision import in_double

if TYPE_CHECKING:
    from stagewise.lab.execute.jobs import Group
    from stagewise.lab.spec.experiment import Experiment

BYTES_A_WEIGHT = 12  # for a network's weight, and the two averages of its gradient that Adam keeps
FEW = 16  # with more lanes than this, one is begun first to see what all of them would take
_LIMITS = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")


@in_double
def check_state(group: Group) -> None:
    """Refuse a group if the state of all its lanes does not fit. A chunk needs it twice, since it begins with
    one state and ends with another."""
    lanes, experiment = sum(block.last - block.first for block in group), group[0].experiment
    what, fix = f"the state of {lanes} seeds side by side", "a smaller model or fewer --seeds may do"
    check(2 * lanes * experiment.trained_numbers * BYTES_A_WEIGHT, what, fix)
    if lanes > FEW:
        check(2 * lanes * _lane(experiment), what, fix)


def check_many(groups: Sequence[Group]) -> None:
    """Before the first group is begun, refuse groups whose state does not fit. Only experiments with several
    blocks are checked here."""
    count = Counter(block.experiment for group in groups for block in group)
    for group in groups:
        if count[group[0].experiment] > 1:
            check_state(group)


_lanes: dict[tuple[str, str], int] = {}


def _lane(experiment: Experiment) -> int:
    """The bytes of one lane's state."""
    which = experiment.name, experiment.digest
    if which not in _lanes:
        _lanes[which] = size(experiment.start(np.arange(1)))
    return _lanes[which]


def check(needed: int, what: str, fix: str) -> None:
    """Refuse what takes more memory than there is."""
    there = available()
    if needed > there:
        raise Refused(f"{what} takes {needed / 1e9:,.1f} GB of memory, of {there / 1e9:,.1f} GB free; {fix}")


def size(tree: Any) -> int:
    """The bytes of all arrays in a tree."""
    return sum(int(np.prod(leaf.shape, dtype=float)) * leaf.dtype.itemsize for leaf in _arrays(tree))


def _arrays(tree: Any) -> Iterator[Any]:
    return (np.asarray(leaf) if np.isscalar(leaf) else leaf for leaf in jax.tree.leaves(tree))


def _cached_files() -> int:
    """The bytes that the control group counts as used but the kernel frees when they are needed: files that
    were read or written."""
    try:
        lines = _LIMITS[1].with_name("memory.stat").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))


def available() -> float:
    """Return the bytes that are free for this process, or infinity if the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        [free] = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    except (OSError, ValueError):
        return float("inf")
    try:
        most, used = (int(path.read_text()) for path in _LIMITS)
        return min(free, most - used + _cached_files())
    except (OSError, ValueError):  # no limit
        return free
