"""Estimates how long groups would take, by timing a short piece of each of a few programs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np

from stagewise.lab.execute.compute import started
from stagewise.lab.execute.jobs import Group
from stagewise.precision import in_double
from stagewise.training.program import Program

MOST_TIMED = 3  # how many programs are timed; others are taken to be like these on average
PIECES = 4  # times a piece is run: the first run compiles, and the quickest is the least disturbed


@dataclass(frozen=True)
class Estimate:
    """Seconds on one core, one group after another."""

    beginning: float  # for drawing the states that groups start from, and for compiling
    computing: float  # for computing the chunks that are left

    @property
    def total(self) -> float:
        return self.beginning + self.computing


@in_double
def estimate(groups: Sequence[Group]) -> Estimate:
    """Estimate what the groups would take from their last saved states on."""
    timed: dict[Program, Timed] = {}
    begun: set[tuple[Program, int]] = set()
    beginning = computing = 0.0
    for group in groups:
        program, lanes = group[0].experiment.program(), sum(block.last - block.first for block in group)
        if program not in timed:
            timed[program] = _timed(program, group) if len(timed) < MOST_TIMED else _like(timed)
        if (program, lanes) not in begun:  # another number of lanes is compiled anew
            begun.add((program, lanes))
            beginning += timed[program].begin
        done = max(set.intersection(*(block.saved_chunks() or {0} for block in group)), default=0)
        units = sum(_units(program, chunk) for chunk in range(done, program.chunks))
        computing += timed[program].unit * lanes * units
    return Estimate(beginning, computing)


@dataclass(frozen=True)
class Timed:
    """Seconds that a program takes to begin, and seconds for a unit of work of one lane."""

    begin: float
    unit: float


def _like(timed: dict[Program, Timed]) -> Timed:
    known = list(timed.values())[:MOST_TIMED]
    return Timed(*(sum(values) / len(known) for values in zip(*((one.begin, one.unit) for one in known))))


def _units(program: Program, chunk: int) -> int:
    """Return the units of work in a chunk: its steps, or one if the program has no steps to count."""
    steps = [program.describe(each)[1] for each in range(program.chunks)]
    return steps[chunk] if any(steps) else 1


def _timed(program: Program, group: Group) -> Timed:
    """Time a program's shortest chunk that has steps. A program that does not count in steps is timed on one
    seed."""
    working = [chunk for chunk in range(program.chunks) if _units(program, chunk)]
    chunk = min(working, key=lambda chunk: _units(program, chunk), default=0)
    counted = program.describe(chunk)[1] > 0
    began = time.perf_counter()
    state = started(group) if counted else group[0].experiment.start(np.arange(1))
    starting = time.perf_counter() - began
    took = []
    for _ in range(PIECES if counted else 2):
        began = time.perf_counter()
        jax.block_until_ready(program.advance(state, chunk))
        took.append(time.perf_counter() - began)
    unit = min(took) / max(1, _units(program, chunk)) / len(np.asarray(state["seed"]))
    return Timed(starting + took[0] - min(took), unit)
