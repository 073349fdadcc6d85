"""k-fold composition: follow a symbol through levels, at each by a hidden permutation and then by one that
the sequence shows.

hop_i^r(j) begins at level i with symbol j and, r times, goes on to the next level: x -> sigma_i(pi_i(x)),
levels counted modulo k. The hidden permutations pi belong to the task, the permutations sigma to a sequence.
Twice as many hops are hops after hops: hop_i^2r = hop_{i+r}^r o hop_i^r."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations, product
from math import factorial, log2, log10
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from stagewise.errors import Refused, require
from stagewise.lazy import jax, jnp, numpy_of

if TYPE_CHECKING:
    from jaxtyping import Array, Bool, Int, Key

    Kind = TypeVar("Kind", bound=Array | np.ndarray)  # jax's arrays or numpy's, as they were given

MOST_LISTED = 400_000
ALL = -1


@dataclass(frozen=True)
class Composition:
    """Levels k and symbols N (Section 2.1). `moved` is m of Appendix A.2: so many hidden permutations may
    differ from the identity."""

    levels: int = 4  # k, hops from one level to the next
    symbols: int = 5  # N, in every level
    moved: int = ALL  # m: how many hidden permutations may differ from the identity; -1: all
    asked: Literal["cyclic", "plain"] = "cyclic"  # from which levels hops begin: all, or the first

    def __post_init__(self):
        require(
            1 <= self.levels <= 1024,
            f"composition: levels must lie between 1 and 1024, not {self.levels} (set --task.levels)",
        )
        require(
            2 <= self.symbols <= 1000,
            f"composition: there must be 2 to 1000 symbols, not {self.symbols} (set --task.symbols)",
        )
        require(
            self.moved == ALL or 0 <= self.moved <= self.levels,
            f"composition: of {self.levels} levels 0 to {self.levels} may be moved (or {ALL}: all), not "
            f"{self.moved} (set --task.moved)",
        )

    @property
    def tokens(self) -> int:
        """T = kN: token iN + j shows sigma_i(j)."""
        return self.levels * self.symbols

    @property
    def depth(self) -> int:
        """L = log2(k) + 1 layers, one for each of the hops 1, 2, 4, …, k."""
        self.check_power_of_two()
        return int(log2(self.levels)) + 1

    @property
    def doublings(self) -> tuple[int, ...]:
        """The hops 1, 2, 4, … up to k."""
        return tuple(2**layer for layer in range(self.levels.bit_length()))

    def asks(self) -> Bool[np.ndarray, " token"]:
        """From which tokens hops are asked."""
        return np.arange(self.tokens) < (self.tokens if self.asked == "cyclic" else self.symbols)

    def draw_hidden(self, rng: np.random.Generator) -> Int[np.ndarray, "level symbol"]:
        """Uniform permutations, at all levels or at `moved` random ones."""
        drawn = np.stack([rng.permutation(self.symbols) for _ in range(self.levels)])
        if self.moved == ALL:
            return drawn
        still = rng.permutation(self.levels)[self.moved :]
        drawn[still] = np.arange(self.symbols)
        return drawn

    def sample(self, key: Key[Array, ""], batch: int) -> Int[Array, "batch level symbol"]:
        """Uniform permutations at every level."""
        # In one row: the same bits, and XLA compiles it in a quarter of the time.
        drawn = jax.random.bits(key, (batch * self.tokens,)).reshape(batch, self.levels, self.symbols)
        mine, other, place = drawn[..., :, None], drawn[..., None, :], np.arange(self.symbols)
        # Ranks: a sort takes XLA a second to compile.
        before = (other < mine) | ((other == mine) & (place[None, :] < place[:, None]))
        # Without the barrier XLA draws them again wherever they are read.
        return jax.lax.optimization_barrier(before.sum(-1, dtype=jnp.int32))

    def draw(self, rng: np.random.Generator, batch: int) -> Int[np.ndarray, "batch level symbol"]:
        """The same on the host."""
        return np.argsort(rng.random((batch, self.levels, self.symbols)), axis=-1)

    def draw_unseen(
        self, rng: np.random.Generator, batch: int, seen: Int[np.ndarray, "some level symbol"]
    ) -> Int[np.ndarray, "batch level symbol"]:
        """Random sequences that are not among those seen."""
        known, found = {one.tobytes() for one in seen.astype(np.int32)}, []
        for _ in range(100):
            found += [one for one in self.draw(rng, batch).astype(np.int32) if one.tobytes() not in known]
            if len(found) >= batch:
                return np.stack(found[:batch])
        raise Refused(
            f"composition: hardly any of the {self.population_size} sequences is left to test on beside the "
            f"{len(seen)} seen (set --pool, --task.levels or --task.symbols)"
        )

    def check_power_of_two(self) -> None:
        """Refuse levels that cannot be doubled up to."""
        require(
            self.levels & (self.levels - 1) == 0,
            f"composition: this needs levels that are a power of two, not {self.levels} (set --task.levels)",
        )

    def check_cyclic(self, what: str) -> None:
        """Refuse the plain task where hops from all levels are asked."""
        require(
            self.asked == "cyclic",
            f"{what}: hops are asked from all levels here, so the task is cyclic, not {self.asked} (set "
            "--task.asked)",
        )

    @property
    def population_size(self) -> int:
        return factorial(self.symbols) ** self.levels

    def population(self) -> Int[np.ndarray, "all level symbol"]:
        """All sequences, where there are few."""
        size = self.population_size
        require(
            size <= MOST_LISTED,
            f"composition: 10^{log10(size):.0f} sequences are too many to list (set --task.levels or "
            "--task.symbols)",
        )
        each = np.array(list(permutations(range(self.symbols))))
        return each[np.array(list(product(range(len(each)), repeat=self.levels)))]

    def held_out(self, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """The population in two: to train on, and a share to test on."""
        require(0 < share < 1, f"composition: the share held out must lie between 0 and 1, not {share:g}")
        everything = rng.permutation(self.population())
        cut = int(round(share * len(everything)))
        require(
            0 < cut < len(everything),
            f"composition: {share:g} of {len(everything)} sequences leaves none to train or to test on",
        )
        return everything[cut:], everything[:cut]


def first_hop(
    hidden: Int[Kind, "level symbol"], sigma: Int[Kind, "*batch level symbol"]
) -> Int[Kind, "*batch level symbol"]:
    """hop_i^1(j) = sigma_i(pi_i(j))."""
    return _take(sigma, hidden)


def after(
    more: Int[Kind, "*batch level symbol"], hops: Int[Kind, "*batch level symbol"], r: int
) -> Int[Kind, "*batch level symbol"]:
    """Hops after r hops: more_{i+r}(hops_i(j))."""
    return _take(numpy_of(hops).roll(more, -r, axis=-2), hops)


def doubled_hops(
    hidden: Int[Kind, "level symbol"], sigma: Int[Kind, "*batch level symbol"], most: int | None = None
) -> list[Int[Kind, "*batch level symbol"]]:
    """hop^1, hop^2, hop^4, … up to k, or so many of them."""
    found, r = [first_hop(hidden, sigma)], 1
    while 2 * r <= sigma.shape[-2] and len(found) != most:
        found.append(after(found[-1], found[-1], r))
        r *= 2
    return found


def hop(
    hidden: Int[Kind, "level symbol"], sigma: Int[Kind, "*batch level symbol"], r: int
) -> Int[Kind, "*batch level symbol"]:
    """hop^r for any r, by powers of two."""
    require(r >= 1, f"composition: there must be at least one hop, not {r}")
    power, size, found, done = first_hop(hidden, sigma), 1, None, 0
    while True:
        if r & size:
            found, done = (power, size) if found is None else (after(power, found, done), done + size)
        if found is not None and done == r:
            return found
        power, size = after(power, power, size), 2 * size


def right_keys(
    hidden: Int[Kind, "level symbol"], hops: list[Int[Kind, "batch level symbol"]]
) -> list[Int[Kind, "batch token"]]:
    """The token that each token of each layer should look at: (i, pi_i(j)), then (i + r, hop_i^r(j)) for r =
    1, 2, 4, …"""
    k, N = hidden.shape
    level: Any = np.arange(k)[:, None]
    first = level * N + hidden + 0 * hops[0]
    later = [(level + 2**n) % k * N + hop for n, hop in enumerate(hops[:-1])]
    return [each.reshape(-1, k * N) for each in (first, *later)]


def _take(rows, at):
    """rows[..., at], with both broadcast."""
    xp = numpy_of(rows)
    shape = np.broadcast_shapes(rows.shape, at.shape)
    return xp.take_along_axis(xp.broadcast_to(rows, shape), xp.broadcast_to(at, shape), axis=-1)
