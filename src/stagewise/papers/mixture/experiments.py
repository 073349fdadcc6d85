"""The mixture paper's training runs: all weights at once (Section 3.1), in three stages (Algorithm 1), and
both again at infinite width in the few numbers that symmetry leaves. Studies over them are in
`studies.py`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from stagewise.errors import require
from stagewise.lab.spec.experiment import Experiment
from stagewise.lazy import jnp
from stagewise.tasks.mixture import Mixture


def check_start(settings) -> None:
    say = f"{settings.name}: "
    require(
        0 <= settings.initial_scale <= 100,
        f"{say}initial_scale must lie between 0 and 100, not {settings.initial_scale} (set --initial_scale)",
    )
    require(settings.bias >= 0, f"{say}bias must not be negative, not {settings.bias} (set --bias)")


def check_descent(settings) -> None:
    say = f"{settings.name}: "
    require(
        settings.learning_rate >= 0,
        f"{say}learning_rate must not be negative, not {settings.learning_rate} (set --learning_rate)",
    )
    require(
        1 <= settings.steps <= 10**9,
        f"{say}steps must lie between 1 and 10^9, not {settings.steps} (set --steps)",
    )


@dataclass(frozen=True)
class TwoHeadTraining(Experiment):
    """What all of the paper's runs share: the task, the width, and how weights start."""

    task: Mixture = Mixture()
    width: int | Literal["infinite"] = 128  # m, the rows of the key and query matrices
    initial_scale: float = 0.1  # omega: entries of keys and queries are N(0, omega^2 / m)
    bias: float = 0.5  # b, shared by the heads and never trained

    def __post_init__(self):
        super().__post_init__()
        count = (
            self.task.population_size if max(self.task.groups, self.task.length) < 1000 else "far too many"
        )
        require(
            count != "far too many" and count <= 3_000_000,
            f"{self.name}: {self.task.groups} groups and length {self.task.length} make {count} different "
            "samples to enumerate "
            "(set --task.groups or --task.length lower, or run mixture.symmetric)",
        )
        wide = self.width == "infinite" or 1 <= self.width <= 1_000_000
        require(
            wide,
            f"{self.name}: width must lie between 1 and 1000000, or be infinite, not {self.width} (set "
            "--width)",
        )
        check_start(self)

    @property
    def deterministic(self) -> bool:
        return self.width == "infinite"

    def model(self, state):
        from stagewise.models.two_heads import ScoredTwoHeads
        from stagewise.papers.mixture.closed import blocks

        neurons, bias = jnp.asarray(state["weights"]["neurons"]), jnp.asarray(state["constants"]["bias"])
        _, scores, _ = blocks(jnp.asarray(state["weights"]["gram"]))
        return ScoredTwoHeads(neurons=neurons, scores=scores, bias=bias).widened(
            self.task.embedding_dimension
        )


@dataclass(frozen=True)
class JointTraining(TwoHeadTraining):
    """Every weight trained at once by full-population gradient descent (Figures 1 and 4). A second for 16
    seeds."""

    learning_rate: float = 0.1  # of full-population descent
    steps: int = 6000  # at most
    seeds: int = 16
    stop_at_loss: float = 0.0  # a seed whose loss is below this needs no more training
    trains: Literal["both", "neurons", "attention"] = "both"  # which weights move
    neuron_scale: float = (
        0.0  # neurons start at N(0, neuron_scale^2); the paper starts them at zero but for Figure 3
    )
    form: Literal["closed", "weights"] = "closed"  # inner products of weights, or the weights themselves

    name = "mixture.joint"
    presets = {"quick": {}, "standard": {"seeds": 32}, "paper": {"seeds": 32}}

    def __post_init__(self):
        super().__post_init__()
        check_descent(self)
        for setting in ("neuron_scale", "stop_at_loss"):
            value = getattr(self, setting)
            require(value >= 0, f"{self.name}: {setting} must not be negative, not {value} (set --{setting})")
        require(
            not (self.form == "weights" and self.stop_at_loss > 0),
            f"{self.name}: stopping at a loss is for the closed form (set --form closed or --stop_at_loss 0)",
        )
        require(
            not (self.form == "weights" and self.width == "infinite"),
            f"{self.name}: infinite width has no weights to train (set --form closed or --width)",
        )

    @property
    def deterministic(self) -> bool:
        return super().deterministic and self.neuron_scale == 0

    def program(self):
        from stagewise.papers.mixture.closed import Closed, JointDescent
        from stagewise.papers.mixture.weights import WeightDescent
        from stagewise.training.loop import TrainingLoop
        from stagewise.training.schedule import schedule

        stops = self.stop_at_loss > 0
        rule = JointDescent(Closed(self.task), stops) if self.form == "closed" else WeightDescent(self.task)
        return TrainingLoop(rule, schedule(self.steps, evenly=150, log_spaced=40))

    def start(self, seeds):
        from stagewise.papers.mixture import initial
        from stagewise.training.loop import begin

        draw = initial.gram if self.form == "closed" else initial.weights
        chosen = {
            "neuron_rate": self.learning_rate * (self.trains != "attention"),
            "attention_rate": self.learning_rate * (self.trains != "neurons"),
            "bias": self.bias,
            "stop_at_loss": self.stop_at_loss,
        }
        return begin(draw(self, seeds, self.neuron_scale), initial.constants(chosen, len(seeds)), seeds)

    def model(self, state):
        if self.form == "closed":
            return super().model(state)
        from stagewise.papers.mixture.weights import as_model

        return as_model(state["weights"], state["constants"]["bias"])


