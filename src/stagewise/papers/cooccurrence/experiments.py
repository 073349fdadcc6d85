"""The co-occurrence paper's training runs: gradient flow in two phases, gradient flow to given times in three
forms, the gradient descent of the paper's experiment, and the start alone. Studies over them are in
`studies.py`."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Literal

from stagewise.errors import Refused, require
from stagewise.lab.spec.experiment import Experiment
from stagewise.lab.spec.settings import check_used
from stagewise.tasks.cooccurrence import Cooccurrence

C_T1 = 15.0
"""Phase 1 ends at T1 = C_T1 / (s1^2 m m1), with one constant for all sizes, set beforehand from the
three-number limit model, in which all types are right from scaled time 13.7 on (`limits.py`)."""

COMPILED = ((83, 60, 6), (163, 60, 6))
"""Vocabularies, samples and lengths that the flow is compiled for: a smaller problem runs in the program of
the next larger."""

ENDS = 3  # the most stages of any flow here: all have as many constants, and so one program

FRACTIONS = (0.1, 0.3, 1.0)
"""Of the whole time: where flow and descent are compared."""

DISTINCT = Cooccurrence(vocabulary=163, irrelevant="distinct")  # Assumption 2.3
FEWER = Cooccurrence(samples=30, vocabulary=83, irrelevant="distinct")  # the same at a quarter of the cost
SHARED = Cooccurrence(vocabulary=64, irrelevant="shared")  # the paper's experiment, which violates it


def check_epochs(settings) -> None:
    say = f"{settings.name}: "
    require(
        0 < settings.learning_rate <= 1000,
        f"{say}learning_rate must lie between 0 and 1000, not {settings.learning_rate} (set --learning_rate)",
    )
    require(
        1 <= settings.epochs <= 10**8,
        f"{say}epochs must lie between 1 and 10^8, not {settings.epochs} (set --epochs)",
    )


@dataclass(frozen=True)
class Trained(Experiment):
    """What the paper's runs share: the training set, the sizes, and how weights start."""

    task: Cooccurrence = DISTINCT
    width: int = 128  # m
    neurons: int = 256  # m1
    # how weights start: Condition 1, or a reading of Kaiming
    initial: Literal["condition1", "torch_linear", "kaiming_linear", "kaiming_normal"] = "condition1"
    attention_scale: float = 0.1  # c0 of Condition 1: s0 = c0 / sqrt(L m)
    neuron_scale: float = 1.0  # c1 of Condition 1: s1 = c1 / sqrt(m1)

    def __post_init__(self):
        super().__post_init__()
        for setting in ("width", "neurons"):
            value = getattr(self, setting)
            require(
                1 <= value <= 100_000,
                f"{self.name}: {setting} must lie between 1 and 100000, not {value} (set --{setting})",
            )
        for setting in ("attention_scale", "neuron_scale"):
            value = getattr(self, setting)
            require(
                0 < value <= 1000,
                f"{self.name}: {setting} must lie between 0 and 1000, not {value} (set --{setting})",
            )
            check_used(self, setting, self.initial == "condition1", "--initial condition1")
        require(
            self.task.vocabulary <= 5000,
            f"{self.name}: vocabulary must be at most 5000, not {self.task.vocabulary} (set "
            "--task.vocabulary)",
        )
        words = self.task.samples * self.task.length
        require(
            words <= 50_000,
            f"{self.name}: a training set may have 50000 words, not {words} (set --task.samples or "
            "--task.length)",
        )
        entries = self.width * max(self.neurons, self.task.vocabulary)
        require(
            entries <= 10**8,
            f"{self.name}: a weight matrix may have 10^8 entries, not {entries} (set --width, --neurons or "
            "--task.vocabulary)",
        )

    def scales(self) -> tuple[float, float]:
        """Standard deviations of the entries of W_V, W_K, W_Q (s0) and of W (s1)."""
        d, m = self.task.vocabulary, self.width
        return {
            "condition1": (
                self.attention_scale / sqrt(self.task.length * m),
                self.neuron_scale / sqrt(self.neurons),
            ),
            "torch_linear": (sqrt(1 / (3 * d)), sqrt(1 / (3 * m))),  # uniform in +-1/sqrt(fan in)
            "kaiming_linear": (sqrt(1 / d), sqrt(1 / m)),
            "kaiming_normal": (sqrt(2 / d), sqrt(2 / m)),
        }[self.initial]

    @property
    def size(self) -> tuple[int, int, int]:
        """Vocabulary, samples and length."""
        return self.task.vocabulary, self.task.samples, self.task.length

    def beginning(self) -> Start:
        """What the start depends on, and nothing else."""
        shared = ("task", "width", "neurons", "initial", "attention_scale", "neuron_scale")
        return Start(seeds=1, **{name: getattr(self, name) for name in shared})

    @property
    def uniform(self) -> bool:
        """Whether weights start uniform instead of Gaussian."""
        return self.initial == "torch_linear"

    @property
    def speed(self) -> float:
        """A = s1^2 m m1, the speed of the value path: scaled time is A t."""
        return self.scales()[1] ** 2 * self.width * self.neurons

    def model(self, state):
        from stagewise.lazy import jnp
        from stagewise.models.one_layer import ScoredOneLayer

        words = self.task.vocabulary
        G, S = state["weights"]["G"][:words], state["weights"]["S"][:words, :words]
        return ScoredOneLayer(G=jnp.asarray(G), S=jnp.asarray(S), width=jnp.asarray(float(self.width)))


