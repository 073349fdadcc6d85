"""The theory's stages in closed form, with the group and the activation that they share."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Literal

from stagewise.errors import Refused, require
from stagewise.lab.spec.experiment import Experiment
from stagewise.lab.spec.settings import check_ranges, check_used
from stagewise.tasks.groups import Action


@dataclass(frozen=True)
class Theory(Experiment):
    """What the closed forms share: a group and the activation. B = clip log d; rho is in units of the bias
    mu."""

    action: Action = Action()
    clip: float = 1.5  # B / log d: where the activation stops growing
    clip_width: float = 0.05  # over which the clip is rounded; 0 is sharp
    q: int = 32  # the even power with which the activation begins
    rho: float = 1.6  # where that power ends, in units of the bias

    def __post_init__(self):
        super().__post_init__()
        check_ranges(self, clip=(1e-3, 1e4), clip_width=(0, 10), q=(2, 200), rho=(1e-3, 1e3))
        require(self.q % 2 == 0, f"{self.name}: q must be even, not {self.q} (set --q)")
        require(
            self.action.transitive,
            f"{self.name}: the action must reach every value from any (set --action.group)",
        )

    @property
    def size(self) -> float:
        """d."""
        raise NotImplementedError

    @property
    def table(self) -> tuple[tuple[int, ...], ...]:
        return tuple(map(tuple, self.action.maps().tolist()))

    def constants(self) -> dict[str, float]:
        from stagewise.papers.lego.closed import scales

        return scales(self.size, self.clip, self.rho, self.q) | {"clip_width": self.clip_width}

    def model(self, state):
        raise Refused(f"{self.name} gives no model: it follows a closed form of its weights")


@dataclass(frozen=True)
class AnyVocabulary(Theory):
    """Closed forms whose cost does not depend on the vocabulary's size: it is a number like others."""

    vocabulary: float = 256.0  # d; a number like others in the closed form

    def __post_init__(self):
        super().__post_init__()
        check_ranges(self, vocabulary=(self.action.values + 2, 1e12))

    @property
    def size(self) -> float:
        return self.vocabulary


@dataclass(frozen=True)
class OneStep(AnyVocabulary):
    """Stage 1 of both algorithms: the perceptron learns one step (slot 5), as a flow. Seconds for 8 seeds."""

    neurons: int = 0  # of each value; 0: twice as many as there are values
    form: Literal["3.4", "B.2"] = "3.4"  # of the activation: Definition 3.4 or Assumption B.2
    condition: float = 1.0  # condition number of the embedding's Gram matrix; 1 is orthonormal
    excess: float = 1.001  # the flow ends at this multiple of the least loss
    seeds: int = 8

    name = "lego.one_step"
    presets = {"quick": {"seeds": 6}, "standard": {"seeds": 16}, "paper": {"seeds": 16}}

    def __post_init__(self):
        super().__post_init__()
        check_ranges(self, neurons=(0, 1000), condition=(1, 1e4), excess=(1, 1e6))

    @property
    def width(self) -> int:
        return self.neurons or 2 * self.action.values

    def program(self):
        from stagewise.papers.lego.one_step import OneStep as Motion
        from stagewise.training.flow import Flow
        from stagewise.training.stages import Stage, Until

        stage = Stage("one step", ("V",), "all", Until("excess", "excess", rising=False), 1e9)
        return Flow(
            Motion(self.table, self.width, self.form),
            (stage,),
            records_per_stage=97,
            relative_tolerance=1e-4,
            absolute_tolerance=1e-6,
            max_solver_steps=3072,
            one_by_one=True,
        )

    def start(self, seeds):
        from stagewise.papers.lego.initial import one_step

        return one_step(self, seeds)


@dataclass(frozen=True)
class TwoSteps(AnyVocabulary):
    """Stage 2: four numbers of attention follow the flow while the perceptron rests, ideal or as stage 1
    leaves it. A second or so; with an ideal one nothing is random up to S4.

    `trains` is Algorithm 1's loss (both answers of chains of length 2) or Algorithm 2's (the second answer
    alone)."""

    clip: float = 2.0
    q: int = 4
    rho: float = 2.0
    variables: int = 200  # how many there are
    features: Literal["ideal", "learned"] = "ideal"  # of the perceptron: ideal, or as stage 1 leaves them
    # on both answers of chains of length 2, or on the second alone
    trains: Literal["both", "second"] = "both"
    stop: Literal["time", "loss"] = "time"  # after a time, or at the paper's loss
    # the flow ends at time d^last, or before, if it stops by loss, at the paper's d^(3.025 - clip) (Lemma
    # E.35)
    last: float = 2.0
    most: int = 4000  # chains, or all there are
    seeds: int = 1

    name = "lego.two_steps"
    presets = {"quick": {}, "standard": {}, "paper": {}}

    def __post_init__(self):
        super().__post_init__()
        check_ranges(self, variables=(3, 1e9), last=(0, 100), most=(1, 1e6))
        require(
            self.last * log(self.vocabulary) < 600,
            f"{self.name}: a time of {self.vocabulary:g}^{self.last:g} is beyond what numbers hold (set "
            "--last)",
        )
        require(
            self.stop == "time" or self.clip > 3.1,
            f"{self.name}: the paper's stop, d^(3.025 - clip), needs a clip above 3.1, not {self.clip:g} "
            "(set --clip)",
        )

    @property
    def deterministic(self) -> bool:
        return self.features == "ideal" and self.action.actions**2 <= self.most

    @property
    def first_stage(self) -> OneStep:
        """That leaves the features, if they are learned."""
        return OneStep(
            seeds=1,
            action=self.action,
            vocabulary=self.vocabulary,
            clip=self.clip,
            clip_width=self.clip_width,
            q=self.q,
            rho=self.rho,
        )

    @property
    def losses(self) -> tuple[tuple[int, int], ...]:
        return ((2, 1), (2, 2)) if self.trains == "both" else ((2, 2),)

    def program(self):
        from stagewise.papers.lego.closed import SCORES
        from stagewise.papers.lego.two_steps import TwoSteps as Motion
        from stagewise.training.flow import Flow
        from stagewise.training.stages import Stage, Until

        never, small = (
            Until("excess", 0.0, rising=False),
            Until("log_loss", (3.025 - self.clip) * log(self.vocabulary), rising=False),
        )
        stage = Stage(
            "attention", SCORES, "all", small if self.stop == "loss" else never, self.vocabulary**self.last
        )
        motion = Motion(
            len(self.losses), self.action.values if self.features == "ideal" else self.first_stage.width
        )
        return Flow(
            motion,
            (stage,),
            records_per_stage=257,
            relative_tolerance=1e-6,
            absolute_tolerance=1e-9,
            max_solver_steps=100_000,
            stiff=True,
        )

    def start(self, seeds):
        from stagewise.papers.lego.initial import two_steps

        return two_steps(self, seeds)


