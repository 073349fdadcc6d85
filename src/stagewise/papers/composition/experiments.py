"""The composition paper's runs: the theory's model by its two algorithms, and what can be computed without
training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from stagewise.errors import Refused, require
from stagewise.lab.spec.experiment import Experiment
from stagewise.lab.spec.settings import check_ranges
from stagewise.models.sizes import Shape
from stagewise.tasks.composition import Composition


def check_size(settings) -> None:
    """Refuse sequences that no matrix of theirs would fit."""
    tokens = settings.task.tokens
    require(
        tokens <= 1024,
        f"{settings.name}: {tokens} tokens are more than 1024, and matrices grow with their square (set "
        "--task.levels or --task.symbols)",
    )


@dataclass(frozen=True)
class Theory(Experiment):
    """An attention-only transformer learns hops by a few large gradient steps: Algorithm 1 (`curriculum`),
    Algorithm 2 (`mixture`), or the mixture's steps on the hardest hop alone.

    The rate is set by `gap`, the lead that the right key's score should get in one step: eta = gap k^2 N^3 /
    ((N - 1) beta0). Seconds a seed for k = 4, half a minute for k = 16."""

    task: Composition = Composition()
    # stage by stage, all hops at once, or the hardest hop alone
    algorithm: Literal["curriculum", "mixture", "hardest"] = "curriculum"
    samples: int = 400  # sequences in every gradient step
    chunk: int = 100  # sequences at a time
    queries: Literal["one", "all"] = "all"  # asked of a sequence: one random, as in the paper, or all
    fresh: bool = True  # sequences in every step, or the same
    shared: bool = True  # sequences by all hops of the mixture
    readout: Literal["own", "all"] = "own"  # blocks that a readout learns from
    gap: float = 40.0  # the lead that the right key's score gets in one step
    beta0: float = 1.0  # size of the readouts at the start
    tested: int = 200  # sequences that losses are measured on
    seeds: int = 6

    name = "composition.theory"
    presets = {
        "quick": {"tested": 50},
        "standard": {"seeds": 10},
        "paper": {"queries": "one", "samples": 100_000, "chunk": 500, "seeds": 6, "tested": 1000},
    }

    def __post_init__(self):
        super().__post_init__()
        check_ranges(
            self, samples=(1, 1e8), chunk=(1, 1e5), gap=(1e-6, 1e6), beta0=(1e-6, 100), tested=(1, 1e6)
        )
        self.task.check_power_of_two()
        require(
            self.samples >= self.chunk,
            f"{self.name}: {self.samples} samples are less than one chunk of {self.chunk} (set --samples or "
            "--chunk)",
        )
        require(
            self.samples % self.chunk == 0,
            f"{self.name}: samples come in whole chunks of {self.chunk}, and {self.samples} are not (set "
            "--samples or --chunk)",
        )
        check_size(self)

    @property
    def rate(self) -> float:
        k, N = self.task.levels, self.task.symbols
        return self.gap * k**2 * N**3 / ((N - 1) * self.beta0)

    @property
    def steps(self) -> int:
        """Of gradient: two a hop by the curriculum, one a hop and one for the readouts by the mixture."""
        return 2 * self.task.depth if self.algorithm == "curriculum" else self.task.depth + 1

    def program(self):
        from stagewise.papers.composition.learning import Steps
        from stagewise.training.loop import TrainingLoop

        rule = Steps(self.task, self.chunk, self.queries, self.readout, self.tested)
        return TrainingLoop(rule, tuple(range(self.steps + 1)))

    def start(self, seeds):
        from stagewise.papers.composition.initial import theory

        return theory(self, seeds)

    def model(self, state):
        from stagewise.lazy import jnp
        from stagewise.models.attention_only import AttentionOnly
        from stagewise.papers.composition.learning import layer_names

        weights = {name: jnp.asarray(weight) for name, weight in state["weights"].items()}
        return AttentionOnly(
            tuple(weights[name] for name in layer_names(self.task.depth)), weights["readouts"]
        )


@dataclass(frozen=True)
class EncoderTraining(Experiment):
    """A standard encoder learns hops by Adam from a fixed pool of sequences (Figure 3, right), and stops once
    it has learned the most hops.

    `form`: a token in front says how many hops are asked, as in the paper, or every number of hops has its
    own readout. `data`: a uniform mixture of `asked_hops`, the hardest alone, or one after another, each for
    an equal share of the steps. It is tested on sequences that are not in the pool."""

    task: Composition = Composition()
    encoder: Shape = Shape(layers=4, heads=4, width=64)
    # how the model is told which hop is asked: a token in front, or a readout each
    form: Literal["token", "readouts"] = "token"
    # all asked hops at once, the hardest alone, or one after another
    data: Literal["mixture", "hardest", "curriculum"] = "mixture"
    asked_hops: tuple[int, ...] = (1, 2, 4)  # how many hops are asked, from the easiest to the hardest
    pool: int = 100_000  # different sequences to train on
    batch: int = 64  # sequences in a step
    steps: int = 4000  # at most
    learning_rate: float = 1e-3  # of Adam
    warm_up: int = 200  # steps over which the rate rises
    gradient_clip: float = 1.0  # the largest norm of a gradient
    solved: float = 0.99  # accuracy at which a run ends
    evaluations: int = 16  # evenly over the steps
    tested: int = 256  # sequences of a test; none is in the pool
    seeds: int = 4

    name = "composition.encoding"
    renamed = {"clip": "gradient_clip"}
    presets = {
        "quick": {
            "task.symbols": 4,
            "encoder.layers": 3,
            "encoder.width": 32,
            "batch": 16,
            "learning_rate": 3e-3,
            "warm_up": 50,
            "steps": 300,
            "evaluations": 6,
            "tested": 128,
        },
        "standard": {
            "task.symbols": 4,
            "encoder.width": 32,
            "batch": 16,
            "learning_rate": 3e-3,
            "warm_up": 100,
            "steps": 3000,
            "evaluations": 24,
            "tested": 128,
            "seeds": 20,
        },
        "paper": {"encoder.width": 128, "steps": 50_000, "seeds": 20, "tested": 1000, "evaluations": 100},
    }

    def __post_init__(self):
        super().__post_init__()
        check_ranges(
            self,
            pool=(1, 1e6),
            batch=(1, 1e6),
            steps=(1, 1e8),
            learning_rate=(1e-12, 1),
            warm_up=(1, 1e8),
            gradient_clip=(1e-12, 1e9),
            solved=(0.01, 1),
            evaluations=(1, 10_000),
            tested=(2, 1e5),
        )
        check_size(self)
        self.task.check_cyclic(self.name)
        require(
            self.pool <= self.task.population_size,
            f"{self.name}: a pool of {self.pool} leaves too few of the {self.task.population_size} sequences "
            "to test on (set --pool)",
        )
        require(
            self.encoder.vocabulary == Shape().vocabulary and self.encoder.positions == 0,
            f"{self.name}: how many tokens and places the encoder has follows from the task (leave "
            "--encoder.vocabulary and --encoder.positions)",
        )
        require(
            self.data != "curriculum" or self.steps >= len(self.asked_hops),
            f"{self.name}: {self.steps} steps are fewer than the {len(self.asked_hops)} parts of the "
            "curriculum (set --steps)",
        )
        require(
            len(self.asked_hops) > 0 and self.asked_hops[0] >= 1,
            f"{self.name}: hops to learn must be 1 or more, not {list(self.asked_hops)} (set --asked_hops)",
        )
        require(
            all(a < b for a, b in zip(self.asked_hops, self.asked_hops[1:])),
            f"{self.name}: hops must grow, not {list(self.asked_hops)} (set --asked_hops)",
        )

    @property
    def shape(self) -> Shape:
        """With a token for each symbol and each number of hops, and a place for each."""
        return replace(
            self.encoder, vocabulary=self.task.symbols + len(self.asked_hops), positions=self.task.tokens + 1
        )

    @property
    def trained_numbers(self) -> int:
        return self.shape.weights

    def program(self):
        from stagewise.papers.composition.encoder_steps import EncoderSteps as Rule
        from stagewise.training.loop import TrainingLoop
        from stagewise.training.schedule import schedule

        rule = Rule(
            self.task,
            self.asked_hops,
            self.shape,
            self.form,
            self.batch,
            self.pool,
            self.tested,
            self.gradient_clip,
            self.solved,
        )
        return TrainingLoop(rule, schedule(self.steps, evenly=self.evaluations))

    def start(self, seeds):
        from stagewise.papers.composition.initial import encoding

        return encoding(self, seeds)

    def model(self, state):
        from stagewise.lazy import jnp
        from stagewise.models.encoder import Encoder

        return Encoder.of(
            {name: jnp.asarray(weight) for name, weight in state["weights"].items()}, self.encoder.heads
        )


@dataclass(frozen=True)
class Identities(Experiment):
    """The paper's gradients in closed form beside automatic differentiation over all sequences, and on single
    samples, for hidden permutations that are random but for the first level's, the identity."""

    task: Composition = Composition(levels=4, symbols=3)
    beta0: float = 1.0  # size of the readouts at the start
    seeds: int = 6

    name = "composition.identities"
    presets = {"quick": {}, "standard": {}, "paper": {}}

    def __post_init__(self):
        super().__post_init__()
        check_ranges(self, beta0=(1e-6, 100))
        self.task.check_cyclic(self.name)
        require(
            self.task.depth >= 2,
            f"{self.name}: there must be at least two layers, so at least two levels (set --task.levels)",
        )
        size = self.task.population_size
        require(
            size <= 20_000,
            f"{self.name}: about 10^{size.bit_length() * 0.30103:.0f} sequences are too many to go through "
            "(set --task.levels or --task.symbols)",
        )

    def program(self):
        from stagewise.papers.composition.identities import DIMS, labels_along, measure
        from stagewise.training.measurement import Measurement

        return Measurement(measure, self.for_any_seed(), tuple(DIMS.items()), labels_along(self))

    def start(self, seeds):
        return {"seed": seeds}

    def model(self, state):
        raise Refused(f"{self.name} gives no model: it measures and trains none to keep")