class Flowing(Trained):
    """What the flows share: how they are solved, and where their stages end."""

    @property
    def padded(self) -> tuple[int, int, int]:
        """The size that the flow is compiled for: the next of the known ones, or its own."""
        fits = (known for known in COMPILED if all(mine <= there for mine, there in zip(self.size, known)))
        return next(fits, self.size)

    def solved(self, stages, trains: str = "both"):
        """The flow through stages, given as (name, watched quantity, whether it rises), each until its
        `end`."""
        from stagewise.papers.cooccurrence.closed import ATTENTION, NEURONS, VALUES, ClosedFlow
        from stagewise.training.flow import Flow
        from stagewise.training.stages import Stage, Until

        moves = (*VALUES, *NEURONS, *(ATTENTION if trains == "both" else ()), "clock")
        return Flow(
            ClosedFlow(self.padded),
            tuple(
                Stage(name, moves, "all", Until(quantity, f"end {i}", rising), 1e9)
                for i, (name, quantity, rising) in enumerate(stages)
            ),
            relative_tolerance=1e-6,
            absolute_tolerance=1e-9,
            max_solver_steps=256,
            records_per_stage=41,
            one_by_one=True,
        )

    def begun(self, seeds, ends):
        """The state before the first stage; `ends` are the values that end the stages."""
        import numpy as np

        from stagewise.papers.cooccurrence import initial
        from stagewise.training.flow import begin

        state, constants = initial.flow(self, seeds, self.padded)
        named = {f"end {i}": np.full(len(seeds), float(ends[i] if i < len(ends) else 0)) for i in range(ENDS)}
        return begin(state, constants | named, stages=len(ends))


@dataclass(frozen=True)
class TwoPhases(Flowing):
    """Gradient flow through Phase 1, to T1, and Phase 2, until the loss reaches its target at T*. Seconds for
    8 seeds."""

    target_loss: float = 1e-3  # reached at T*
    trains: Literal["both", "values"] = (
        "both"  # all weights, or W and W_V alone while attention stays as it starts
    )

    name = "cooccurrence.flow"
    presets = {"quick": {"task": FEWER}, "standard": {"seeds": 16}, "paper": {}}

    def __post_init__(self):
        super().__post_init__()
        require(
            0 < self.target_loss < 10,
            f"{self.name}: target_loss must lie between 0 and 10, not {self.target_loss} (set --target_loss)",
        )

    def program(self):
        return self.solved((("1", "scaled_time", True), ("2", "loss", False)), self.trains)

    def start(self, seeds):
        return self.begun(seeds, (C_T1, self.target_loss))


