"""Training by one rule after another, for instance while chains get longer or a model becomes its own
teacher."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import cast

import numpy as np

from stagewise.training.loop import Rule, TrainingLoop
from stagewise.training.program import Program, Records, State


class Phase(Rule):
    """A rule that goes on with the weights of the rule before it. All rules of one program measure arrays
    with the same names and shapes."""

    @abstractmethod
    def enter(self, state: State) -> State:
        """Return the state of all lanes at the start of this phase, from the state at the end of the phase
        before."""


@dataclass(frozen=True)
class Phases(Program):
    """Phases of training that follow each other. `step` counts on from phase to phase, and so every random
    stream goes on too. Phases with equal rules share one compilation."""

    names: tuple[str, ...]
    phases: tuple[TrainingLoop, ...]

    @property
    def most_lanes(self) -> int:
        return self.phases[0].most_lanes

    @property
    def chunks(self) -> int:
        return sum(phase.chunks for phase in self.phases)

    @property
    def records(self) -> int:
        return sum(phase.records for phase in self.phases)

    def _phase(self, chunk: int) -> tuple[str, TrainingLoop, int]:
        """Return the name of the phase that a chunk belongs to, the phase, and the chunk's number within
        it."""
        for name, phase in zip(self.names, self.phases):
            if chunk < phase.chunks:
                return name, phase, chunk
            chunk -= phase.chunks
        raise IndexError(chunk)

    def advance(self, state: State, chunk: int) -> tuple[State, Records]:
        _, phase, within = self._phase(chunk)
        rule = cast(Phase, phase.rule)
        return phase.advance(rule.enter(state) if within == 0 else state, within)

    def finished(self, state: State) -> bool:
        return False

    def outcomes(self, state: State) -> Records:
        return self.phases[-1].outcomes(state)

    def final(self, state: State) -> State:
        return self.phases[-1].final(state)

    def describe(self, chunk: int) -> tuple[str, int]:
        name, phase, within = self._phase(chunk)
        return name, phase.describe(within)[1]

    def labels(self):
        before = np.cumsum([0] + [phase.schedule[-1] for phase in self.phases[:-1]])
        steps = np.concatenate(
            [start + np.array(phase.schedule) for start, phase in zip(before, self.phases)]
        )
        stages = np.repeat(self.names, [phase.records for phase in self.phases])
        return self.phases[0].labels() | {"step": (("record",), steps), "stage": (("record",), stages)}

    @property
    def dims(self):
        return self.phases[0].dims
