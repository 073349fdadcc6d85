"""The settings that the claims compare, by what they change, and trends in the sizes."""

from __future__ import annotations

from stagewise.lab.spec.study import Study
from stagewise.papers.cooccurrence.experiments import FEWER, SHARED, Start, TwoPhases

# Condition 1 with c0 = 0.1: the outputs start near zero, as the proofs want. `wide` also has m much larger
# than m1.
small_start = TwoPhases.plan()
natural_start = small_start.but(attention_scale=1.0)
wide = TwoPhases.plan(width=2048, neurons=64)

# The paper's experiment as we read it, to about the loss that its 30000 epochs reach, and another reading of
# "Kaiming".
experiment = TwoPhases.plan(initial="torch_linear", task=SHARED, target_loss=6e-5)
kaiming_normal = experiment.but(initial="kaiming_normal", target_loss=1e-3)
frozen_attention = experiment.but(trains="values")

# Assumption 2.3, part by part: random tokens that repeat, and types drawn instead of counted.
shared_words = wide.but(task=SHARED)
drawn_types = wide.but(**{"task.samples": 18, "task.vocabulary": 83, "task.counts": "drawn"})

far = wide.but(target_loss=3e-5)  # a scaled time of 10^5 and more
narrow = TwoPhases.plan(width=4, neurons=4, attention_scale=3.0)  # as far from the theory's limit as it gets

wide_start = Start.plan(width=2048, neurons=64, task=FEWER)

widths = Study(
    "cooccurrence.widths",
    "How both phases depend on the width m.",
    wide,
    over={"width": (128, 512, 2048, 8192)},
)
neuron_counts = Study(
    "cooccurrence.neurons",
    "How both phases depend on the number of neurons m1.",
    wide,
    over={"neurons": (16, 64, 256)},
)
scales = Study(
    "cooccurrence.scales",
    "How Phase 1 depends on the scale c0 at which weights start.",
    wide.but(target_loss=0.3),
    over={"attention_scale": (0.03, 0.1, 0.3)},
)
samples = Study(
    "cooccurrence.samples",
    "How both phases depend on the number of samples.",
    wide.but(**{"task.vocabulary": 83}),
    over={"task.samples": (12, 18, 30)},
    at_preset={
        "standard": {"task.samples": (30, 60, 120), "task.vocabulary": 323},
        "paper": {"task.samples": (30, 60, 120), "task.vocabulary": 323},
    },
)
lengths = Study(
    "cooccurrence.lengths",
    "How the scores depend on the length of sequences, at a fixed number of samples.",
    wide.but(**{"task.samples": 18, "task.vocabulary": 83}),
    over={"task.length": (4, 5, 6)},
)
early_losses = Study(
    "cooccurrence.early_losses",
    "The losses of the four types in Phase 1 and a little beyond, in the paper's experiment, by how weights "
    "start.",
    experiment.but(target_loss=0.1, seeds=16),
    over={"initial": ("torch_linear", "kaiming_normal")},
    at_preset={"standard": {"seeds": 64}, "paper": {"seeds": 64}},
)
starts = Study(
    "cooccurrence.starts",
    "How near to uniform attention starts.",
    Start.plan(neurons=16, seeds=8, task=FEWER),
    over={"width": (128, 512, 2048, 8192)},
)