@dataclass(frozen=True)
class ThreeForms(Trained):
    """Gradient flow of plain weights, of the six kinds of inner products and of the compact system, side by
    side.

    Classical Runge-Kutta steps of one length, so that all are at the same times. Small sizes do: the
    equations know nothing of sizes."""

    task: Cooccurrence = Cooccurrence(samples=12, vocabulary=35, irrelevant="distinct")
    width: int = 32
    neurons: int = 16
    scaled_time: float = 300.0  # that the flows end at
    steps: int = 1000  # of Runge-Kutta
    seeds: int = 2

    name = "cooccurrence.forms"
    presets = {
        "quick": {},
        "standard": {},
        "paper": {"task": SHARED, "width": 128, "neurons": 256, "initial": "torch_linear"},
    }

    def __post_init__(self):
        super().__post_init__()
        require(
            self.scaled_time > 0,
            f"{self.name}: scaled_time must be positive, not {self.scaled_time} (set --scaled_time)",
        )
        require(
            1 <= self.steps <= 10**8,
            f"{self.name}: steps must lie between 1 and 10^8, not {self.steps} (set --steps)",
        )

    def program(self):
        from stagewise.papers.cooccurrence.forms import SideBySide
        from stagewise.training.loop import TrainingLoop
        from stagewise.training.schedule import schedule

        return TrainingLoop(
            SideBySide((*self.size, self.width, self.neurons)), schedule(self.steps, evenly=40, log_spaced=20)
        )

    def start(self, seeds):
        import numpy as np

        from stagewise.papers.cooccurrence import forms
        from stagewise.training.loop import begin

        state, constants = forms.start(self, seeds)
        return begin(
            state,
            constants | {"step": np.full(len(seeds), self.scaled_time / self.speed / self.steps)},
            seeds,
        )

    def model(self, state):
        return super().model(state | {"weights": state["weights"]["compact"]})


@dataclass(frozen=True)
class Descent(Trained):
    """Full-batch gradient descent on all weights: the paper's experiment (Appendix A), in the exact closed
    form.

    1000 epochs of 8 seeds take seconds, the paper's 30000 a minute."""

    task: Cooccurrence = SHARED
    # how weights start: Condition 1, or a reading of Kaiming
    initial: Literal["condition1", "torch_linear", "kaiming_linear", "kaiming_normal"] = "torch_linear"
    learning_rate: float = 0.01  # of full-batch descent
    epochs: int = 1000  # one step each

    name = "cooccurrence.descent"
    presets = {"quick": {}, "standard": {"epochs": 5000}, "paper": {"epochs": 30000}}

    def __post_init__(self):
        super().__post_init__()
        check_epochs(self)

    def program(self):
        from stagewise.papers.cooccurrence.closed import ClosedDescent
        from stagewise.training.loop import TrainingLoop
        from stagewise.training.schedule import schedule

        compared = {round(self.epochs * fraction) for fraction in FRACTIONS}
        return TrainingLoop(
            ClosedDescent(self.size),
            tuple(sorted({*schedule(self.epochs, evenly=40, log_spaced=60), *compared})),
        )

    def start(self, seeds):
        import numpy as np

        from stagewise.papers.cooccurrence import initial
        from stagewise.training.loop import begin

        state, constants = initial.descent(self, seeds)
        return begin(state, constants | {"rate": np.full(len(seeds), self.learning_rate)}, seeds)


@dataclass(frozen=True)
class FlowToTimes(Flowing):
    """Gradient flow, recorded where gradient descent of a given rate and number of epochs has come to the
    same times."""

    task: Cooccurrence = SHARED
    # how weights start: Condition 1, or a reading of Kaiming
    initial: Literal["condition1", "torch_linear", "kaiming_linear", "kaiming_normal"] = "torch_linear"
    learning_rate: float = 0.01  # of full-batch descent
    epochs: int = 1000  # one step each

    name = "cooccurrence.flow_to_times"
    presets = Descent.presets

    def __post_init__(self):
        super().__post_init__()
        check_epochs(self)

    def program(self):
        return self.solved([(f"{fraction:g}", "time", True) for fraction in FRACTIONS])

    def start(self, seeds):
        return self.begun(
            seeds, [self.learning_rate * round(self.epochs * fraction) for fraction in FRACTIONS]
        )


@dataclass(frozen=True)
class Start(Trained):
    """The start alone: concentration of the initial weights and the first gradients of single neurons."""

    seeds: int = 20

    name = "cooccurrence.start"
    presets = {"quick": {}, "standard": {"seeds": 100}, "paper": {"seeds": 100}}

    def program(self):
        from stagewise.papers.cooccurrence.at_start import AtStart
        from stagewise.training.loop import TrainingLoop

        return TrainingLoop(AtStart(), (0,))

    def start(self, seeds):
        import numpy as np

        from stagewise.papers.cooccurrence.at_start import measure
        from stagewise.training.loop import begin

        found = [measure(self, int(seed)) for seed in seeds]
        return begin({name: np.stack([one[name] for one in found]) for name in found[0]}, {}, seeds)

    def model(self, state):
        raise Refused(f"{self.name} trains nothing: there is no model to give out")
