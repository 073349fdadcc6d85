"""Training by one rule after another: chains get longer, a model becomes its own teacher."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from stagewise.training.loop import Rule, Training
from stagewise.training.program import Program, Records, State


class Turn(Rule):
    """A rule that takes over weights from another. What the rules of one program measure has the same names
    and shapes."""

    @abstractmethod
    def enter(self, state: State) -> State:
        """The state of all lanes as this turn begins, from the state that the last one left."""


@dataclass(frozen=True)
class InTurn(Program):
    """Trainings that follow each other; `step` counts through, and so does every random stream. Turns by
    equal rules share one compilation."""

    names: tuple[str, ...]
    turns: tuple[Training, ...]

    @property
    def most_lanes(self) -> int:
        return self.turns[0].most_lanes

    @property
    def chunks(self) -> int:
        return sum(turn.chunks for turn in self.turns)

    @property
    def records(self) -> int:
        return sum(turn.records for turn in self.turns)

    def _turn(self, chunk: int) -> tuple[str, Training, int]:
        """The turn that a chunk is in, and which of that turn's chunks it is."""
        for name, turn in zip(self.names, self.turns):
            if chunk < turn.chunks:
                return name, turn, chunk
            chunk -= turn.chunks
        raise IndexError(chunk)

    def advance(self, state: State, chunk: int) -> tuple[State, Records]:
        _, turn, within = self._turn(chunk)
        return turn.advance(turn.rule.enter(state) if within == 0 else state, within)

    def finished(self, state: State) -> bool:
        return False

    def outcomes(self, state: State) -> Records:
        return self.turns[-1].outcomes(state)

    def final(self, state: State) -> State:
        return self.turns[-1].final(state)

    def describe(self, chunk: int) -> tuple[str, int]:
        name, turn, within = self._turn(chunk)
        return name, turn.describe(within)[1]

    def labels(self):
        before = np.cumsum([0] + [turn.schedule[-1] for turn in self.turns[:-1]])
        steps = np.concatenate([start + np.array(turn.schedule) for start, turn in zip(before, self.turns)])
        stages = np.repeat(self.names, [turn.records for turn in self.turns])
        return self.turns[0].labels() | {"step": (("record",), steps), "stage": (("record",), stages)}

    @property
    def dims(self):
        return self.turns[0].dims