@dataclass(frozen=True)
class Counting(Experiment):
    """Gradients of the first and the last layer, counted over more and more samples, with ideal layers below:
    their noise, and whether scores are right."""

    task: Composition = Composition()
    queries: Literal["one", "all"] = "one"  # asked of a sequence: one random, as in the paper, or all
    sizes: tuple[int, ...] = tuple(int(round(32 * 2 ** (n / 2))) for n in range(23))  # up to 65536
    tested: int = 20  # trials at each size
    seeds: int = 6

    name = "composition.counting"
    presets = {"quick": {"tested": 10}, "standard": {"seeds": 10}, "paper": {"seeds": 10}}

    def __post_init__(self):
        super().__post_init__()
        check_ranges(self, tested=(1, 10_000))
        self.task.check_power_of_two()
        self.task.check_cyclic(self.name)
        check_size(self)
        sizes = list(self.sizes)
        require(
            len(sizes) > 1 and sizes[0] >= 1 and all(a < b for a, b in zip(sizes, sizes[1:])),
            f"{self.name}: sizes must be at least two, and grow, not {sizes} (set --sizes)",
        )
        require(
            sizes[-1] <= 10**7,
            f"{self.name}: {sizes[-1]} samples are more than the 10^7 that fit at once (set --sizes)",
        )

    def program(self):
        from stagewise.papers.composition.counting import DIMS, STAGES, measure
        from stagewise.training.measurement import Measurement

        return Measurement(
            measure, self.for_any_seed(), tuple(DIMS.items()), (("stage", STAGES), ("size", self.sizes))
        )

    def start(self, seeds):
        return {"seed": seeds}

    def model(self, state):
        raise Refused(f"{self.name} gives no model: it measures and trains none to keep")


