"""How the report tells a paper: parts of text, each beside what it speaks of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stagewise.lab.draw.dynamics import Dynamics
    from stagewise.lab.draw.example import Example


@dataclass(frozen=True)
class Part:
    """A heading, a few sentences, and what is shown beside them: figures by id, a drawn example (a function
    that samples it), dynamics with a slider."""

    title: str
    text: str
    shown: tuple[str | Dynamics | Callable[[], Example], ...] = ()