@dataclass(frozen=True)
class Recursion(AnyVocabulary):
    """Algorithm 2 with four numbers: lengths 2, 4, 8, …, each from the model's own answers until the loss is
    small. Seconds a stage.

    The paper stops at loss d^-target; with target 0 at 1.5 times the least loss instead."""

    action: Action = Action("S4")
    clip: float = 6.0
    q: int = 20
    rho: float = 2.0
    variables: int = 200  # how many there are
    stages: int = 4  # lengths 2, 4, 8, and so on
    target: float = 2.97  # a stage ends at loss d^-target; 0: at 1.5 times the least loss
    most: int = 2304  # chains of a stage, or all there are
    tested_multiples: tuple[int, ...] = (1, 2, 4, 8, 16)  # times the stage's length
    seeds: int = 6

    name = "lego.recursion"
    renamed = {"tested": "tested_multiples"}
    presets = {
        "quick": {"action.group": "S3", "stages": 3, "most": 512, "variables": 8},
        "standard": {},
        "paper": {"action.group": "S5", "stages": 6, "most": 4096},
    }

    def __post_init__(self):
        super().__post_init__()
        check_ranges(self, variables=(3, 1e9), stages=(1, 12), target=(0, 100), most=(1, 1e6))
        require(
            self.target < self.clip - 1,
            f"{self.name}: a loss of d^-{self.target:g} is below the least that a clip of {self.clip:g} "
            "allows (set --target or --clip)",
        )
        require(
            len(self.tested_multiples) > 0 and min(self.tested_multiples) >= 1,
            f"{self.name}: tests are at multiples of the length from 1 on (set --tested_multiples)",
        )

    def program(self):
        from stagewise.papers.lego.recursion import DIMS, measure
        from stagewise.training.measurement import Measurement

        along = (("times", self.tested_multiples), ("stages", tuple(2**k for k in range(1, self.stages + 1))))
        return Measurement(measure, self.for_any_seed(), tuple(DIMS.items()), along)

    def start(self, seeds):
        return {"seed": seeds}


@dataclass(frozen=True)
class Retrieval(Theory):
    """Slot 4 of stage 1: copying the variable, with every class and token there is, as a flow. Here d counts
    the tokens that there are."""

    action: Action = Action("C2")
    variables: int = 24  # how many there are, each with a class of its own
    neurons: int = 4  # of each class
    clip: float = 3.0
    q: int = 4
    rho: float = 2.0
    excess: float = 1.3  # the flow ends at this multiple of the least loss
    seeds: int = 6

    name = "lego.retrieval"
    presets = {
        "quick": {"variables": 12},
        "standard": {},
        "paper": {"variables": 40, "action.group": "C3", "neurons": 6},
    }

    def __post_init__(self):
        super().__post_init__()
        check_ranges(self, variables=(3, 200), neurons=(1, 100), excess=(1, 1e6))

    @property
    def size(self) -> float:
        return self.variables + self.action.actions + self.action.values + 1

    def program(self):
        from stagewise.papers.lego.retrieval import Retrieval as Motion
        from stagewise.training.flow import Flow
        from stagewise.training.stages import Stage, Until

        motion = Motion(self.variables, self.action.actions, self.action.values, self.neurons)
        stage = Stage("copying", tuple(motion.tokens), "all", Until("excess", "excess", rising=False), 1e9)
        return Flow(
            motion,
            (stage,),
            records_per_stage=65,
            relative_tolerance=1e-3,
            absolute_tolerance=1e-5,
            max_solver_steps=1024,
            one_by_one=True,
        )

    def start(self, seeds):
        from stagewise.papers.lego.initial import retrieval

        return retrieval(self, seeds)


@dataclass(frozen=True)
class Identities(AnyVocabulary):
    """The paper's gradient formulas beside automatic differentiation of Definition 3.5 at random weights, by
    enumeration."""

    action: Action = Action("C3")
    variables: int = 4  # how many there are
    neurons: int = 3  # of each class
    q: int = 4
    seeds: int = 4

    name = "lego.identities"
    presets = {"quick": {}, "standard": {"action.group": "S3"}, "paper": {"action.group": "S3"}}

    def __post_init__(self):
        super().__post_init__()
        check_ranges(self, variables=(3, 6), neurons=(1, 20))
        check_used(self, "clip_width", False, "lego.one_step; here it is so wide that every case occurs")

    def program(self):
        from stagewise.papers.lego.identities import DIMS, measure
        from stagewise.training.measurement import Measurement

        return Measurement(measure, self.for_any_seed(), tuple(DIMS.items()))

    def start(self, seeds):
        return {"seed": seeds}
