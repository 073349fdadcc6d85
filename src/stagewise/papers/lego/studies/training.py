"""Training runs, by figure. Preset quick has the cyclic group in a small model; the rest begins at preset
standard."""

from __future__ import annotations

from stagewise.lab.spec.study import Study
from stagewise.papers.lego.experiments import DecoderTraining

# Length 5 alone, until the loss is gone (Figures 1a, 2, 5, 6 and 7).
cyclic = DecoderTraining.plan(**{"task.action.group": "C6"}).where(standard={"steps": 12_000})
symmetric = cyclic.but(**{"task.action.group": "S5"})

# Self-training (Figure 1b), from a model that was trained for less long and has room to grow; and as many
# steps at length 5.
recursive = DecoderTraining.plan(lengths=(5, 10, 20, 40), **{"task.action.group": "S5"})
stayed = recursive.but(stay=True)

encodings = Study(
    "lego.encodings",
    "No position encoding, a learned one, and waves, on C6 (Section 8).",
    DecoderTraining.plan(seeds=4, **{"task.action.group": "C6"}),
    over={"decoder.encoding": ("none", "learned", "sinusoidal")},
)

# One group, one number of actions, larger and larger stabilisers: S4 on the cosets of subgroups of order 1,
# 2, 3, 4 and 6. (On those of order 8 four of its
# elements do nothing.)
SUBGROUPS = ("()", "(0 1)", "(0 1 2)", "(0 1 2 3)", "(0 1), (0 1 2)")
stabilisers = Study(
    "lego.stabilisers",
    "S4 on the cosets of larger and larger subgroups, everything else the same: a quarter of an hour on two "
    "cores at preset standard.",
    DecoderTraining.plan(
        seeds=4, **{"task.action.group": "S4", "task.action.on": "cosets", "task.action.subgroup": "()"}
    ),
    over={"task.action.subgroup": SUBGROUPS},
)