@dataclass(frozen=True)
class ManyGroups(JointTraining):
    """Joint training with more than two groups (Figures 5 to 7), until it is learned. Seconds for 3 or 4
    groups, 15 for 8.

    The paper does not say how long its sequences are; we take 3 tokens, as in its theory."""

    task: Mixture = Mixture(groups=3)
    steps: int = 20000  # at most
    seeds: int = 8
    stop_at_loss: float = 0.005  # a seed whose loss is below this needs no more training

    name = "mixture.many_groups"
    presets = {
        "quick": {},
        "standard": {"seeds": 16},
        "paper": {"seeds": 11, "steps": 30000, "stop_at_loss": 0.0},
    }


@dataclass(frozen=True)
class ThreeStages(TwoHeadTraining):
    """Algorithm 1 by gradient flow: neurons, then attention on the conflicting samples, then neurons again.

    The first stage is cut in two where the positive head first switches off: the flow has a corner there.
    (The cut is a hair behind the corner, so that rounding does not decide which of two mirrored ReLUs is
    off.) A stage ends by an event: the paper leaves T1 and T2 open, and these are our readings of them."""

    consistent_loss_at_T1: float = 0.1  # stage 1 ends there
    score_at_T2: float = 1.0  # stage 2 ends there
    target_loss: float = 0.01  # epsilon, reached at T3

    name = "mixture.three_stages"
    presets = {"quick": {}, "standard": {"seeds": 32}, "paper": {"seeds": 32}}

    def __post_init__(self):
        super().__post_init__()
        for setting in ("consistent_loss_at_T1", "score_at_T2", "target_loss"):
            value = getattr(self, setting)
            require(value > 0, f"{self.name}: {setting} must be positive, not {value} (set --{setting})")

    def program(self):
        from stagewise.papers.mixture.closed import Closed
        from stagewise.training.flow import Flow

        return Flow(Closed(self.task), self.stages())

    def stages(self):
        """The stages of Algorithm 1."""
        from stagewise.training.stages import Stage, Until

        return (
            Stage("1.1", ("neurons",), "all", Until("headroom", -1e-8, rising=False), limit=1e3),
            Stage(
                "1.2",
                ("neurons",),
                "all",
                Until("consistent_loss", "consistent_loss_at_T1", rising=False),
                limit=1e3,
            ),
            Stage("2", ("gram",), "conflicting", Until("score", "score_at_T2"), limit=1e5),
            Stage("3", ("neurons",), "all", Until("loss", "target_loss", rising=False), limit=1e5),
        )

    def constants(self, lanes: int):
        from stagewise.papers.mixture import initial

        chosen = ("consistent_loss_at_T1", "score_at_T2", "target_loss", "bias")
        return initial.constants({name: getattr(self, name) for name in chosen}, lanes)

    def start(self, seeds):
        from stagewise.papers.mixture import initial
        from stagewise.training.flow import begin

        return begin(initial.gram(self, seeds), self.constants(len(seeds)), stages=4)


