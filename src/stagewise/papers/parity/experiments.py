"""The parity paper's training runs. Studies over them are in `studies.py`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from stagewise.errors import Refused, require
from stagewise.lab.spec.experiment import Experiment
from stagewise.lab.spec.settings import check_ranges, check_used
from stagewise.models.sizes import Shape
from stagewise.tasks.parity import MOST_BITS_TO_ENUMERATE, MOST_BITS_TO_LIST, Parity

# evaluations follow each other at this share of the steps so far, and never faster than `evaluate_every`
GROWTH = 0.02


@dataclass(frozen=True)
class GPTTraining(Experiment):
    """A GPT-2 learns parity by Adam, with linear decay, until it is right on every validation input or the
    samples are used up.

    At preset `paper` a run with a chain of thought takes seconds to minutes, one without minutes to hours."""

    task: Parity = Parity()
    gpt: Shape = Shape()
    answers: int = 0  # that a program for chains of thought has room for, if more than the task has
    batch: int = 512  # sequences in a step
    learning_rate: float = 1e-4  # of Adam; it falls linearly
    samples: int = 10_000_000  # the budget; repeated ones count
    decay_samples: int = 0  # over which the rate falls to zero; 0: over the budget
    training_set: int = 0  # how many inputs are used again and again; 0: fresh ones every step
    plain_samples: int = 0  # that come first and have their answer without the chain of thought
    validation: int = 2048  # inputs that are never trained on
    evaluate_every: int = 4  # steps
    dropout: float = 0.0  # share of activations
    gradient_clip: float = 1.0  # the largest norm of a gradient
    scale: float = 0.02  # of the initial weights
    embedding_scale: float = 0.02  # of the initial embeddings
    goal: float = 1.0  # the exact match that counts as solved
    # when a seed ends: once it is solved, or when the budget is used up
    until: Literal["solved", "end"] = "solved"

    name = "parity.training"
    renamed = {"clip": "gradient_clip"}
    presets = {
        "quick": {
            "task.bits": 16,
            "gpt.width": 64,
            "batch": 128,
            "learning_rate": 1e-3,
            "scale": 0.067,
            "embedding_scale": 0.2,
            "samples": 200_000,
            "validation": 256,
        },
        "standard": {
            "task.bits": 20,
            "gpt.width": 64,
            "batch": 256,
            "learning_rate": 1e-3,
            "scale": 0.067,
            "embedding_scale": 0.2,
            "samples": 2_000_000,
        },
        "paper": {"learning_rate": 6e-5, "seeds": 1},
    }

    def __post_init__(self):
        super().__post_init__()
        check_ranges(
            self,
            batch=(1, 1e6),
            samples=(1, 1e10),
            decay_samples=(0, 1e10),
            training_set=(0, 1e8),
            answers=(0, 1e4),
            validation=(1, 1e6),
            evaluate_every=(1, 1e6),
            plain_samples=(0, 1e10),
            goal=(0.5, 1),
            learning_rate=(1e-12, 1),
            gradient_clip=(1e-12, 1e9),
            scale=(1e-12, 10),
            embedding_scale=(1e-12, 10),
            dropout=(0, 0.99),
        )
        check_used(self, "goal", self.until == "solved", "--until solved")
        require(
            self.gpt.vocabulary == 2,
            f"{self.name}: there are two kinds of tokens, not {self.gpt.vocabulary} (set --gpt.vocabulary)",
        )
        require(
            self.samples >= self.batch,
            f"{self.name}: a budget of {self.samples} samples is smaller than one batch of {self.batch} (set "
            "--samples or --batch)",
        )
        require(
            self.training_set == 0 or self.training_set >= self.batch,
            f"{self.name}: {self.training_set} training inputs do not fill a batch of {self.batch} (set "
            "--training_set or --batch)",
        )
        if self.task.bits <= MOST_BITS_TO_LIST:
            there, wanted = 2**self.task.bits, self.validation + max(self.training_set, self.batch)
            require(
                wanted <= there,
                f"{self.name}: {self.task.bits} bits have {there} inputs, too few for {wanted} (set "
                "--validation, --training_set or --task.bits)",
            )

    @property
    def trained_numbers(self) -> int:
        return self.shape.weights

    @property
    def room(self) -> int:
        """How many answers the program has."""
        return max(self.answers if self.task.chain_of_thought else 0, len(self.task.asked))

    @property
    def shape(self) -> Shape:
        return replace(
            self.gpt, positions=max(self.gpt.positions, self.task.bits + self.task.separated + self.room - 1)
        )

    @property
    def pool(self) -> int:
        """How many training inputs are kept: the set, or all that are not for validation where they can be
        listed."""
        if self.training_set or self.task.bits > MOST_BITS_TO_ENUMERATE:
            return self.training_set
        return 2**self.task.bits - self.validation

    def steps(self) -> tuple[int, ...]:
        """When the model is evaluated."""
        found, last = [0], self.samples // self.batch
        while found[-1] < last:
            found.append(
                min(
                    last,
                    found[-1] + max(1, round(GROWTH * found[-1] / self.evaluate_every)) * self.evaluate_every,
                )
            )
        return tuple(found)

    def program(self):
        from stagewise.papers.parity.learning import Learning
        from stagewise.training.loop import TrainingLoop

        rule = Learning(
            self.shape,
            self.task.bits,
            self.room,
            self.task.separated,
            self.batch,
            self.gradient_clip,
            self.dropout,
            self.pool,
            self.training_set > 0,
            self.validation,
        )
        return TrainingLoop(rule, self.steps())

    def start(self, seeds):
        from stagewise.papers.parity.initial import start

        return start(self, seeds)

    def model(self, state):
        from stagewise.lazy import jnp
        from stagewise.models.gpt import GPT

        weights: dict[str, Any] = {name: jnp.asarray(weight) for name, weight in state["weights"].items()}
        return GPT(**weights, heads=self.gpt.heads)


@dataclass(frozen=True)
class ThreeSteps(Experiment):
    """Theorem 3's network: three steps of stochastic gradient descent, in the table form. A second or so a
    seed.

    Both first rates are sqrt(128 m n^2 signal), so that the score on the secret becomes `signal` where the
    place is n."""

    task: Parity = Parity(bits=10, secret_size=3)
    dimension: int = 0  # of the embeddings; 0: orthogonal ones, the limit of many dimensions
    neurons: int = 400  # m, of 2m
    batch: int = 20_000  # sequences in each of the three steps
    epsilon: float = 1.0  # in the rate of the last step
    signal: float = 60.0  # the score that the first two steps give the secret
    last_rate: Literal["repaired", "assumption2"] = "repaired"  # 16 m epsilon / 3, or 4 k epsilon / 3
    loss: Literal["hinge", "linear"] = "hinge"  # of the margin: cut off where it is large, or not
    tested: int = 4096  # sequences, or all there are

    name = "parity.three_steps"
    presets = {
        "quick": {"neurons": 200, "batch": 8000, "tested": 1024},
        "standard": {"task.bits": 20, "task.secret_size": 5, "dimension": 4096, "batch": 40_000},
        "paper": {"task.bits": 20, "task.secret_size": 5, "dimension": 4096, "batch": 40_000, "seeds": 16},
    }

    def __post_init__(self):
        super().__post_init__()
        check_ranges(
            self,
            dimension=(0, 1e6),
            neurons=(1, 1e5),
            batch=(1, 1e7),
            tested=(1, 1e6),
            epsilon=(1e-6, 1e6),
            signal=(1e-6, 1e6),
        )
        require(
            self.task.format == "paper",
            f"{self.name}: the theory has the paper's format, not {self.task.format!r} (set --task.format)",
        )
        for what, size in (
            ("places and dimension", self.task.length * self.dimension),
            ("places and neurons", self.task.length * self.neurons),
        ):
            require(
                size <= 10**8,
                f"{self.name}: {what} are too large together, {size:.2g} (set --task.bits, --dimension or "
                "--neurons)",
            )

    def rates(self) -> tuple[float, float, float]:
        """eta0, eta1, eta2."""
        first = (128 * self.neurons * self.task.bits**2 * self.signal) ** 0.5
        last = 16 * self.neurons / 3 if self.last_rate == "repaired" else 4 * self.task.secret_size / 3
        return first, first, last * self.epsilon

    def program(self):
        from stagewise.papers.parity import three_steps

        return three_steps.ThreeSteps(self.for_any_seed())

    def start(self, seeds):
        from stagewise.papers.parity import three_steps

        return three_steps.start(self, seeds)

    def model(self, state):
        raise Refused(f"{self.name} gives no model: its weights are combinations of embeddings")


@dataclass(frozen=True)
class Identities(ThreeSteps):
    """Three steps with plain weights by automatic differentiation, with tables, and by the lemmas' formulas,
    side by side."""

    task: Parity = Parity(bits=6, secret_size=3)
    dimension: int = 128  # of the embeddings
    neurons: int = 8  # m, of 2m
    batch: int = 64  # sequences in each of the three steps
    epsilon: float = 30.0  # in the rate of the last step
    signal: float = 5.0  # the score that the first two steps give the secret
    loss: Literal["hinge", "linear"] = "linear"  # of the margin: cut off where it is large, or not
    seeds: int = 4

    name = "parity.identities"
    presets = {"quick": {}, "standard": {"seeds": 8}, "paper": {"seeds": 8}}

    def __post_init__(self):
        super().__post_init__()
        check_used(self, "tested", False, "parity.three_steps; here nothing is tested")
        require(
            self.task.chain_of_thought,
            f"{self.name}: the lemmas are about chains of thought (leave --task.no_chain_of_thought away)",
        )

    def program(self):
        from stagewise.papers.parity.identities import DIMS, measure
        from stagewise.training.measurement import Measurement

        return Measurement(measure, self.for_any_seed(), tuple(DIMS.items()))

    def start(self, seeds):
        return {"seed": seeds}


@dataclass(frozen=True)
class Construction(Experiment):
    """Theorem 1's explicit weights, run on random inputs, or on all if they are few. Nothing is trained."""

    task: Parity = Parity(bits=30, secret_size=8, chain_of_thought=False)
    dimension: int = 256  # of the embeddings
    seeds: int = 8
    tested: int = 4096  # inputs, or all there are

    name = "parity.construction"
    presets = {"quick": {"tested": 1024}, "standard": {"seeds": 16}, "paper": {"seeds": 16}}

    def __post_init__(self):
        super().__post_init__()
        check_ranges(self, dimension=(1, 1e6), tested=(1, 1e6))
        require(
            not self.task.chain_of_thought,
            f"{self.name}: Theorem 1 has no chain of thought (set --task.no_chain_of_thought)",
        )
        require(
            self.task.format == "paper",
            f"{self.name}: the theory has the paper's format, not {self.task.format!r} (set --task.format)",
        )
        require(
            self.dimension * self.task.bits <= 10**8,
            f"{self.name}: {self.task.bits} bits of dimension {self.dimension} do not fit (set --dimension)",
        )
        require(self.task.bits >= 2, f"{self.name}: Theorem 1 needs two bits at least (set --task.bits)")

    def inputs(self, rng):
        """What it is run on."""
        import numpy as np

        if 2**self.task.bits <= self.tested:
            return (np.arange(2**self.task.bits)[:, None] >> np.arange(self.task.bits)) & 1
        return rng.integers(0, 2, (self.tested, self.task.bits))

    def program(self):
        from stagewise.papers.parity.construction import DIMS, PRECISIONS, measure
        from stagewise.training.measurement import Measurement

        return Measurement(measure, self.for_any_seed(), tuple(DIMS.items()), (("precision", PRECISIONS),))

    def start(self, seeds):
        return {"seed": seeds}

    def model(self, state):
        raise Refused(f"{self.name} trains nothing: there is no model to give out")


