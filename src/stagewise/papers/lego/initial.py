"""What the runs start with."""

from __future__ import annotations

import numpy as np

from stagewise.models.clause_decoder import draw
from stagewise.papers.lego.closed import SCORES, ideal_features
from stagewise.papers.lego.retrieval import Retrieval
from stagewise.papers.lego.two_steps import lane
from stagewise.training import adam, flow, loop
from stagewise.training.program import DATA, INITIAL, State, generator, stacked


def start(settings, seeds: np.ndarray) -> State:
    """A decoder with random weights, which is also its own first teacher, before its first phase; and rates
    and steps of all phases."""
    task, weights = settings.task, []
    for seed in seeds:
        model = draw(
            settings.decoder,
            task.variables,
            task.action.actions,
            task.action.values,
            generator(int(seed), INITIAL),
        ).weights()
        weights.append(
            {
                "model": model,
                "adam": adam.begin(model),
                "teacher": model,
                "phase": np.int32(-1),
                "began": np.int32(0),
            }
        )
    *_, steps, _, rates = zip(*settings.phases())
    constants = {
        "rates": np.array(rates, np.float32),
        "steps": np.array(steps, np.float32),
        "last_rate": np.float32(settings.last_rate),
    }
    return loop.begin(stacked(weights), stacked([constants] * len(seeds)), seeds)


def one_step(settings, seeds: np.ndarray) -> State:
    """Features V = W M of normal weights W under an embedding M, and the Gram matrix by which gradients of V
    are turned."""
    lanes, (actions, values) = [], settings.action.maps().shape
    for seed in seeds:
        rng = generator(int(seed), INITIAL)
        drawn = settings.constants()["spread"] * rng.standard_normal(
            (values, settings.width, actions + values)
        )
        maps = [embedding(size, settings.condition, rng) for size in (actions, values)]
        of_action, of_value = drawn[..., :actions] @ maps[0], drawn[..., actions:] @ maps[1]
        constants = {name: np.float64(value) for name, value in settings.constants().items()} | {
            "excess": np.float64(settings.excess)
        }
        grams = {"gram_actions": maps[0].T @ maps[0], "gram_values": maps[1].T @ maps[1]}
        lanes.append(({"V": np.concatenate([of_action, of_value], -1)}, constants | grams))
    weights, constants = zip(*lanes)
    return flow.begin(stacked(weights), stacked(constants), 1)


def embedding(size: int, condition: float, rng: np.random.Generator) -> np.ndarray:
    """Token vectors as columns, whose Gram matrix has the condition number; the identity for 1."""
    if condition == 1:
        return np.eye(size)
    turned, _ = np.linalg.qr(rng.standard_normal((size, size)))
    return np.geomspace(condition**-0.25, condition**0.25, size)[:, None] * turned


def two_steps(settings, seeds: np.ndarray) -> State:
    """Scores at zero, and what the neurons see: those of an ideal perceptron, the same for every first value,
    or those that stage 1 leaves."""
    lanes, table = [], settings.action.maps()
    scalars = settings.constants() | {"variables": float(settings.variables)}
    if settings.features == "ideal":
        features, firsts = [ideal_features(table, scalars["top"])] * len(seeds), 1
    else:
        ended, _ = settings.first_stage.program().advance(one_step(settings.first_stage, seeds), 0)
        features, firsts = np.asarray(ended["weights"]["V"]), None
    for seed, given in zip(seeds, features):
        seen = lane(table, given, settings.losses, settings.most, generator(int(seed), DATA), firsts)
        lanes.append({name: np.float64(value) for name, value in scalars.items()} | seen)
    return flow.begin({name: np.zeros(len(seeds)) for name in SCORES}, stacked(lanes), 1)


def retrieval(settings, seeds: np.ndarray) -> State:
    motion, scalars = settings.program().motion, settings.constants() | {"excess": settings.excess}
    assert isinstance(motion, Retrieval)
    weights = [motion.draw(generator(int(seed), INITIAL), scalars["spread"]) for seed in seeds]
    return flow.begin(
        stacked(weights), {name: np.full(len(seeds), float(value)) for name, value in scalars.items()}, 1
    )