@dataclass(frozen=True)
class Same(Experiment):
    """Algorithms 1 and 2 on the same sequences, and how alike the matrices are that they learn."""

    training: Theory = Theory(fresh=False)
    other_target: bool = (
        False  # the second algorithm learns other hidden permutations, from the same sequences
    )
    seeds: int = 6

    name = "composition.same"
    never_counted = ("training.tested", "training.readout")
    presets = {"quick": {}, "standard": {}, "paper": {}}

    def __post_init__(self):
        super().__post_init__()
        require(
            not self.training.fresh,
            f"{self.name}: both algorithms must see the same sequences in every step (set "
            "--training.no_fresh)",
        )
        require(
            self.training.shared,
            f"{self.name}: both algorithms must see the same sequences, so all hops share them (leave "
            "--training.no_shared)",
        )
        usual = Theory(fresh=False)
        for setting in ("algorithm", "readout", "tested"):
            require(
                getattr(self.training, setting) == getattr(usual, setting),
                f"{self.name}: both algorithms are run and nothing is tested, so {setting} would "
                f"be ignored (leave --training.{setting})",
            )

    def program(self):
        from stagewise.papers.composition.agreement import DIMS, measure
        from stagewise.training.measurement import Measurement

        layers = tuple(range(1, self.training.task.depth + 1))
        return Measurement(
            measure,
            replace(self, training=self.training.for_any_seed()).for_any_seed(),
            tuple(DIMS.items()),
            (("layer", layers),),
        )

    def start(self, seeds):
        return {"seed": seeds}

    def model(self, state):
        raise Refused(f"{self.name} gives no model: it measures and trains none to keep")
