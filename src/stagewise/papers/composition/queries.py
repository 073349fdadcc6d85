"""The statistical-query side (Section 4, Appendix B): how little two targets have in common.

<f, f'> = P[f = f'] - 1/N is a product over levels: prod (agree_i - 1) / (N (N - 1)^(k - 1)), where agree_i
counts the symbols that both hidden permutations of a level send to the same one. Nothing is simulated unless
asked for."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from math import comb, factorial, log

import numpy as np
from jaxtyping import Int

from stagewise.tasks.composition import Composition, hop


def inner_product(
    pi: Int[np.ndarray, "*n level symbol"], rho: Int[np.ndarray, "*n level symbol"]
) -> np.ndarray | float:
    """Lemma 10, its product over levels."""
    k, N = pi.shape[-2:]
    return ((pi == rho).sum(-1) - 1.0).prod(-1) / (N * (N - 1.0) ** (k - 1))


def agreement(
    pi: Int[np.ndarray, "level symbol"],
    rho: Int[np.ndarray, "level symbol"],
    sigma: Int[np.ndarray, "batch level symbol"],
    cyclic: bool,
) -> np.ndarray:
    """Whether the two targets agree, [batch, query], over all queries of the plain task or of the cyclic
    one."""
    k = len(pi)
    same = hop(pi, sigma, k) == hop(rho, sigma, k)
    return (same if cyclic else same[:, :1]).reshape(len(sigma), -1)


def root_mean_square(levels: int, symbols: int) -> float:
    """Of the inner product of two independent targets: an agreement has mean 1 and variance 1."""
    return 1 / (symbols * (symbols - 1.0) ** (levels - 1))


def mean_square_of_agreement(symbols: int) -> Fraction:
    """Of agree - 1, over all permutations; exactly."""
    N = symbols
    return Fraction(sum(comb(N, a) * derangements(N - a) * (a - 1) ** 2 for a in range(N + 1)), factorial(N))


def share_orthogonal(levels: int, symbols: int) -> float:
    """How many pairs are exactly orthogonal: in some level just one symbol agrees."""
    return 1 - (1 - symbols * derangements(symbols - 1) / factorial(symbols)) ** levels


def derangements(n: int) -> int:
    """Permutations of n symbols without a fixed point."""
    found = 1
    for size in range(1, n + 1):
        found = size * found + (-1) ** size
    return found


def packing(symbols: int, r: int, most: int) -> Int[np.ndarray, "found symbol"]:
    """Permutations that pairwise agree in fewer than r places, chosen greedily in lexicographic order, up to
    so many."""
    everything = np.array(list(permutations(range(symbols))))
    free, chosen = np.ones(len(everything), bool), []
    while free.any() and len(chosen) < most:
        chosen.append(everything[np.argmax(free)])
        free &= (everything == chosen[-1]).sum(1) < r
    return np.array(chosen)


def codes(
    letters: int, levels: int, wanted: int, rng: np.random.Generator, tries: int = 20_000
) -> Int[np.ndarray, "found level"]:
    """Words that pairwise agree in at most half of their places, chosen greedily among random ones, as many
    as wanted if they are found."""
    found = rng.integers(letters, size=(1, levels))
    for word in rng.integers(letters, size=(tries, levels)):
        if len(found) >= wanted:
            break
        if ((found == word).sum(1) <= levels / 2).all():
            found = np.concatenate([found, word[None]])
    return found


def family(
    symbols: int, levels: int, r: int, wanted: int, rng: np.random.Generator
) -> Int[np.ndarray, "found level symbol"]:
    """Lemma 12's targets."""
    letters = packing(symbols, r, 400)
    return letters[codes(len(letters), levels, wanted, rng)]


def transposed(symbols: int, levels: int) -> Int[np.ndarray, "found level symbol"]:
    """The identity everywhere, and its transpositions at the first level: targets that are far from
    orthogonal."""
    found = np.tile(np.arange(symbols), (symbols, levels, 1))
    for other in range(1, symbols):
        found[other, 0, [0, other]] = other, 0
    return found


def largest_inner_product(targets: Int[np.ndarray, "found level symbol"]) -> float:
    first, second = np.triu_indices(len(targets), 1)
    return float(np.abs(inner_product(targets[first], targets[second])).max())


def log_packing_number(levels: int, symbols: int, free_levels: int | None = None) -> float:
    """A lower bound on the log of how many targets lie pairwise at squared distance 1/2 or more (Corollary
    13): all targets over those within that distance of one, by greedy choice. Counted exactly. `free_levels`:
    targets that differ in that many levels only."""
    free, N = levels if free_levels is None else free_levels, symbols
    # ||f - f'||^2 = 2 (1 - 1/N) - 2 <f, f'> < 1/2, for prod (agree - 1) / (N - 1)^k.
    near = (1 - N / (4 * (N - 1))) * (1 - 1e-12)
    counts = {(a - 1) / (N - 1): comb(N, a) * derangements(N - a) for a in range(N + 1) if a != 1}
    products = {1.0: 1}
    for _ in range(free):
        grown: dict[float, int] = {}
        for value, times in products.items():
            for factor, ways in counts.items():
                if abs(value * factor) >= near:
                    grown[value * factor] = grown.get(value * factor, 0) + times * ways
        products = grown
    within = sum(times for value, times in products.items() if value >= near)
    return free * log(factorial(N)) - log(within)


def samples_until_unique(
    task: Composition, rng: np.random.Generator, symbols_asked: int | None = None, most: int = 10_000
) -> int:
    """Random samples until one target is left among all; `symbols_asked` limits what is asked about."""
    targets = task.population()  # hidden permutations are as many as sequences
    truth = targets[rng.integers(len(targets))]
    for number in range(1, most + 1):
        sigma = np.stack([rng.permutation(task.symbols) for _ in range(task.levels)])
        x = rng.integers(symbols_asked or task.symbols)
        answers, wanted = np.full(len(targets), x), x
        for level in range(task.levels):
            answers, wanted = (
                sigma[level, targets[np.arange(len(targets)), level, answers]],
                sigma[level, truth[level, wanted]],
            )
        targets = targets[answers == wanted]
        if len(targets) == 1:
            return number
    return most
