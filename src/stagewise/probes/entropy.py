"""How sparse attention is: the normalised entropy of its patterns."""

from __future__ import annotations

import numpy as np

TINY = 1e-9


def entropies(pattern, numpy=np):
    """Entropy of each query's attention over log of how many it could look at, 1 for uniform and 0 for
    one-hot.

    `pattern` is [..., query, key], causal; the result is [..., query - 1]: the first query has no choice and
    is left out. Inside compiled code `numpy` is jax.numpy."""
    each = -numpy.sum(pattern * numpy.log(pattern + TINY), axis=-1)[..., 1:]
    return each / numpy.log(numpy.arange(2, pattern.shape[-2] + 1, dtype=pattern.dtype))


def normalised_entropy(pattern: np.ndarray, queries: np.ndarray | None = None) -> np.ndarray:
    """The smallest normalised entropy over queries, or over those given (places counted from 0; place 0 never
    counts).

    A minimum over more queries is lower even where nothing else differs: compare texts of different length
    with care."""
    found = entropies(pattern)
    if queries is not None:
        found = found[..., np.asarray(queries)[np.asarray(queries) > 0] - 1]
    return found.min(-1)
