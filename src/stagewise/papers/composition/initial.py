"""What the runs start with."""

from __future__ import annotations

import jax
import numpy as np

from stagewise.models.encoder import draw_encoder
from stagewise.papers.composition.encoder_steps import pooled
from stagewise.papers.composition.learning import begin, plan
from stagewise.tasks.composition import Composition
from stagewise.training import adam, loop
from stagewise.training.program import DATA, INITIAL, State, generator, stacked, stream

POOL = 3  # the stream of a seed from which its pool is drawn


def hidden_of(task: Composition, seed: int) -> np.ndarray:
    """A seed's hidden permutations."""
    return task.draw_hidden(generator(seed, INITIAL)).astype(np.int32)


def theory(settings, seeds: np.ndarray) -> State:
    """Attention at zero, readouts at beta0, and hidden permutations of the seed's own."""
    depth, lanes = settings.task.depth, []
    for seed in seeds:
        weights = begin(settings.task, settings.beta0) | {
            "count": np.int32(0),
            "gradient": np.zeros(depth, np.float32),
        }
        constants = {
            "rate": np.float32(settings.rate),
            "hidden": hidden_of(settings.task, int(seed)),
            "chunks": np.int32(settings.samples // settings.chunk),
            "fresh": settings.fresh,
            "shared": settings.shared,
            "sample": np.asarray(jax.random.key_data(stream(int(seed), DATA))),
        }
        lanes.append((weights, plan(depth, settings.algorithm) | constants))
    weights, constants = zip(*lanes)
    return loop.begin(stacked(weights), stacked(constants), seeds)


def encoding(settings, seeds: np.ndarray) -> State:
    """A random encoder and hidden permutations of the seed's own; what is asked in each part of the training;
    the key of the pool, and sequences to test on."""
    lanes, hops = [], len(settings.asked_hops)
    asked = {"mixture": np.ones((1, hops)), "hardest": np.eye(hops)[-1:], "curriculum": np.eye(hops)}[
        settings.data
    ]
    readouts = 1 if settings.form == "token" else hops
    for seed in seeds:
        rng = generator(int(seed), INITIAL)
        hidden = settings.task.draw_hidden(rng).astype(np.int32)
        model = draw_encoder(settings.shape, readouts, settings.task.symbols, rng).weights()
        pool = np.asarray(jax.random.key_data(stream(int(seed), POOL)))
        seen = np.asarray(pooled(settings.task, pool, settings.pool))
        constants = {
            "asked": asked.astype(np.float32),
            "steps": np.float32(settings.steps),
            "rate": np.float32(settings.learning_rate),
            "warm_up": np.float32(settings.warm_up),
            "hidden": hidden,
            "pool": pool,
            "tested": settings.task.draw_unseen(rng, settings.tested, seen),
        }
        lanes.append(({"model": model, "adam": adam.begin(model)}, constants))
    weights, constants = zip(*lanes)
    return loop.begin(stacked(weights), stacked(constants), seeds)
