"""Theorems 4 and 9: weights that compose exactly, as printed and repaired; and two remarks of Section 7.

Layer 1 looks from (i, j) to (i, pi_i(j)) and copies sigma there: one hop. Layer l + 1 looks from (i, j),
which holds hop_i^r(j) for r = 2^(l-1), to (i + r, hop_i^r(j)) and copies the r hops from there: 2r hops.
Theorem 9 names a level by its angle and, if its permutation is not the identity, by a coordinate of its own;
then m + 2 numbers a symbol are enough instead of k."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from stagewise.errors import require
from stagewise.models.attention_only import Scores, stream
from stagewise.models.blocks import blocks_of, embed, own_symbols
from stagewise.tasks.composition import Composition, first_hop, hop

SHARP = 200.0  # the scale of scores: exp(-120) is already nothing in float32


@dataclass(frozen=True)
class Construction:
    """Embedded sequences, key-query matrices, the block that each layer copies, and a readout."""

    first: Float[np.ndarray, "batch token blocks width"]
    scores: Scores
    readout: Float[np.ndarray, "width symbol"]  # of the last block
    copied: tuple[int, ...] | None = None

    def outputs(self) -> Float[np.ndarray, "batch token symbol"]:
        blocks, _ = stream(self.first, self.scores, self.copied)
        return blocks[..., -1, :] @ self.readout

    def in_single_precision(self) -> Construction:
        return replace(
            self,
            first=self.first.astype(np.float32),
            scores=[matrix.astype(np.float32) for matrix in self.scores],
            readout=self.readout.astype(np.float32),
        )

    def error(self, labels: Int[np.ndarray, "batch token"], tokens: slice = slice(None)) -> float:
        """The largest difference to the label's unit vector, over sequences and tokens, in float32."""
        wanted = np.eye(self.readout.shape[1], dtype=np.float32)[labels]
        return float(np.abs(self.in_single_precision().outputs() - wanted)[:, tokens].max())


def _checked(hidden: Int[np.ndarray, "level symbol"]) -> tuple[int, int]:
    """Levels and symbols; refused if the levels cannot be doubled up to."""
    k, N = hidden.shape
    Composition(k, N).check_power_of_two()
    return k, N


def block_matrix(blocks: int, key: int, query: int, matrix: np.ndarray) -> np.ndarray:
    """A key-query matrix with one block."""
    place = np.zeros((blocks, blocks))
    place[key, query] = 1
    return np.kron(place, matrix)


def looks_at_hidden(hidden: Int[np.ndarray, "level symbol"]) -> np.ndarray:
    """Sum of E(i, pi_i(j)) E(i, j)^T."""
    k, N = hidden.shape
    found = np.zeros((k, N, k, N))
    for i in range(k):
        found[i, hidden[i], i, np.arange(N)] = 1
    return found.reshape(k * N, k * N)


def looks_ahead(levels: int, symbols: int, by: int = 1) -> np.ndarray:
    """Sum of E(a + by, b) E(a, b)^T: the same symbol, so many levels on."""
    return np.kron(np.roll(np.eye(levels), by, axis=0), np.eye(symbols))


def theorem4(
    hidden: Int[np.ndarray, "level symbol"], sigma: Int[np.ndarray, "batch level symbol"], cyclic: bool = True
) -> Construction:
    """As printed; the printed readout e_k (x) I reads hops that began at the first level, 1_k (x) I those of
    all."""
    k, N = _checked(hidden)
    layers = [block_matrix(2, 0, 0, SHARP * looks_at_hidden(hidden))]
    layers += [
        block_matrix(layer + 2, 0, layer + 1, SHARP * looks_ahead(k, N)) for layer in range(1, k.bit_length())
    ]
    levels = np.ones((k, 1)) if cyclic else np.eye(k)[:, -1:]
    return Construction(embed(sigma, np.float64), layers, np.kron(levels, np.eye(N)))


def any_number_of_levels(
    hidden: Int[np.ndarray, "level symbol"], sigma: Int[np.ndarray, "batch level symbol"]
) -> Construction:
    """For k that is no power of two (Section 7): powers of two first, then one more layer for each further
    bit of k. hop_i^(r + s) = hop_(i+r)^s o hop_i^r looks from the block that holds r hops, at level i + r -
    1, one level on, and copies the block that holds s hops."""
    k, N = hidden.shape
    layers, copied = [block_matrix(2, 0, 0, SHARP * looks_at_hidden(hidden))], [1]
    bits = [2**b for b in range(k.bit_length()) if k & 2**b]
    for _ in range(k.bit_length() - 1):
        newest = len(layers) + 1
        layers.append(block_matrix(newest + 1, 0, newest, SHARP * looks_ahead(k, N)))
        copied.append(newest)
    for bit in reversed(bits[:-1]):
        newest = len(layers) + 1
        layers.append(block_matrix(newest + 1, 0, newest, SHARP * looks_ahead(k, N)))
        copied.append(1 + bit.bit_length())
    return Construction(embed(sigma, np.float64), layers, np.kron(np.ones((k, 1)), np.eye(N)), tuple(copied))


