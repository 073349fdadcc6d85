"""How sparse attention is: the normalised entropy of its patterns."""

from __future__ import annotations

import numpy as np

TINY = 1e-9


def entropies(pattern, numpy=np):
    """Return the entropy of each query's attention, divided by the logarithm of the number of places that it
    could look at. It is 1 for uniform attention and 0 for attention to one place.

    `pattern` is [..., query, key], causal. The result is [..., query - 1]: the first query has no choice and
    is left out. Inside compiled code, pass jax.numpy as `numpy`."""
    each = -numpy.sum(pattern * numpy.log(pattern + TINY), axis=-1)[..., 1:]
    return each / numpy.log(numpy.arange(2, pattern.shape[-2] + 1, dtype=pattern.dtype))


def normalised_entropy(pattern: np.ndarray, queries: np.ndarray | None = None) -> np.ndarray:
    """Return the smallest normalised entropy over queries, or over those given (places are counted from 0;
    place 0 never counts).

    A minimum over more queries is lower even where nothing else differs: compare texts of different length
    with care."""
    found = entropies(pattern)
    if queries is not None:
        found = found[..., np.asarray(queries)[np.asarray(queries) > 0] - 1]
    return found.min(-1)
