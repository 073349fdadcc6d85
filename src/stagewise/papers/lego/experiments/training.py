"""The trained decoder of Section 7."""

from __future__ import annotations

from dataclasses import dataclass

from stagewise.errors import require
from stagewise.lab.spec.experiment import Experiment
from stagewise.lab.spec.settings import check_ranges
from stagewise.models.sizes import Clauses
from stagewise.tasks.lego import Lego


@dataclass(frozen=True)
class DecoderTraining(Experiment):
    """A clause decoder learns chains by Adam: at the first length from true answers, at each later one from
    answers that it wrote itself.

    A warm-up at length 1 may come before. With `stay` the later phases are as long, but at the first length
    and from true answers: the control of equal steps. About two minutes a seed at preset standard, hours at
    preset paper."""

    task: Lego = Lego()
    decoder: Clauses = Clauses()
    # of the chains trained on, one phase each; from the second on with the model's own answers
    lengths: tuple[int, ...] = (5,)
    stay: bool = False  # the later phases at the first length, from true answers: the control of equal steps
    warm_up: int = 0  # steps at length 1
    steps: int = 4000  # at the first length
    own_steps: int = 2000  # at each later length
    answers: int = 640  # in a batch, whatever the length
    own_answers: int = 1280  # in a batch of later lengths
    learning_rate: float = 2e-3  # of Adam, at the first length
    own_rate: float = 5e-4  # of Adam, at each later length
    last_rate: float = 2e-5  # to which the rate falls in every phase
    gradient_clip: float = 1.0  # the largest norm of a gradient
    tested: tuple[int, ...] = (5, 10, 20, 40, 80, 160)  # lengths of the chains tested on
    test_sentences: int = 128  # of each length
    evaluations: int = 2  # in every phase
    seeds: int = 6

    name = "lego.training"
    renamed = {"clip": "gradient_clip"}
    presets = {
        "quick": {
            "task.variables": 64,
            "decoder.width": 64,
            "decoder.embedding": 64,
            "decoder.inner": 128,
            "steps": 900,
            "evaluations": 1,
            "answers": 320,
            "learning_rate": 3e-3,
            "tested": (5, 10, 20, 40),
            "test_sentences": 64,
            "seeds": 4,
        },
        "standard": {},
        "paper": {
            "learning_rate": 1e-4,
            "own_rate": 1e-4,
            "last_rate": 1e-4,
            "steps": 117_000,
            "own_steps": 117_000,
            "answers": 1280,
            "seeds": 4,
        },
    }

    def __post_init__(self):
        super().__post_init__()
        check_ranges(
            self,
            warm_up=(0, 1e8),
            steps=(1, 1e8),
            own_steps=(1, 1e8),
            answers=(1, 1e6),
            own_answers=(1, 1e6),
            learning_rate=(1e-12, 1),
            own_rate=(1e-12, 1),
            last_rate=(0, 1),
            gradient_clip=(1e-12, 1e9),
            test_sentences=(1, 1e5),
            evaluations=(1, 1000),
        )
        require(len(self.lengths) > 0, f"{self.name}: there must be a length to train at (set --lengths)")
        first, last = self.lengths[0], self.lengths[-1]
        growing = all(a < b for a, b in zip(self.lengths, self.lengths[1:]))
        require(
            growing,
            f"{self.name}: training lengths must grow from one phase to the next, not {list(self.lengths)} "
            "(set --lengths)",
        )
        require(len(self.tested) > 0, f"{self.name}: there must be a length to test at (set --tested)")
        require(
            all(a < b for a, b in zip(self.tested, self.tested[1:])),
            f"{self.name}: tested lengths must grow, not {list(self.tested)} (set --tested)",
        )
        require(
            not self.stay or len(self.lengths) > 1,
            f"{self.name}: to stay at the first length there must be a later one (set --lengths or "
            "--no_stay)",
        )
        watched = (*self.lengths, *self.tested, 20)  # 20: at which attention is watched
        for length in watched:
            self.task.check_length(length)
        longest = max(watched)
        require(
            self.answers >= first,
            f"{self.name}: {self.answers} answers are less than one chain of {first} (set --answers)",
        )
        require(
            len(self.lengths) == 1 or self.own_answers >= last,
            f"{self.name}: {self.own_answers} answers are less than one chain of {last} (set --own_answers)",
        )
        require(
            self.decoder.encoding == "none" or self.decoder.places >= 2 * longest,
            f"{self.name}: chains of {longest} have {2 * longest} places, more than the "
            f"{self.decoder.places} that are encoded (set --decoder.places)",
        )
        require(
            self.test_sentences <= 64 or self.test_sentences % 64 == 0,
            f"{self.name}: more than 64 test sentences come in whole groups of 64, not {self.test_sentences} "
            "(set --test_sentences)",
        )

    def phases(self) -> list[tuple[str, int, int, int, bool, float]]:
        """Name, length, batch, steps, whether the model writes the answers, and rate, of every phase."""
        first = self.lengths[0]
        found = (
            [("warm-up", 1, self.answers, self.warm_up, False, self.learning_rate)] if self.warm_up else []
        )
        found.append((f"length {first}", first, self.answers // first, self.steps, False, self.learning_rate))
        for number, length in enumerate(self.lengths[1:], start=1):
            if self.stay:
                found.append(
                    (
                        f"length {first}, again ({number})",
                        first,
                        self.own_answers // first,
                        self.own_steps,
                        False,
                        self.own_rate,
                    )
                )
            else:
                found.append(
                    (
                        f"length {length}, own answers",
                        length,
                        self.own_answers // length,
                        self.own_steps,
                        True,
                        self.own_rate,
                    )
                )
        return found

    @property
    def trained_numbers(self) -> int:
        return self.decoder.weights

    def program(self):
        from stagewise.papers.lego.learning import Learning
        from stagewise.training.loop import TrainingLoop
        from stagewise.training.phases import Phases
        from stagewise.training.schedule import schedule

        phases = []
        for name, length, batch, steps, own, _ in self.phases():
            rule = Learning(
                self.task,
                self.decoder,
                length,
                batch,
                own,
                self.tested,
                self.test_sentences,
                self.gradient_clip,
            )
            phases.append(
                TrainingLoop(rule, schedule(steps, evenly=1 if name == "warm-up" else self.evaluations)[1:])
            )
        return Phases(tuple(name for name, *_ in self.phases()), tuple(phases))

    def start(self, seeds):
        from stagewise.papers.lego.initial import start

        return start(self, seeds)

    def model(self, state):
        from stagewise.lazy import jnp
        from stagewise.models.clause_decoder import ClauseDecoder

        return ClauseDecoder(
            **{name: jnp.asarray(weight) for name, weight in state["weights"].items()},
            heads=self.decoder.heads,
        )
