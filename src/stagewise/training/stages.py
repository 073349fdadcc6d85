"""Stages of training: which weights move, on which samples, until which event."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Until:
    """A watched quantity reaches a threshold, from below or from above.

    The threshold is a number, or the name of one of the lane's numbers."""

    quantity: str
    reaches: float | str
    rising: bool = True


@dataclass(frozen=True)
class Stage:
    """One stage. `limit` is the longest it may last: reaching it without the event is reported as such."""

    name: str
    moves: tuple[str, ...]
    samples: str
    until: Until
    limit: float
