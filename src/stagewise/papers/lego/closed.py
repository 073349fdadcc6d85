"""Closed forms in plain numbers: the theory's scales, ideal features, attention by four scores, and chains
walked with them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

SCORES = ("predicate", "answer", "other_predicates", "other_answers")
"""An answer's scores at the predicate it needs, at itself, and at all other predicates and answers."""


def scales(vocabulary: float, clip: float, rho_over_bias: float, q: float) -> dict[str, float]:
    """What the vocabulary size d sets: sigma0 = d^-1/2, the bias mu = sigma0 log d, rho, and B = C_B log d;
    and q beside them."""
    spread = vocabulary**-0.5
    bias = spread * np.log(vocabulary)
    return {
        "spread": spread,
        "bias": bias,
        "rho": rho_over_bias * bias,
        "top": clip * np.log(vocabulary),
        "vocabulary": float(vocabulary),
        "q": float(q),
    }


def attention(scores: dict[str, Any], length: Any, step: Any, xp: ModuleType = np) -> dict[str, Any]:
    """What answer step - 1 of a chain pays to each kind of clause, one clause of the kind."""
    exponents = xp.stack([xp.asarray(scores[name], float) for name in SCORES])
    counts = xp.stack([xp.asarray(count, float) for count in (1, 1, length - 1, step - 1)])
    shifted = xp.exp(exponents - exponents.max())
    return dict(zip(SCORES, shifted / (counts * shifted).sum()))


def concentration(scores: dict[str, Any], length: Any, step: Any, xp: ModuleType = np) -> tuple[Any, Any]:
    """epsilon, the attention that misses both clauses needed, and the signed gap between the two (equations
    19 and 20)."""
    paid = attention(scores, length, step, xp)
    missed = (length - 1) * paid["other_predicates"] + (step - 1) * paid["other_answers"]
    return missed, paid["predicate"] - paid["answer"]


def ideal_features(table: np.ndarray, top: float) -> np.ndarray:
    """Features [value, neuron, action or value]: what stage 1 ends at, with neuron y of value j for the pairs
    that lead from y to j (equations 17 and 18, the sign of 18b mended)."""
    actions, values = table.shape
    ratio = balance(table)
    of_action = np.where(table.T[None] == np.arange(values)[:, None, None], ratio, -1.0)  # [j, y, g]
    of_value = np.broadcast_to(np.where(np.eye(values, dtype=bool), 1.0, -ratio), (values, values, values))
    return 2 * top / (1 + ratio) * np.concatenate([of_action, of_value], axis=-1)


def balance(table: np.ndarray) -> float:
    """C_alpha: the predicted ratio of what a learned neuron gives to its actions and to its value. 1 if
    simply transitive."""
    actions, values = table.shape
    return (1 + actions * (values - 1) / values) / ((values - 1) + actions / values)


def chains(
    table: np.ndarray, length: int, most: int, rng: np.random.Generator, firsts: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Actions [n, length] and values [n, length + 1] of all chains of a length, or of a sample if they are
    more than `most`.

    `firsts` is how many values they may begin with. One is enough for ideal features: renaming values by an
    element of the group, and actions along with them, leads from a chain to another with any other first
    value, and changes no output but its name."""
    actions, values = len(table), firsts or table.shape[1]
    if values * actions**length <= most:
        every = np.indices((values, *(actions,) * length)).reshape(length + 1, -1).T
        first, chosen = every[:, 0], every[:, 1:]
    else:
        first, chosen = rng.integers(0, values, most), rng.integers(0, actions, (most, length))
    passed = [first]
    for step in range(length):
        passed.append(table[chosen[:, step], passed[-1]])
    return chosen, np.stack(passed, 1)


def seen_by_neurons(
    features: Any, chosen: np.ndarray, passed: np.ndarray, step: int, xp: ModuleType = np
) -> tuple[Any, np.ndarray]:
    """For answer `step` of each chain: what each kind of clause, summed over its clauses, gives a neuron [n,
    j, r, 4], and the true value."""
    actions = features.shape[-1] - features.shape[0]
    by_token = xp.moveaxis(features, -1, 0)  # [token, j, r]
    of_actions, of_values = by_token[:actions], by_token[actions:]
    needed, own = of_actions[chosen[:, step - 1]], of_values[passed[:, step - 1]]
    others = sum(
        (of_actions[chosen[:, k]] for k in range(chosen.shape[1]) if k != step - 1), xp.zeros_like(own)
    )
    earlier = sum((of_values[passed[:, k]] for k in range(step - 1)), xp.zeros_like(own))
    return xp.stack([needed, own, others, earlier], -1), passed[:, step]


def smooth_relu(x: Any, rho: Any, q: Any, xp: ModuleType = np) -> Any:
    """Definition 3.4: |x|^q / (q rho^(q-1)) within rho, then a line; constant below -rho, so that it falls
    before it rises. q is even."""
    return rho * (xp.minimum(xp.abs(x), rho) / rho) ** q / q + xp.maximum(x - rho, 0)


def least_loss(vocabulary: Any, top: Any, xp: ModuleType = np) -> Any:
    """That a clip allows: log(1 + (d - 1) e^-B)."""
    return xp.log1p((vocabulary - 1) * xp.exp(-top))


def outputs(seen: np.ndarray, constants: dict) -> np.ndarray:
    """F_j from what neurons see; the clip is sharp here, as only the largest counts."""
    return np.minimum(smooth_relu(seen, constants["rho"], constants["q"]).sum(-1), constants["top"])


def follow(
    features: np.ndarray,
    table: np.ndarray,
    scores: dict,
    length: int,
    constants: dict,
    rng: np.random.Generator,
    count: int = 512,
) -> dict[str, float]:
    """Chains of a length with true answers before each step: how many are right throughout, and the mean
    probability of being right (equation 5)."""
    chosen, passed = chains(table, length, count, rng)
    actions = len(table)
    by_token = np.moveaxis(features, -1, 0)
    of_actions, of_values = by_token[:actions], by_token[actions:]
    every = of_actions[chosen].sum(1)  # [n, j, r]
    earlier, right, probability = np.zeros_like(every), np.ones(len(chosen), bool), np.zeros(len(chosen))
    for step in range(1, length + 1):
        paid = {name: float(value) for name, value in attention(scores, length, step).items()}
        needed, own = of_actions[chosen[:, step - 1]], of_values[passed[:, step - 1]]
        seen = constants["bias"] + paid["predicate"] * needed + paid["other_predicates"] * (every - needed)
        seen = seen + paid["answer"] * own + paid["other_answers"] * earlier
        found = outputs(seen, constants)
        aimed = np.take_along_axis(found, passed[:, step, None], 1)[:, 0]
        wrong = np.where(np.arange(found.shape[1]) == passed[:, step, None], -np.inf, found)
        rest = constants["vocabulary"] - found.shape[1]
        probability += 1 / (1 + np.exp(wrong - aimed[:, None]).sum(1) + rest * np.exp(-aimed))
        right &= aimed > wrong.max(1)
        earlier = earlier + own
    return {"chain": float(right.mean()), "probability": float(probability.mean() / length)}
