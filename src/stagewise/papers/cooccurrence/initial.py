"""How weights start (Condition 1 and three readings of "Kaiming"), and the inner products of such a start."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from stagewise.tasks.cooccurrence import Sentences
from stagewise.training.program import DATA, EVALUATION, INITIAL, generator

TEST_SEQUENCES = 240
RIDERS = 16  # how many neurons the flow follows one by one: as many for every m1


def draw_weights(settings, seed: int) -> dict[str, np.ndarray]:
    """W [m1, m], W_V, W_K, W_Q [m, d] and the signs a [m1]. Narrower networks are not parts of wider ones."""
    (s0, s1), rng, d, m = (
        settings.scales(),
        generator(seed, INITIAL),
        settings.task.vocabulary,
        settings.width,
    )

    def draw(scale, *shape):
        return scale * (
            rng.uniform(-np.sqrt(3), np.sqrt(3), shape) if settings.uniform else rng.standard_normal(shape)
        )

    return {
        "signs": rng.choice([-1.0, 1.0], settings.neurons),
        "W": draw(s1, settings.neurons, m),
        "WV": draw(s0, m, d),
        "WK": draw(s0, m, d),
        "WQ": draw(s0, m, d),
    }


def inner_products(w: dict[str, Any]) -> dict[str, Any]:
    """The state of the closed system for given weights."""
    u = w["W"].T @ w["signs"]
    return {
        "G": w["WV"].T @ u,
        "alpha": u @ u,
        "S": w["WK"].T @ w["WQ"],
        "CV": w["WV"].T @ w["WV"],
        "CK": w["WK"].T @ w["WK"],
        "CQ": w["WQ"].T @ w["WQ"],
    }


def data(settings, seed: int) -> dict[str, Any]:
    """The training set and a test set of one seed, and the sizes that the equations read."""
    task = settings.task
    sentences = task.training_set(generator(seed, DATA))
    test = task.sample(generator(seed, EVALUATION), TEST_SEQUENCES)
    return {
        "tokens": sentences.tokens,
        "label": sentences.label,
        "type": sentences.type,
        "weight": np.full(task.samples, 1 / task.samples),
        "present": np.ones(task.length),
        "test_tokens": test.tokens,
        "test_label": test.label,
        "count": counts(sentences, task.vocabulary),
        "seen": (counts(sentences, task.vocabulary) > 0).astype(float),
        "width": float(settings.width),
        "neurons": float(settings.neurons),
        "speed": settings.speed,
    }


def counts(sentences: Sentences, vocabulary: int) -> np.ndarray:
    """In how many sequences each word occurs."""
    return (sentences.tokens[:, :, None] == np.arange(vocabulary)).any(1).sum(0).astype(float)


def followed_neurons(w: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The first neurons' rows of H = W W_V, N a and N = W W^T; rows of neurons that are not there are
    zero."""
    some = w["W"][:RIDERS]
    rows = {
        "H": some @ w["WV"],
        "Na": some @ (w["W"].T @ w["signs"]),
        "N": some @ some.T,
        "signs": w["signs"][:RIDERS],
    }
    less = (0, RIDERS - len(some))
    return {
        "H": np.pad(rows["H"], (less, (0, 0))),
        "Na": np.pad(rows["Na"], less),
        "N": np.pad(rows["N"], less),
        "signs": np.pad(rows["signs"], less),
    }


def flow(settings, seeds: np.ndarray, padded: tuple[int, int, int]) -> tuple[dict, dict]:
    """State and constants of the closed flow for each seed, padded to (vocabulary, samples, length)."""
    return _lanes(
        [_padded(*_lane(settings, int(seed), riders=True), settings.task, padded) for seed in seeds]
    )


def descent(settings, seeds: np.ndarray) -> tuple[dict, dict]:
    """State and constants of closed descent for each seed."""
    return _lanes([_lane(settings, int(seed), riders=False) for seed in seeds])


@lru_cache(maxsize=64)
def _start(beginning, seed: int) -> tuple[dict, dict]:
    """Inner products of a start; runs that differ in where they end begin alike."""
    w = draw_weights(beginning, seed)
    return inner_products(w), followed_neurons(w)


def _lanes(lanes: list) -> tuple[dict, dict]:
    states, constants = (
        {name: np.stack([lane[part][name] for lane in lanes]) for name in lanes[0][part]} for part in (0, 1)
    )
    return states, constants


def _lane(settings, seed: int, riders: bool) -> tuple[dict, dict]:
    state, followed = _start(settings.beginning(), seed)
    known = data(settings, seed)
    if riders:
        known["signs"] = followed["signs"]
        state = state | {name: followed[name] for name in ("H", "Na", "N")} | {"clock": 0.0}
    start = {f"{name}0": state[name] for name in ("S", "CV", "CK", "CQ", "H", "N") if name in state}
    return {name: np.asarray(value) for name, value in state.items()}, {
        name: np.asarray(v) for name, v in (known | start).items()
    }


def _padded(state: dict, known: dict, task, to: tuple[int, int, int]) -> tuple[dict, dict]:
    d, n, length = (
        (0, max(0, new - old)) for new, old in zip(to, (task.vocabulary, task.samples, task.length))
    )
    square, none = [d, d], (0, 0)
    along = {
        "G": [d],
        "S": square,
        "CV": square,
        "CK": square,
        "CQ": square,
        "H": [none, d],
        "count": [d],
        "seen": [d],
        "tokens": [n, length],
        "label": [n],
        "type": [n],
        "weight": [n],
        "present": [length],
        "test_tokens": [none, length],
    }
    pad = {
        name: np.pad(value, along[name.rstrip("0")]) if name.rstrip("0") in along else value
        for name, value in (state | known).items()
    }
    return {name: pad[name] for name in state}, {name: pad[name] for name in known}
