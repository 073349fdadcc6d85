"""Trends: the mixture paper's runs at several widths, scales, targets, rates and numbers of groups."""

from __future__ import annotations

from stagewise.lab.spec.experiment import Plan
from stagewise.lab.spec.study import Study
from stagewise.papers.mixture.experiments import (
    JointTraining,
    ManyGroups,
    SymmetricStages,
    SymmetricTraining,
    ThreeStages,
)

SCALES = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)


def gaussian_neurons(scale: float, trains: str) -> Plan:
    """Figure 3: neurons start at random instead of zero; the paper does not say at which scale."""
    return JointTraining.plan(neuron_scale=scale, trains=trains, steps=20000, seeds=16)


widths = Study(
    "mixture.widths",
    "How fast finite width approaches infinite width.",
    JointTraining.plan(seeds=24),
    over={"width": (8, 32, 128, 512, 2048)},
    at_preset={
        preset: {"width": (8, 32, 128, 512, 2048, 8192), "seeds": 64} for preset in ("standard", "paper")
    },
)

scales = Study(
    "mixture.scales",
    "Joint training at width 128 from smaller and smaller initial attention.",
    JointTraining.plan(seeds=8),
    over={"initial_scale": (0.3, 0.1, 0.03, 0.01)},
    at_preset={"standard": {"seeds": 32}, "paper": {"seeds": 32}},
)

scales_at_infinite_width = Study(
    "mixture.scales_at_infinite_width",
    "The limits that the runs of mixture.scales are compared with.",
    JointTraining.plan(width="infinite"),
    over={"initial_scale": (0.3, 0.1, 0.03, 0.01)},
)

starts = Study(
    "mixture.starts",
    "The random attention that training starts from, at many widths and scales, after a single step.",
    JointTraining.plan(steps=1, seeds=64),
    over={"initial_scale": (0.3, 0.03), "width": (16, 128, 1024, 8192)},
)

lengths = Study(
    "mixture.lengths",
    "Longer sequences: more noise tokens than the theory allows.",
    ManyGroups.plan(steps=12000, **{"task.groups": 2}),
    over={"task.length": (3, 4, 5)},
)

groups = Study(
    "mixture.groups",
    "How long joint training takes with more groups, at infinite width.",
    SymmetricTraining.plan(steps=14000),
    over={"task.groups": (2, 3, 4, 6, 8, 12, 16)},
    at_preset={
        preset: {"task.groups": (2, 3, 4, 6, 8, 12, 16, 24, 32), "steps": 30000}
        for preset in ("standard", "paper")
    },
)

rates = Study(
    "mixture.rates",
    "Whether gradient descent follows gradient flow, at infinite width.",
    SymmetricTraining.plan(steps=14000),
    over={"learning_rate": (0.01, 0.1, 0.5, 1.0, 2.0)},
)

biases = Study(
    "mixture.biases",
    "What the fixed bias is for, at infinite width.",
    SymmetricTraining.plan(steps=14000),
    over={"bias": (0.0, 0.05, 0.2, 0.5, 1.0, 2.0, 5.0)},
)

scales_in_stages = Study(
    "mixture.scales_in_stages",
    "How long Algorithm 1 takes from smaller and smaller initial attention, at infinite width.",
    ThreeStages.plan(width="infinite"),
    over={"initial_scale": SCALES},
)

targets_in_stages = Study(
    "mixture.targets_in_stages",
    "How long stage 3 of Algorithm 1 takes to reach smaller and smaller losses, at infinite width.",
    ThreeStages.plan(width="infinite"),
    over={"target_loss": (0.1, 0.03, 0.01, 0.003, 0.001)},
)

widths_in_stages = Study(
    "mixture.widths_in_stages",
    "Algorithm 1 at finite width.",
    ThreeStages.plan(seeds=24),
    over={"width": (32, 128, 512, 2048, 8192)},
    at_preset={"standard": {"seeds": 64}, "paper": {"seeds": 64}},
)

groups_in_stages = Study(
    "mixture.groups_in_stages",
    "How long attention takes with more groups and smaller initial attention, at infinite width.",
    SymmetricStages.plan(),
    over={"task.groups": (2, 3, 4, 8), "initial_scale": (0.1, 0.01, 0.001)},
    at_preset={
        preset: {"task.groups": (2, 3, 4, 8, 16), "initial_scale": SCALES[1:]}
        for preset in ("standard", "paper")
    },
)

# Phase diagrams: beyond the paper, which has each of these settings alone.
phase = Study(
    "mixture.phase",
    "When conflicting samples are learned, by the scale that attention starts from and by width.",
    JointTraining.plan(seeds=4),
    over={"initial_scale": (0.3, 0.1, 0.03, 0.01), "width": (8, 32, 128, 512)},
    at_preset={
        preset: {
            "initial_scale": SCALES,
            "width": (4, 8, 16, 32, 128, 512, 2048),
            "seeds": 16,
            "steps": 14000,
        }
        for preset in ("standard", "paper")
    },
)
phase_of_bias = Study(
    "mixture.phase_of_bias",
    "When attention begins to choose, by the fixed bias and the scale that attention starts from, at "
    "infinite width.",
    SymmetricTraining.plan(steps=14000),
    over={"bias": (0.0, 0.05, 0.2, 0.5, 1.0, 2.0, 5.0), "initial_scale": (0.3, 0.1, 0.03, 0.01)},
)