def knows_hidden(
    hidden: Int[np.ndarray, "level symbol"], sigma: Int[np.ndarray, "batch level symbol"]
) -> Construction:
    """An embedding that may depend on pi (Section 7) holds one hop from the start, and needs log2 k
    layers."""
    k, N = _checked(hidden)
    first = blocks_of([own_symbols(sigma), first_hop(hidden, sigma)], (0, 0), np.float64)
    layers = [
        block_matrix(layer + 2, 0, layer + 1, SHARP * looks_ahead(k, N))
        for layer in range(k.bit_length() - 1)
    ]
    return Construction(first, layers, np.kron(np.ones((k, 1)), np.eye(N)))


def level_codes(hidden: Int[np.ndarray, "level symbol"], moved: int) -> Float[np.ndarray, "level code"]:
    """p_i of Theorem 9: the angle of level i, and before it one coordinate for each level that is moved. As
    printed, the first level is 1."""
    k, N = hidden.shape
    active = np.flatnonzero((hidden != np.arange(N)).any(1))
    require(
        len(active) <= moved,
        f"composition: {len(active)} hidden permutations differ from the identity, which is more than the "
        f"{moved} that the construction has room for",
    )
    own, angles = np.zeros((k, moved)), 2 * np.pi * np.arange(1, k + 1) / k
    own[active, np.arange(len(active))] = 1
    return np.concatenate([own, np.cos(angles)[:, None], np.sin(angles)[:, None]], axis=1)


def theorem9(
    hidden: Int[np.ndarray, "level symbol"],
    sigma: Int[np.ndarray, "batch level symbol"],
    moved: int,
    repaired: bool = True,
) -> Construction:
    """(m + 2) N (L + 2) dimensions for at most m hidden permutations. The printed readout p_k (x) I counts
    level k twice if it is one of the m; the repaired one leaves its own coordinate out."""
    k, N = _checked(hidden)
    codes, width = level_codes(hidden, moved), moved + 2
    by_angle = np.diag([0.0] * moved + [1.0, 1.0])
    sharp = SHARP / (1 - np.cos(2 * np.pi / k)) if k > 1 else SHARP
    first_layer = sharp * np.kron(by_angle, np.eye(N))
    for own, level in enumerate(np.flatnonzero((hidden != np.arange(N)).any(1))):
        goes = np.zeros((N, N))
        goes[hidden[level], np.arange(N)] = 1
        first_layer += (sharp + SHARP) * np.kron(np.diag(np.eye(width)[own]), goes)
    turn = np.zeros((width, width))
    cos, sin = np.cos(2 * np.pi / k), np.sin(2 * np.pi / k)
    turn[moved:, moved:] = [[cos, -sin], [sin, cos]]
    layers = [block_matrix(2, 0, 0, first_layer)]
    layers += [
        block_matrix(layer + 2, 0, layer + 1, sharp * np.kron(turn, np.eye(N)))
        for layer in range(1, k.bit_length())
    ]
    read = codes[k - 1].copy()
    if repaired:
        read[:moved] = 0
    return Construction(_coded(codes, sigma), layers, np.kron(read[:, None], np.eye(N)))


def _coded(
    codes: Float[np.ndarray, "level code"], sigma: Int[np.ndarray, "batch level symbol"]
) -> Float[np.ndarray, "batch token 2 width"]:
    k, N = sigma.shape[-2:]
    symbols = np.stack([own_symbols(sigma), sigma], -1)  # [batch, level, symbol, 2]
    units = np.eye(N)[symbols]
    coded = np.einsum("ic,bijen->bijecn", codes, units)
    return coded.reshape(len(sigma), k * N, 2, -1)


def labels(
    task: Composition, hidden: Int[np.ndarray, "level symbol"], sigma: Int[np.ndarray, "batch level symbol"]
) -> Int[np.ndarray, "batch token"]:
    """hop_i^k(j) of every token."""
    return hop(hidden, sigma, task.levels).reshape(len(sigma), task.tokens)
