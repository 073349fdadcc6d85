"""k-fold composition: a symbol moves through levels. At each level a hidden permutation is applied to it, and
then a permutation that the sequence shows.

One hop takes symbol x at level i to sigma_i(pi_i(x)) at level i + 1, where levels are counted modulo k.
hop_i^r(j) is the symbol after r hops that begin at level i with symbol j. The hidden permutations pi belong
to the task; each sequence has its own permutations sigma. 2r hops are r hops after r hops: hop_i^2r =
hop_{i+r}^r o hop_i^r."""

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

    Kind = TypeVar("Kind", bound=Array | np.ndarray)  # arrays of jax or of numpy, whichever were given

MOST_LISTED = 400_000
ALL = -1


@dataclass(frozen=True)
class Composition:
    """The task with k levels and N symbols (Section 2.1). `moved` is m of Appendix A.2: the number of hidden
    permutations that may differ from the identity."""

    levels: int = 4  # number of levels, k; each hop goes to the next level
    symbols: int = 5  # number of symbols in every level, N
    moved: int = ALL  # number of hidden permutations that may differ from the identity, m; -1: all
    # where hops begin: at all levels (cyclic), or only at the first (plain)
    asked: Literal["cyclic", "plain"] = "cyclic"

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
        """T = kN, the number of tokens; token iN + j shows sigma_i(j)."""
        return self.levels * self.symbols

    @property
    def depth(self) -> int:
        """L = log2(k) + 1, the number of layers: one for each number of hops 1, 2, 4, …, k."""
        self.check_power_of_two()
        return int(log2(self.levels)) + 1

    @property
    def doublings(self) -> tuple[int, ...]:
        """The numbers of hops 1, 2, 4, … up to k."""
        return tuple(2**layer for layer in range(self.levels.bit_length()))

    def asks(self) -> Bool[np.ndarray, " token"]:
        """Say for each token whether hops from it are asked: all tokens, or only those of level 0 if
        `plain`."""
        return np.arange(self.tokens) < (self.tokens if self.asked == "cyclic" else self.symbols)

    def draw_hidden(self, rng: np.random.Generator) -> Int[np.ndarray, "level symbol"]:
        """Draw the hidden permutations. They are uniform at all levels, or at `moved` random levels and the
        identity elsewhere."""
        drawn = np.stack([rng.permutation(self.symbols) for _ in range(self.levels)])
        if self.moved == ALL:
            return drawn
        still = rng.permutation(self.levels)[self.moved :]
        drawn[still] = np.arange(self.symbols)
        return drawn

    def sample(self, key: Key[Array, ""], batch: int) -> Int[Array, "batch level symbol"]:
        """Draw the permutations sigma of a batch of sequences, uniform at every level."""
        # Drawn in one row: the bits are the same, and XLA compiles this in a quarter of the time.
        drawn = jax.random.bits(key, (batch * self.tokens,)).reshape(batch, self.levels, self.symbols)
        mine, other, place = drawn[..., :, None], drawn[..., None, :], np.arange(self.symbols)
        # The ranks of the bits are a permutation. XLA would take a second to compile a sort instead.
        before = (other < mine) | ((other == mine) & (place[None, :] < place[:, None]))
        # Without the barrier XLA would draw the permutations again wherever they are read.
        return jax.lax.optimization_barrier(before.sum(-1, dtype=jnp.int32))

    def draw(self, rng: np.random.Generator, batch: int) -> Int[np.ndarray, "batch level symbol"]:
        """Draw a batch of sequences on the host with numpy, from the same distribution as `sample`."""
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
        """Refuse a number of levels that is not a power of two."""
        require(
            self.levels & (self.levels - 1) == 0,
            f"composition: this needs levels that are a power of two, not {self.levels} (set --task.levels)",
        )

    def check_cyclic(self, what: str) -> None:
        """Refuse the plain task where hops from all levels are needed; `what` names who needs them."""
        require(
            self.asked == "cyclic",
            f"{what}: hops are asked from all levels here, so the task is cyclic, not {self.asked} (set "
            "--task.asked)",
        )

    @property
    def population_size(self) -> int:
        return factorial(self.symbols) ** self.levels

    def population(self) -> Int[np.ndarray, "all level symbol"]:
        """List all sequences; refuse if there are more than MOST_LISTED."""
        size = self.population_size
        require(
            size <= MOST_LISTED,
            f"composition: 10^{log10(size):.0f} sequences are too many to list (set --task.levels or "
            "--task.symbols)",
        )
        each = np.array(list(permutations(range(self.symbols))))
        return each[np.array(list(product(range(len(each)), repeat=self.levels)))]

    def held_out(self, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Split the population at random. Returns the sequences to train on, then the `share` of them to test
        on."""
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
    """Return the hops `more` after the r hops `hops`: more_{i+r}(hops_i(j))."""
    return _take(numpy_of(hops).roll(more, -r, axis=-2), hops)


def doubled_hops(
    hidden: Int[Kind, "level symbol"], sigma: Int[Kind, "*batch level symbol"], most: int | None = None
) -> list[Int[Kind, "*batch level symbol"]]:
    """List hop^1, hop^2, hop^4, … up to hop^k, or only the first `most` of them."""
    found, r = [first_hop(hidden, sigma)], 1
    while 2 * r <= sigma.shape[-2] and len(found) != most:
        found.append(after(found[-1], found[-1], r))
        r *= 2
    return found


def hop(
    hidden: Int[Kind, "level symbol"], sigma: Int[Kind, "*batch level symbol"], r: int
) -> Int[Kind, "*batch level symbol"]:
    """Return hop^r for any r, composed of powers of two."""
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
    """For each layer, return the token that each token (i, j) should look at: (i, pi_i(j)) in the first
    layer, then (i + r, hop_i^r(j)) for r = 1, 2, 4, …"""
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
