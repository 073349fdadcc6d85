"""A mixture of linear classifications: a group token tells which other token's sign is the label."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb, factorial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stagewise.errors import require
from stagewise.lazy import jax, jnp

if TYPE_CHECKING:
    from jax import Array
    from jaxtyping import Float, Int, Key


class Samples(NamedTuple):
    """Sequences of signed signals. Signals are numbered c_1..c_K, then v_1..v_K; every token is sign *
    signal."""

    signal: Int[Array | np.ndarray, "n length"]
    sign: Float[Array | np.ndarray, "n length"]
    label: Float[Array | np.ndarray, " n"]
    weight: Float[Array | np.ndarray, " n"]  # probability of the sample, or 1/n for drawn ones
    agreeing: Int[Array | np.ndarray, " n"]  # how many noise tokens have the sign of the label
    answer: Int[Array | np.ndarray, " n"]  # position of the one token whose sign is the label


@dataclass(frozen=True)
class Mixture:
    """K groups, each with a group signal c_k and a class signal v_k (Definition 2.1).

    A sample holds c_k, y v_k and length - 2 noise tokens, each a signed class signal of another group; its
    label is y. In `consistent` samples every noise token has the sign of the label, so no attention is
    needed. In `conflicting` samples every noise token has the opposite sign, and only the pairing of c_k with
    v_k tells which sign is the label."""

    groups: int = 2  # number of groups, K
    length: int = 3  # number of tokens in a sample, L
    dimension: int | None = None  # dimension of the signals' space; None: the least possible, 2 * groups

    def __post_init__(self):
        require(
            self.groups >= 2, f"mixture: groups must be at least 2, not {self.groups} (set --task.groups)"
        )
        require(
            self.length >= 3, f"mixture: length must be at least 3, not {self.length} (set --task.length)"
        )
        if self.dimension is not None:
            require(
                self.dimension >= 2 * self.groups,
                f"mixture: dimension must be at least 2 * groups = {2 * self.groups}, not {self.dimension} "
                "(set --task.dimension or --task.groups)",
            )

    @property
    def signals(self) -> tuple[str, ...]:
        names = range(1, self.groups + 1)
        return tuple(f"c{k}" for k in names) + tuple(f"v{k}" for k in names)

    @property
    def embedding_dimension(self) -> int:
        return self.dimension or 2 * self.groups

    def population(self) -> Samples:
        """Return every sample once, tokens in the order (c_k, y v_k, noise …), with its exact probability.

        The model does not see the order of tokens, so samples that differ only in order count as one."""
        return _population(self.groups, self.length)

    @property
    def population_size(self) -> int:
        """How many samples `population` holds."""
        return self.groups * 2 * comb(2 * (self.groups - 1) + self.length - 3, self.length - 2)

    def kinds(self) -> dict[str, np.ndarray]:
        """Probability of each sample of the population given that it is of the named kind."""
        samples = self.population()
        chosen = {
            "all": np.ones(len(samples.label), bool),
            "consistent": samples.agreeing == self.length - 2,
            "conflicting": samples.agreeing == 0,
        }
        return {kind: (w := samples.weight * mask) / w.sum() for kind, mask in chosen.items()}

    def sample(self, key: Key[Array, ""], batch: int) -> Samples:
        """Draw `batch` sequences with their tokens in random order."""
        k_label, k_group, k_noise, k_sign, k_order = jax.random.split(key, 5)
        noise_tokens = self.length - 2
        label = jax.random.rademacher(k_label, (batch,), float)
        group = jax.random.randint(k_group, (batch,), 0, self.groups)
        other = jax.random.randint(k_noise, (batch, noise_tokens), 0, self.groups - 1)
        other = other + (other >= group[:, None])
        noise_sign = jax.random.rademacher(k_sign, (batch, noise_tokens), float)
        signal = jnp.column_stack([group, self.groups + group, self.groups + other])
        sign = jnp.column_stack([jnp.ones(batch), label, noise_sign])
        order = jax.vmap(lambda k: jax.random.permutation(k, self.length))(jax.random.split(k_order, batch))
        return Samples(
            jnp.take_along_axis(signal, order, 1),
            jnp.take_along_axis(sign, order, 1),
            label,
            jnp.full(batch, 1 / batch),
            jnp.sum(noise_sign == label[:, None], 1),
            jnp.argmax(order == 1, 1),
        )

    def tokens(self, samples: Samples) -> Float[Array, "n length d"]:
        """The token vectors of the samples, with the standard basis as signals."""
        onehot = jax.nn.one_hot(jnp.asarray(samples.signal), self.embedding_dimension, dtype=float)
        return onehot * jnp.asarray(samples.sign)[..., None]


@lru_cache(maxsize=32)
def _population(groups: int, length: int) -> Samples:
    rows = []
    for group in range(groups):
        alphabet = [(other, sign) for other in range(groups) if other != group for sign in (+1, -1)]
        for label in (+1, -1):
            for noise in combinations_with_replacement(alphabet, length - 2):
                orders = factorial(length - 2)
                for times in Counter(noise).values():
                    orders //= factorial(times)
                signal = [group, groups + group, *(groups + other for other, _ in noise)]
                sign = [1, label, *(s for _, s in noise)]
                rows.append((signal, sign, label, orders, sum(s == label for _, s in noise)))
    signal, sign, label, orders, agreeing = (np.array(column) for column in zip(*rows))
    weight = orders / (2 * groups * (2 * (groups - 1)) ** (length - 2))
    return Samples(signal, sign.astype(float), label.astype(float), weight, agreeing, np.ones(len(rows), int))