@dataclass(frozen=True)
class Rounded(ThreeSteps):
    """The network of Theorem 3 after its three steps, with weights and activations rounded to a few bits."""

    dimension: int = 512  # of the embeddings
    neurons: int = 200  # m, of 2m
    batch: int = 4000  # sequences in each of the three steps
    epsilon: float = 30.0  # in the rate of the last step
    loss: Literal["hinge", "linear"] = "linear"  # of the margin: cut off where it is large, or not

    name = "parity.rounded"
    presets = {
        "quick": {"seeds": 6, "neurons": 100, "batch": 2000, "tested": 256},
        "standard": {},
        "paper": {},
    }

    def program(self):
        from stagewise.papers.parity.precision import DIMS, PRECISIONS, measure
        from stagewise.training.measurement import Measurement

        return Measurement(measure, self.for_any_seed(), tuple(DIMS.items()), (("precision", PRECISIONS),))

    def start(self, seeds):
        return {"seed": seeds}


@dataclass(frozen=True)
class Embeddings(Experiment):
    """Random sign embeddings: inner products against the bounds of Lemmas 30 and 31. Nothing is trained."""

    places: int = 33  # n + k
    secret_size: int = 3  # k
    dimension: int = 512  # of the embeddings
    seeds: int = 100

    name = "parity.embeddings"
    presets = {"quick": {}, "standard": {"seeds": 400}, "paper": {"seeds": 400}}

    def __post_init__(self):
        super().__post_init__()
        check_ranges(self, places=(3, 1e4), secret_size=(1, self.places - 2), dimension=(1, 1e6))
        require(
            self.places * self.dimension <= 10**8,
            f"{self.name}: {self.places} places of dimension {self.dimension} do not fit (set --dimension)",
        )

    def program(self):
        from stagewise.papers.parity.orthogonality import DIMS, measure
        from stagewise.training.measurement import Measurement

        return Measurement(measure, self.for_any_seed(), tuple(DIMS.items()))

    def start(self, seeds):
        return {"seed": seeds}

    def model(self, state):
        raise Refused(f"{self.name} trains nothing: there is no model to give out")
