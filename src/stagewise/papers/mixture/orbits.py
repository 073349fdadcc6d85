"""Infinite width for any number of groups, in 22 numbers.

At infinite width every group plays the same part and the heads mirror each other (Lemmas C.2, C.4). So each
block of the Gram matrix is a multiple of the identity plus a multiple of the all-ones matrix, and products of
such matrices fall apart into two sectors that never mix: `difference` (what tells groups apart) and `total`
(what they share), one 4 x 4 matrix each, over the four kinds of vectors: keys of c, keys of v, queries of c,
queries of v. In each sector the closed system reads as in `closed.py`, sector <- (1 + e J) sector (1 + e J).

Samples fall into orbits under exchanging groups, heads and labels: group 1 with label +1, and noise told
apart only by how often each other group occurs with which sign. Two orbits for sequences of length 3,
whatever the number of groups: it enters as a number, so that runs with 2 and with 32 groups are lanes of one
program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import factorial, perm, prod

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from stagewise.models.two_heads import ScoredTwoHeads, contrast, head_outputs
from stagewise.tasks.mixture import Mixture
from stagewise.training.flow import Motion
from stagewise.training.loop import Rule

TYPES = np.array(["c", "v"])
PAIRS = np.array(["same", "other"])  # whether key and query belong to the same group


@dataclass(frozen=True)
class Orbits:
    """Representatives for sequences of one length. Tokens are (type, group, sign); group 0 is the sample's
    own."""

    length: int

    @property
    def patterns(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each orbit, how often each other group occurs with sign + and with sign -."""
        return _patterns(self.length - 2)

    def weights(self, groups: int) -> np.ndarray:
        """Probability of each orbit; zero where it needs more groups than there are."""
        noise, others = self.length - 2, groups - 1
        count = []
        for pattern in self.patterns:
            orders = factorial(noise) // prod(factorial(p) * factorial(q) for p, q in pattern)
            choices = perm(others, len(pattern)) // prod(map(factorial, Counter(pattern).values()))
            count.append(orders * choices)
        return np.array(count) / (2 * others) ** noise

    def tokens(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Type (0 for c, 1 for v), group and sign of every token of every representative."""
        rows = []
        for pattern in self.patterns:
            noise = [(1, 1 + i, s) for i, (p, q) in enumerate(pattern) for s in [1.0] * p + [-1.0] * q]
            rows.append([(0, 0, 1.0), (1, 0, 1.0), *noise])
        kind, group, sign = np.moveaxis(np.array(rows), -1, 0)
        return kind.astype(int), group.astype(int), sign

    def kinds(self, groups: int) -> dict[str, np.ndarray]:
        """Probability of each orbit given the kind of sample."""
        weight = self.weights(groups)
        chosen = {
            "all": [True for _ in self.patterns],
            "consistent": [all(q == 0 for _, q in pattern) for pattern in self.patterns],
            "conflicting": [all(p == 0 for p, _ in pattern) for pattern in self.patterns],
        }
        return {kind: (w := weight * np.array(mask)) / w.sum() for kind, mask in chosen.items()}


@cache
def _patterns(noise: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    def split(left: int, largest: tuple[int, int]) -> Iterator[tuple[tuple[int, int], ...]]:
        if left == 0:
            yield ()
        pairs = [(p, total - p) for total in range(1, left + 1) for p in range(total + 1)]
        for pair in pairs:
            if pair <= largest:
                yield from ((pair, *rest) for rest in split(left - sum(pair), pair))

    return tuple(split(noise, (noise, noise)))


def begin(initial_scale: float, lanes: int) -> dict[str, np.ndarray]:
    """Lemma C.1: neurons zero, and omega^2 times the identity in both sectors."""
    unit = np.broadcast_to(initial_scale**2 * np.eye(4), (lanes, 4, 4))
    return {"neurons": np.zeros((lanes, 2)), "difference": unit, "total": unit}


def scores(weights: Mapping[str, Array | np.ndarray], groups: ArrayLike) -> Float[Array, "2 2 2"]:
    """Scores by pair (same group, other group), type of key and type of query."""
    difference, total = weights["difference"][:2, 2:], weights["total"][:2, 2:]
    other = (total - difference) / groups
    return jnp.stack([difference + other, other])


def sample_losses(
    orbits: Orbits, neurons: Float[Array, "2"], by_pair: Float[Array, "2 2 2"], bias
) -> Float[Array, " orbits"]:
    """log(1 + exp(-f)) on the representatives; the - head is the mirror of the + head."""
    kind, group, sign = orbits.tokens()
    other = (group[:, :, None] != group[:, None, :]).astype(int)
    pairs = by_pair[other, kind[:, :, None], kind[:, None, :]] * sign[:, :, None] * sign[:, None, :]
    values = neurons[kind] * sign
    mirror = np.where(kind == 1, -1.0, 1.0)  # class signals change sign between the heads
    both = mirror[:, :, None] * mirror[:, None, :]
    heads = head_outputs(jnp.stack([values, values * mirror]), jnp.stack([pairs, pairs * both]))
    return jax.nn.softplus(-contrast(heads, bias))


def as_model(groups: int, weights: dict[str, ArrayLike], bias: ArrayLike) -> ScoredTwoHeads:
    """The full two-headed model with that many groups."""
    same, other = scores(jax.tree.map(jnp.asarray, weights), groups)
    whole = jnp.kron(same - other, jnp.eye(groups)) + jnp.kron(other, jnp.ones((groups, groups)))
    mirror = jnp.repeat(jnp.array([1.0, -1.0]), groups)
    neurons = jnp.repeat(jnp.asarray(weights["neurons"]), groups)
    return ScoredTwoHeads(
        neurons=jnp.stack([neurons, mirror * neurons]),
        scores=jnp.stack([whole, mirror[:, None] * whole * mirror]),
        bias=jnp.asarray(bias),
    )


def pull(orbits: Orbits, weights, groups, bias, samples):
    """Minus the gradient with respect to one head's neurons and scores, the scores' split into sectors."""

    def gain(neurons, by_pair):
        return -samples @ sample_losses(orbits, neurons, by_pair, bias)

    on_neurons, on_pairs = jax.grad(gain, (0, 1))(weights["neurons"], scores(weights, groups))
    copies = 2 * groups  # every neuron and same-group score stands in that many places of the full model
    same, other = on_pairs[0] / copies, on_pairs[1] / (copies * (groups - 1))
    return on_neurons / copies, {"difference": same - other, "total": same + (groups - 1) * other}


def turning(sector: Float[Array, "2 2"]) -> Float[Array, "4 4"]:
    nothing = jnp.zeros((2, 2))
    return jnp.block([[nothing, sector], [sector.T, nothing]])


def measure(orbits: Orbits, weights, constants) -> dict[str, Array]:
    by_pair = scores(weights, constants["groups"])
    losses = sample_losses(orbits, weights["neurons"], by_pair, constants["bias"])
    return {
        "loss": jnp.stack([constants[kind] @ losses for kind in ("all", "consistent", "conflicting")]),
        "accuracy": constants["all"] @ (losses < np.log(2)).astype(float),
        "neurons": weights["neurons"],
        "scores": by_pair,
    }


DIMS = {"loss": ("kind",), "accuracy": (), "neurons": ("type",), "scores": ("pair", "key_type", "query_type")}
COORDS = {
    "kind": np.array(["all", "consistent", "conflicting"]),
    "type": TYPES,
    "pair": PAIRS,
    "key_type": TYPES,
    "query_type": TYPES,
}


def constants(task: Mixture, lanes: int, **values: float) -> dict[str, np.ndarray]:
    """What may differ between lanes: the number of groups, the orbits' weights that follow from it, and
    more."""
    kinds = Orbits(task.length).kinds(task.groups)
    return {name: np.tile(weight, (lanes, 1)) for name, weight in kinds.items()} | {
        name: np.full(lanes, float(value)) for name, value in ({"groups": task.groups} | values).items()
    }


@dataclass(frozen=True)
class OrbitDescent(Rule):
    """Joint gradient descent at infinite width."""

    orbits: Orbits

    @property
    def dims(self):
        return DIMS

    @property
    def coords(self):
        return COORDS

    def step(self, weights, constants, key):
        on_neurons, on_scores = pull(
            self.orbits, weights, constants["groups"], constants["bias"], constants["all"]
        )
        turn = {sector: jnp.eye(4) + constants["rate"] * turning(g) for sector, g in on_scores.items()}
        moved = {sector: t @ weights[sector] @ t for sector, t in turn.items()}
        return {"neurons": weights["neurons"] + constants["rate"] * on_neurons} | moved

    def measure(self, weights, constants, key):
        return measure(self.orbits, weights, constants)


@dataclass(frozen=True)
class OrbitFlow(Motion):
    """Gradient flow at infinite width. Sample weights differ between lanes, so a stage's samples only name
    them."""

    orbits: Orbits

    @property
    def dims(self):
        return DIMS

    @property
    def coords(self):
        return COORDS

    def velocity(self, weights, constants, samples):
        chosen = sum(
            share * constants[kind] for share, kind in zip(samples, ("all", "consistent", "conflicting"))
        )
        on_neurons, on_scores = pull(self.orbits, weights, constants["groups"], constants["bias"], chosen)
        half = {sector: turning(g) @ weights[sector] for sector, g in on_scores.items()}
        return {"neurons": on_neurons} | {sector: h + h.T for sector, h in half.items()}

    def measure(self, weights, constants):
        return measure(self.orbits, weights, constants)

    def watched(self, weights, constants):
        losses = sample_losses(
            self.orbits, weights["neurons"], scores(weights, constants["groups"]), constants["bias"]
        )
        return {
            "group_alignment": weights["neurons"][0],
            "score": scores(weights, constants["groups"])[0, 0, 1],
            "loss": constants["all"] @ losses,
        }

    def samples(self, kind):
        return np.array([float(kind == name) for name in ("all", "consistent", "conflicting")])