@dataclass(frozen=True)
class ThreeStagesByDescent(ThreeStages):
    """Algorithm 1 by gradient descent instead of gradient flow, with the same stages and events."""

    learning_rate: float = 0.1  # of full-population descent
    steps: int = 20000  # at the most

    name = "mixture.three_stages_by_descent"

    def __post_init__(self):
        super().__post_init__()
        check_descent(self)

    def rule(self):
        from stagewise.papers.mixture.closed import Closed
        from stagewise.training.stages import Staged

        return Staged(
            Closed(self.task), tuple(replace(stage, limit=float(self.steps)) for stage in self.stages())
        )

    def program(self):
        from stagewise.training.loop import TrainingLoop
        from stagewise.training.schedule import schedule

        return TrainingLoop(self.rule(), schedule(self.steps, evenly=150, log_spaced=40))

    def start(self, seeds):
        from stagewise.papers.mixture import initial
        from stagewise.training.loop import begin

        rates = initial.constants(
            {"neuron_rate": self.learning_rate, "attention_rate": self.learning_rate}, len(seeds)
        )
        return begin(self.rule().begin(initial.gram(self, seeds)), self.constants(len(seeds)) | rates, seeds)

    def model(self, state):
        return super().model(state | {"weights": state["weights"]["weights"]})


@dataclass(frozen=True)
class Symmetric(Experiment):
    """What the runs at infinite width share: every group plays the same part, so 22 numbers say it all
    (`orbits.py`)."""

    task: Mixture = Mixture()
    initial_scale: float = 0.1  # omega: entries of keys and queries are N(0, omega^2 / m)
    bias: float = 0.5  # b, shared by the heads and never trained
    seeds: int = 1

    def __post_init__(self):
        super().__post_init__()
        check_start(self)
        require(
            self.task.length <= 12,
            f"{self.name}: length must be at most 12, not {self.task.length} (set --task.length)",
        )

    @property
    def deterministic(self) -> bool:
        return True

    def model(self, state):
        from stagewise.papers.mixture.orbits import as_model

        model = as_model(self.task.groups, state["weights"], state["constants"]["bias"])
        return model.widened(self.task.embedding_dimension)


@dataclass(frozen=True)
class SymmetricTraining(Symmetric):
    """Joint training at infinite width, for any number of groups at the same cost. Under a second."""

    learning_rate: float = 0.1  # of full-population descent
    steps: int = 6000  # at most

    name = "mixture.symmetric"

    def __post_init__(self):
        super().__post_init__()
        check_descent(self)

    def program(self):
        from stagewise.papers.mixture.orbits import OrbitDescent, Orbits
        from stagewise.training.loop import TrainingLoop
        from stagewise.training.schedule import schedule

        return TrainingLoop(
            OrbitDescent(Orbits(self.task.length)), schedule(self.steps, evenly=300, log_spaced=40)
        )

    def start(self, seeds):
        from stagewise.papers.mixture import orbits
        from stagewise.training.loop import begin

        constants = orbits.constants(self.task, len(seeds), bias=self.bias, rate=self.learning_rate)
        return begin(orbits.begin(self.initial_scale, len(seeds)), constants, seeds)


@dataclass(frozen=True)
class SymmetricStages(Symmetric):
    """Stages 1 and 2 of Algorithm 1 at infinite width, for any number of groups.

    T1 is where the neurons' alignment with the group signals reaches a given value, the same for every number
    of groups."""

    group_alignment_at_T1: float = 0.25  # stage 1 ends there
    score_at_T2: float = 1.0  # stage 2 ends there

    name = "mixture.symmetric_stages"

    def program(self):
        from stagewise.papers.mixture.orbits import OrbitFlow, Orbits
        from stagewise.training.flow import Flow
        from stagewise.training.stages import Stage, Until

        attention = ("difference", "total")
        return Flow(
            OrbitFlow(Orbits(self.task.length)),
            (
                Stage("1", ("neurons",), "all", Until("group_alignment", "group_alignment_at_T1"), limit=1e3),
                Stage("2", attention, "conflicting", Until("score", "score_at_T2"), limit=1e5),
            ),
        )

    def start(self, seeds):
        from stagewise.papers.mixture import orbits
        from stagewise.training.flow import begin

        chosen = {name: getattr(self, name) for name in ("group_alignment_at_T1", "score_at_T2", "bias")}
        return begin(
            orbits.begin(self.initial_scale, len(seeds)),
            orbits.constants(self.task, len(seeds), **chosen),
            stages=2,
        )
