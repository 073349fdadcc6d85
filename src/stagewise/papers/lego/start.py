"""What the runs start with."""

from __future__ import annotations

import jax
import numpy as np

from stagewise.models.clause_decoder import draw
from stagewise.papers.lego.closed import SCORES, ideal_features
from stagewise.papers.lego.retrieval import Retrieval
from stagewise.papers.lego.two_steps import lane
from stagewise.training import adam, flow, loop
from stagewise.training.program import DATA, INITIAL, State, generator


def start(settings, seeds: np.ndarray) -> State:
    """A decoder with random weights, which is also its own first teacher, and the rates of all turns."""
    task, weights = settings.task, []
    for seed in seeds:
        model = draw(settings.decoder, task.variables, task.action.actions, task.action.values, generator(int(seed), INITIAL)).weights()
        weights.append({"model": model, "adam": adam.begin(model), "teacher": model, "began": np.zeros((), np.int32)})
    numbers = {"last_rate": settings.last_rate}
    for name, _, _, steps, _, rate in settings.turns():
        numbers |= {f"{name}.rate": rate, f"{name}.steps": steps}
    return loop.begin(_stacked(weights), {name: np.full(len(seeds), number, np.float32) for name, number in numbers.items()}, seeds)


def one_step(settings, seeds: np.ndarray) -> State:
    """Features V = W M of normal weights W under an embedding M, and the Gram matrix by which gradients of V are turned."""
    lanes, (actions, values) = [], settings.action.maps().shape
    for seed in seeds:
        rng = generator(int(seed), INITIAL)
        drawn = settings.numbers()["spread"] * rng.standard_normal((values, settings.width, actions + values))
        maps = [embedding(size, settings.condition, rng) for size in (actions, values)]
        of_action, of_value = drawn[..., :actions] @ maps[0], drawn[..., actions:] @ maps[1]
        numbers = {name: np.float64(value) for name, value in settings.numbers().items()} | {"excess": np.float64(settings.excess)}
        grams = {"gram_actions": maps[0].T @ maps[0], "gram_values": maps[1].T @ maps[1]}
        lanes.append(({"V": np.concatenate([of_action, of_value], -1)}, numbers | grams))
    weights, numbers = zip(*lanes)
    return flow.begin(_stacked(weights), _stacked(numbers), 1)


def embedding(size: int, condition: float, rng: np.random.Generator) -> np.ndarray:
    """Token vectors as columns, whose Gram matrix has the condition number; the identity for 1."""
    if condition == 1:
        return np.eye(size)
    turned, _ = np.linalg.qr(rng.standard_normal((size, size)))
    return np.geomspace(condition**-0.25, condition**0.25, size)[:, None] * turned


def two_steps(settings, seeds: np.ndarray) -> State:
    """Scores at zero, and what the neurons see: those of an ideal perceptron, the same for every first value, or those that stage 1 leaves."""
    lanes, table = [], settings.action.maps()
    scalars = settings.numbers() | {"variables": float(settings.variables)}
    if settings.features == "ideal":
        features, firsts = [ideal_features(table, scalars["top"])] * len(seeds), 1
    else:
        ended, _ = settings.first_stage.program().advance(one_step(settings.first_stage, seeds), 0)
        features, firsts = np.asarray(ended["weights"]["V"]), None
    for seed, given in zip(seeds, features):
        seen = lane(table, given, settings.losses, settings.most, generator(int(seed), DATA), firsts)
        lanes.append({name: np.float64(value) for name, value in scalars.items()} | seen)
    return flow.begin({name: np.zeros(len(seeds)) for name in SCORES}, _stacked(lanes), 1)


def retrieval(settings, seeds: np.ndarray) -> State:
    motion, scalars = settings.program().motion, settings.numbers() | {"excess": settings.excess}
    assert isinstance(motion, Retrieval)
    weights = [motion.draw(generator(int(seed), INITIAL), scalars["spread"]) for seed in seeds]
    return flow.begin(_stacked(weights), {name: np.full(len(seeds), float(value)) for name, value in scalars.items()}, 1)


def _stacked(lanes) -> dict:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *lanes)
