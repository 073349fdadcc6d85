"""Algorithm 2 with four numbers: attention is trained on chains of length 2, then on 4, 8, … with answers
that it wrote itself."""

from __future__ import annotations

import numpy as np

from stagewise.papers.lego.closed import (
    SCORES,
    attention,
    chains,
    concentration,
    follow,
    ideal_features,
    least_loss,
    outputs,
    seen_by_neurons,
)
from stagewise.papers.lego.two_steps import TwoSteps
from stagewise.training import stiff
from stagewise.training.program import DATA, generator
from stagewise.training.stages import EVENT

DIMS = {
    name: ("stages",)
    for name in (
        "reached",
        "agreement",
        "missed_before",
        "gap_before",
        "missed",
        "missed_last",
        "gap",
        "longest",
        *SCORES,
    )
}
EVALUATIONS = 3000  # of the velocity in a stage, several times what it takes where labels are right
DIMS |= {"chain": ("stages", "times"), "probability": ("stages", "times")}


def self_labels(
    features: np.ndarray,
    table: np.ndarray,
    scores: dict,
    length: int,
    chosen: np.ndarray,
    passed: np.ndarray,
    constants: dict,
) -> np.ndarray:
    """The values of answers 0, 1 and 2 as the model writes them, greedily: all that the loss of step 2
    reads."""
    written = passed[:, :3].copy()
    for step in (1, 2):
        walked = np.concatenate([written[:, : step + 1], passed[:, step + 1 :]], 1)
        seen, _ = seen_by_neurons(features, chosen, walked, step)
        paid = np.array([float(attention(scores, length, step)[name]) for name in SCORES])
        written[:, step] = outputs(constants["bias"] + seen @ paid, constants).argmax(1)
    return written


def train(
    features: np.ndarray,
    table: np.ndarray,
    stages: int,
    until: float,
    most: int,
    constants: dict,
    rng: np.random.Generator,
    tested_multiples: tuple[int, ...],
) -> dict:
    """Stage after stage, each until the logarithm of its loss is `until`, 10^12 units of time are over, or
    the evaluations are used up: what each ended at."""
    scores, found = {name: 0.0 for name in SCORES}, []
    motion = TwoSteps(1, features.shape[1])
    for k in range(1, stages + 1):
        length = 2**k
        chosen, passed = chains(table, length, most, rng)
        written = passed.copy()
        if k > 1:
            written[:, :3] = self_labels(features, table, scores, length, chosen, passed, constants)
        seen, target = seen_by_neurons(features, chosen, written, 2)
        before, gap_before = (float(each) for each in concentration(scores, length, 2))
        fixed = (
            {name: 1.0 for name in SCORES},
            np.ones(1),
            {"excess": 0.0, "log_loss": 1.0},
            -1.0,
            (1e-6, 1e-8),
        )
        start = {name: np.float64(value) for name, value in scores.items()}
        scores, duration, outcome, *_ = stiff.solve(
            motion,
            0,
            EVALUATIONS,
            fixed,
            start,
            constants
            | {"seen0": seen, "target0": target, "length0": np.float64(length), "step0": np.float64(2)},
            -until,
            1e12,
        )
        missed, gap = (float(each) for each in concentration(scores, length, 2))
        missed_last, _ = concentration(scores, length, length)
        most_named = int(constants["variables"]) - 1
        # Of interest where variables are few.
        longest = (
            follow(features, table, scores, most_named, constants, rng)["chain"]
            if most_named < 100
            else np.nan
        )
        walks = [
            follow(features, table, scores, length * times, constants, rng) for times in tested_multiples
        ]
        found.append(
            {
                "reached": float(outcome == EVENT),
                "agreement": float((written == passed)[:, 1:3].mean()),
                "missed_before": before,
                "gap_before": gap_before,
                "missed": missed,
                "missed_last": float(missed_last),
                "gap": gap,
                "longest": longest,
                "chain": [w["chain"] for w in walks],
                "probability": [w["probability"] for w in walks],
                **{name: float(scores[name]) for name in SCORES},
            }
        )
    return {name: np.array([stage[name] for stage in found]) for name in found[0]}


def measure(settings, seed: int) -> dict[str, np.ndarray]:
    """All stages of one seed, which draws the chains."""
    table, scalars = settings.action.maps(), settings.constants()
    constants = {name: np.float64(value) for name, value in scalars.items()} | {
        "variables": np.float64(settings.variables)
    }
    until = (
        -settings.target * np.log(settings.vocabulary)
        if settings.target
        else np.log(1.5 * least_loss(settings.vocabulary, scalars["top"]))
    )
    features = ideal_features(table, scalars["top"])
    return train(
        features,
        table,
        settings.stages,
        until,
        settings.most,
        constants,
        generator(seed, DATA),
        settings.tested_multiples,
    )
