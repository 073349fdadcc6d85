"""How many samples a stage needs: gradients counted with ideal layers below, against their expectation."""

from __future__ import annotations

import numpy as np

from stagewise.papers.composition import gradients
from stagewise.tasks.composition import Composition, doubled_hops, right_keys
from stagewise.training.program import DATA, INITIAL, generator

STAGES = ("first", "last")
DIMS = {"noise": ("stage", "size"), "right": ("stage", "size")}


def measure(settings, seed: int) -> dict[str, np.ndarray]:
    """For the first layer and the last, and more and more samples: the largest error of an entry of g, and
    how many queries of fresh sequences then have their highest score at the right key."""
    task: Composition = settings.task
    hidden, rng = task.draw_hidden(generator(seed, INITIAL)), generator(seed, DATA)
    fresh = task.draw(rng, settings.tested)
    noise, right = [], []
    for layer in (1, task.depth):
        g, named, goal = (
            gradients.population(hidden, layer),
            gradients.names(hidden, fresh, layer),
            right_keys(hidden, doubled_hops(hidden, fresh))[layer - 1],
        )
        total, done = np.zeros_like(g), 0
        for size in settings.sizes:  # each size takes in the samples of the one before
            sigma = task.draw(rng, size - done)
            queries = rng.integers(task.tokens, size=len(sigma)) if settings.queries == "one" else None
            total += (size - done) * gradients.counted(hidden, sigma, layer, queries)
            done = size
            scores = gradients.scores_of(total / done, named)
            noise.append(np.abs(total / done - g).max())
            right.append((scores.argmax(-1) == goal).mean())
    shape = (2, len(settings.sizes))
    return {"noise": np.reshape(noise, shape), "right": np.reshape(right, shape)}
