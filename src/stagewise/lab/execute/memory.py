"""How much memory a group would take, against what there is, before it is taken."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from stagewise.errors import Refused

if TYPE_CHECKING:
    from stagewise.lab.execute.jobs import Group

FEW = 16  # lanes that are begun without a word: one is begun first to see what more would take
_LIMITS = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")


def check_state(group: Group) -> None:
    """Refuse a group whose state, of all lanes at once, does not fit."""
    lanes = sum(block.last - block.first for block in group)
    if lanes > FEW:
        first = group[0].experiment.start(np.arange(group[0].first, group[0].first + 1))
        check(lanes * size(first), f"the state of {lanes} seeds", "fewer --seeds or a smaller model may do")


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


def available() -> float:
    """The bytes that are free for this process; without a bound where nobody tells."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        [free] = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    except (OSError, ValueError):
        return float("inf")
    try:
        most, used = (int(path.read_text()) for path in _LIMITS)
        return min(free, most - used)
    except (OSError, ValueError):  # no limit
        return free
