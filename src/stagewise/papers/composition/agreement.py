"""Both algorithms on the same sequences: how alike are the key-query matrices that they learn?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stagewise.papers.composition.initial import hidden_of
from stagewise.papers.composition.learning import layer_names

DIMS = {"cosine": ("layer",)}


def measure(settings, seed: int) -> dict[str, np.ndarray]:
    """The cosine between the two results, layer by layer."""
    ends = []
    for algorithm, of_target in (("curriculum", seed), ("mixture", seed + 10_000 * settings.other_target)):
        training = replace(settings.training, algorithm=algorithm)
        program, state = training.program(), training.start(np.array([seed]))
        state["constants"]["hidden"] = hidden_of(training.task, of_target)[None]
        for chunk in range(program.chunks):
            state, _ = program.advance(state, chunk)
        ends.append(state["weights"])
    return {
        "cosine": np.array(
            [
                _cosine(*(np.asarray(end[name], float).ravel() for end in ends))
                for name in layer_names(settings.training.task.depth)
            ]
        )
    }


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))
