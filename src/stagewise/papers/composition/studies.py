"""What is run, by figure and theorem. Preset quick has up to 8 levels; at preset standard the curriculum has
the paper's 16."""

from __future__ import annotations

from stagewise.lab.spec.study import Study
from stagewise.papers.composition.experiments import Counting, EncoderTraining, Identities, Same, Theory

identities = Identities.plan()
same = Same.plan()
same_other_target = Same.plan(other_target=True)

# Figure 3 left and middle. All queries of a sequence are asked at quick and standard, which needs fewer
# sequences; one, as in the paper, at paper.
_EIGHT = {"task.levels": 8, "samples": 500, "chunk": 50}
curriculum = Theory.plan(**_EIGHT).where(
    quick={"seeds": 5},
    standard={"task.levels": 16, "samples": 1000},
    paper={"task.levels": 16, "samples": 100_000, "chunk": 100},
)
mixture = Theory.plan(algorithm="mixture", **_EIGHT).where(
    quick={"seeds": 5}, paper={"samples": 50_000, "chunk": 100}
)

# Rates and scales, on four levels.
small = Theory.plan(samples=400, chunk=100, queries="all").where(paper={"samples": 400, "chunk": 100})
weak = small.but(gap=2.0)
hardest = small.but(algorithm="hardest")
gaps = Study(
    "composition.gaps",
    "Algorithm 1 with larger and larger rates.",
    small,
    over={"gap": (5.0, 8.0, 10.0, 12.0, 15.0, 20.0, 40.0, 200.0, 2000.0)},
    at_preset={"quick": {"gap": (5.0, 8.0, 15.0, 20.0, 2000.0)}},
)
scales = Study(
    "composition.scales",
    "Algorithm 1 from smaller and larger readouts, at rates that make up for it.",
    small,
    over={"beta0": (0.1, 0.3, 1.0)},
    at_preset={"quick": {"beta0": (0.1, 1.0)}},
)
shared = small.but(algorithm="mixture")
weak_mixture = shared.but(gap=2.0)
separate = shared.but(shared=False)

# As many samples as Theorem 7 asks for, with one query each.
_LITERAL = {"queries": "one", "tested": 100}
literal_2_3 = Theory.plan(**_LITERAL, samples=2**4 * 3**6, chunk=36, **{"task.levels": 2, "task.symbols": 3})
literal_2_4 = Theory.plan(**_LITERAL, samples=2**4 * 4**6, chunk=64, **{"task.levels": 2, "task.symbols": 4})
literal_4_3 = Theory.plan(**_LITERAL, samples=4**4 * 3**6, chunk=144, **{"task.levels": 4, "task.symbols": 3})

# How many samples a stage needs.
_SIZES = Counting().sizes
# Up to 370728: 16 levels need more than 65536.
_MORE = _SIZES + tuple(int(round(32 * 2 ** (n / 2))) for n in range(23, 28))
by_levels = Study(
    "composition.by_levels",
    "Samples that the first and the last stage need, by number of levels, one query each.",
    Counting.plan(),
    over={"task.levels": (2, 4, 8, 16)},
    at_preset={
        "quick": {"task.levels": (2, 4, 8), "sizes": _SIZES[:-2]},
        "standard": {"sizes": _MORE},
        "paper": {"sizes": _MORE},
    },
)
_FEWER = tuple(int(round(8 * 2 ** (n / 2))) for n in range(15))  # up to 1024
by_levels_all = Study(
    "composition.by_levels_all",
    "The same with all queries of a sequence.",
    Counting.plan(queries="all", sizes=_FEWER),
    over={"task.levels": (2, 4, 8, 16)},
    at_preset={"quick": {"task.levels": (2, 4, 8)}},
)
by_symbols = Study(
    "composition.by_symbols",
    "The same by number of symbols, one query each.",
    Counting.plan(),
    over={"task.symbols": (3, 5, 8, 12)},
    at_preset={"quick": {"task.symbols": (3, 5, 8), "sizes": _SIZES[:-2]}},
)
phase = Study(
    "composition.phase",
    "Samples that the last stage needs, by number of levels and of symbols, one query each.",
    Counting.plan(),
    over={"task.levels": (2, 4, 8), "task.symbols": (3, 5, 8, 12)},
    at_preset={"quick": {"task.levels": (2, 4), "task.symbols": (3, 5), "sizes": _SIZES[:-2]}},
)

# Figure 3 right: a token says how many hops (as in the paper), or each has a readout.
token_mixture = EncoderTraining.plan().where(standard={"batch": 32, "steps": 4000})
token_hardest = token_mixture.but(data="hardest")
readout_mixture = EncoderTraining.plan(form="readouts")
readout_hardest = EncoderTraining.plan(form="readouts", data="hardest")

# What decides whether the most hops are learned: which hops are in the mixture, width, patience, order. Half
# an hour on two cores at preset standard.
# Settings and questions come from trials on seeds 100 to 103 (`experiment.start(np.arange(100, 104))`); what
# is judged are the seeds from 0 on.
_FORMS = ("token", "readouts")
_SMALLER = {"seeds": 8, "steps": 2000}
_LONGER = {"paper": {"steps": 50_000}}  # as Figure 3 right has there
mixtures = Study(
    "composition.mixtures",
    "Which hops are in the mixture, with a token and with readouts: 5 minutes at preset standard.",
    EncoderTraining.plan(**_SMALLER),
    over={"asked_hops": ((1, 4), (2, 4), (1, 2, 4), (1, 2, 3, 4)), "form": _FORMS},
    at_preset=_LONGER,
)
widths = Study(
    "composition.widths",
    "Wider encoders, with a token and with readouts, 2000 steps: 10 minutes at preset standard.",
    EncoderTraining.plan(**_SMALLER | {"learning_rate": 1.5e-3}),
    over={"encoder.width": (32, 64, 128), "form": _FORMS},
    at_preset=_LONGER,
)
patience = Study(
    "composition.ten_times_longer",
    "Ten times the steps, 20000, with a token and with readouts: 12 minutes at preset standard.",
    EncoderTraining.plan(seeds=8, steps=20_000, evaluations=40),
    over={"form": _FORMS},
    at_preset={"paper": {"steps": 500_000}},
)
in_turn = Study(
    "composition.hops_in_turn",
    "One number of hops after another, 3000 steps, with a token and with readouts: 2 minutes at preset "
    "standard.",
    EncoderTraining.plan(data="curriculum", seeds=8, steps=3000),
    over={"form": _FORMS},
    at_preset=_LONGER,
)
