"""The gradient of a key-query matrix at zero, below it ideal layers: in closed form, and counted sample by
sample.

At zero a layer's attention is uniform, and the gradient is -beta0/(kN) times g = E[ sum over keys t of
(1{symbol of t's copied block = label} - 1/N) X_t X_q^T ]. With ideal lower layers X_t is a row of unit
vectors, so g is counting: `counted` adds ones where they belong. `population` is its expectation (Lemmas 15,
19 and 24). Layers count from 1, as in the paper; blocks from 0. All in numpy: no model is run."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from stagewise.models.blocks import ideal_stream, names_of
from stagewise.tasks.composition import doubled_hops, right_keys


def fixed_points(hidden: Int[np.ndarray, "level symbol"]) -> Int[np.ndarray, " level"]:
    return (hidden == np.arange(hidden.shape[1])).sum(1)


def population(
    hidden: Int[np.ndarray, "level symbol"], layer: int
) -> Float[np.ndarray, "keyblock width queryblock width"]:
    """g of a layer, as blocks [key block, width, query block, width]."""
    k, N = hidden.shape
    T, fixed = k * N, fixed_points(hidden)
    g = np.zeros((layer + 1, T, layer + 1, T))
    eye, ones = np.eye(N), np.ones((N, N))

    def put(key: int, query: int, parts: dict[tuple[int, int], np.ndarray]) -> None:
        block = np.zeros((k, N, k, N))
        for (to, of), part in parts.items():
            block[to, :, of, :] += part
        g[key, :, query, :] += block.reshape(T, T)

    if layer == 1:
        put(0, 0, {(i, i): (eye[:, hidden[i]] - ones / N) / (k * N) for i in range(k)})
        around = [
            ((f - 1) / (N * (N - 1)) * eye + (N - f) / (N**2 * (N - 1)) * ones) / k - ones / (k * N**2)
            for f in fixed
        ]
        put(1, 1, {(p, i): around[i] for p in range(k) for i in range(k)})
        return g
    ahead = 2 ** (layer - 2)
    put(0, layer, {((i + ahead) % k, (i + ahead - 1) % k): (eye / N - ones / N**2) / k for i in range(k)})
    if layer == 2:
        put(0, 1, {((i + 1) % k, i): (fixed[i] - 1) / (N * (N - 1)) * (eye - ones / N) / k for i in range(k)})
    return g


def names(
    hidden: Int[np.ndarray, "level symbol"], sigma: Int[np.ndarray, "batch level symbol"], layer: int
) -> Int[np.ndarray, "batch token block"]:
    """Which unit vector each block of each token is, as the layer sees them."""
    return names_of(*ideal_stream(doubled_hops(hidden, sigma, layer)[: layer - 1], sigma))


def counted(
    hidden: Int[np.ndarray, "level symbol"],
    sigma: Int[np.ndarray, "batch level symbol"],
    layer: int,
    queries: Int[np.ndarray, " batch"] | None = None,
    batch: int = 20_000,
    centred: bool = True,
) -> Float[np.ndarray, "keyblock width queryblock width"]:
    """g of samples: of one query each, or of all. k (l + 1)^2 additions a query. `centred` takes the mean
    over keys off, as the softmax does."""
    k, N = hidden.shape
    T, blocks, total, asked = k * N, layer + 1, np.zeros(1), 0
    for start in range(0, len(sigma), batch):
        some = sigma[start : start + batch]
        *lower, last = doubled_hops(hidden, some, layer)
        named, label = names_of(*ideal_stream(lower, some)), last.reshape(len(some), T)
        copied = named[..., layer].reshape(len(some), k, N) % N  # the symbol that a key would hand on
        holders = np.argsort(copied, axis=-1)  # [sample, level, symbol]: who holds the symbol
        q = (
            np.broadcast_to(np.arange(T), (len(some), T))
            if queries is None
            else queries[start : start + batch, None]
        )
        rows = np.arange(len(some))[:, None]
        wanted = label[rows, q]  # [sample, query]
        # [sample, query, level]
        keys = np.arange(k) * N + holders[rows[..., None], np.arange(k), wanted[..., None]]
        of_key = named[rows[..., None], keys] + T * np.arange(blocks)  # [sample, query, level, block]
        of_query = named[rows, q] + T * np.arange(blocks)  # [sample, query, block]
        places = of_key[..., :, None].astype(np.int64) * (T * blocks) + of_query[:, :, None, None, :]
        ones = np.bincount(places.ravel(), minlength=(T * blocks) ** 2).reshape(T * blocks, T * blocks)
        every_key = np.bincount(of_query.ravel(), minlength=T * blocks) / N
        total = total + ones - centred * every_key
        asked += q.size
    return total.reshape(blocks, T, blocks, T) / asked


def scores_of(
    g: Float[np.ndarray, "keyblock width queryblock width"], named: Int[np.ndarray, "batch token block"]
) -> Float[np.ndarray, "batch query key"]:
    """X^T g X for tokens that are rows of unit vectors."""
    blocks, T = g.shape[:2]
    flat, at = g.reshape(blocks * T, blocks * T), named + T * np.arange(blocks)
    found = np.empty((len(at), T, T))
    for n, one in enumerate(at):
        found[n] = flat[one[None, :, :, None], one[:, None, None, :]].sum((-1, -2))
    return found


def leads(
    g: Float[np.ndarray, "keyblock width queryblock width"],
    hidden: Int[np.ndarray, "level symbol"],
    sigma: Int[np.ndarray, "batch level symbol"],
    layer: int,
) -> np.ndarray:
    """By how much each query's right key is ahead of the next, [batch, query]."""
    return margins(
        scores_of(g, names(hidden, sigma, layer)), right_keys(hidden, doubled_hops(hidden, sigma))[layer - 1]
    )


def margins(
    scores: Float[np.ndarray, "batch query key"], right: Int[np.ndarray, "batch token"]
) -> Float[np.ndarray, "batch token"]:
    """By how much the right key is ahead of the next."""
    mine = np.take_along_axis(scores, right[..., None], -1)[..., 0]
    others = scores.copy()
    np.put_along_axis(others, right[..., None], -np.inf, -1)
    return mine - others.max(-1)
