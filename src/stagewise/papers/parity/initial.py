"""What a training run starts with: weights, a secret, and training and validation inputs that have none in
common."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stagewise.models.gpt import draw
from stagewise.tasks.parity import Parity
from stagewise.training import adam, loop
from stagewise.training.program import DATA, EVALUATION, INITIAL, State, generator, stacked


def start(settings, seeds: np.ndarray) -> State:
    """The state at step 0; a seed has the same secret and inputs whatever the model."""
    lanes = [lane(settings, int(seed)) for seed in seeds]
    weights, constants = zip(*lanes)
    return loop.begin(stacked(weights), stacked(constants), seeds)


def lane(settings, seed: int) -> tuple[dict, dict]:
    """Weights and constants of one seed."""
    task, steps = settings.task, (settings.decay_samples or settings.samples) // settings.batch
    secret = task.draw_secret(generator(seed, DATA))
    model = draw(settings.shape, generator(seed, INITIAL), settings.scale, settings.embedding_scale).weights()
    pool, validation = task.inputs(generator(seed, EVALUATION), settings.pool, settings.validation)
    constants = {
        "text": text(task, secret, settings.room),
        "rate": np.float32(settings.learning_rate),
        "decay_steps": np.float32(max(steps, 1)),
        "validation": np.packbits(validation, axis=1),
        "pool": np.packbits(pool, axis=1),
        "goal": np.float32(settings.goal if settings.until == "solved" else 2),
        "first_text": text(replace(task, chain_of_thought=False, order="ascending"), secret, settings.room),
        "switch": np.int32(min(settings.plain_samples // settings.batch, 2**31 - 1)),
    }
    order = np.arange(settings.training_set, dtype=np.int32)
    return {"model": model, "adam": adam.begin(model), "order": order}, constants


def text(task: Parity, secret: np.ndarray, room: int) -> dict[str, np.ndarray]:
    """The tables of a secret, padded to the answers that the program has room for; see `learning.Text`."""
    missing = room - len(task.asked)
    padded = {
        "sums": task.sums(secret),
        "looks": task.depends_on(secret),
        "counts": np.ones((1, len(task.asked)), np.int8),
    }
    tables = {name: np.pad(table, ((0, 0), (0, missing))) for name, table in padded.items()}
    return tables | {"counts": tables["counts"][0]}
