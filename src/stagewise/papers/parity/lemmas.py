"""What the lemmas of Appendix B.4 speak of: statistics of a batch (Table 1), closed gradients, and the
response kappa of a place.

Notation as printed, with delta = 0.1 for the failure probability. Where j = S[i], alphabar is the mean of
alpha."""

from __future__ import annotations

from itertools import combinations
from math import log, sqrt

import numpy as np

from stagewise.papers.parity.theory import Coefficients, Network, Sequences
from stagewise.tasks.parity import Parity

FAILURE = 0.1  # the paper's delta
STATISTICS = ("delta", "alpha", "beta", "psi", "gamma", "zeta")


def signed_counts(network: Network, data: Sequences) -> tuple[np.ndarray, np.ndarray]:
    """delta [query, b] and alpha [query, embedding, b2] of Table 1 over the batch size; zero for places that
    the query cannot see."""
    samples, places = data.bits.shape
    here = np.zeros((samples, 2 * places))
    np.put_along_axis(here, data.embedded(), 1.0, 1)
    queries = data.labels.shape[1]
    delta, alpha = np.zeros((queries, 2)), np.zeros((queries, 2 * places, 2))
    for query in range(queries):
        sign, own = data.share * (1 - 2 * data.labels[:, query]), data.bits[:, network.first + query]
        for bit in (0, 1):
            delta[query, bit] = sign[own == bit].sum()
            alpha[query, :, bit] = sign[own == bit] @ here[own == bit]
        alpha[query, 2 * (network.first + query + 1) :] = 0
    return delta, alpha


def mean_counts(network: Network) -> np.ndarray:
    """alphabar [query, embedding, b2] over the batch size: zero but at the secret. The first query's own bit
    is always 0."""
    found = np.zeros((len(network.secret), len(network.gram), 2))
    for query, place in enumerate(network.secret):
        for b1 in (0, 1):
            found[query, 2 * place + b1] = (-1) ** b1 * (
                np.array([0.5, 0]) if query == 0 else np.array([0.25, -0.25])
            )
    return found


def active(start: np.ndarray) -> np.ndarray:
    """Which neurons a place and bit switch on, 1(nu > 0): [neuron, query, bit]."""
    return (start > 0).reshape(len(start), -1, 2).astype(float)


def one_based(network: Network) -> np.ndarray:
    """The places asked, counted from 1: the lemmas' i."""
    return network.first + 1 + np.arange(len(network.task.asked))


def over_bounds(network: Network, start: np.ndarray, data: Sequences, B: int) -> np.ndarray:
    """How much of each bound of Lemma 7 is used, by statistic. For delta the proof's sqrt(2 B log), of which
    the statement lost the 2."""
    n, k, m = network.task.bits, len(network.secret), len(network.signs) // 2
    delta, alpha = (B * statistic for statistic in signed_counts(network, data))
    on, i = active(start), one_based(network)
    noise = alpha.copy()
    for query, place in enumerate(network.secret):
        noise[query, 2 * place : 2 * place + 2] = 0  # beta, psi and zeta leave j = S[i] out
    psi = np.einsum("rqb,qjb->rj", on / i[:, None], noise)
    together = np.einsum("rqb,rpc->qbpc", on, on)
    same = np.einsum("qp,bc->qbpc", np.eye(k), np.eye(2))
    gamma = (together - (1 + same) / 2 * m) / i[:, None]
    zeta = np.einsum("rqb,rj->qbj", on, psi)
    few, many = log(300 * n * B / FAILURE), log(300 * m * n * B / FAILURE)
    used = (
        abs(delta).max() / sqrt(2 * B * few),
        abs(alpha - B * mean_counts(network)).max() / sqrt(2 * B * few),
        abs((noise.sum(2) / i[:, None]).sum(0)).max() / (sqrt(2 * B * k * few) / n),
        abs(psi).max() / (2 * sqrt(B * k * many) / n),
        abs(gamma).max() / (sqrt(2 * m * log(200 * n / FAILURE)) / n),
        abs(zeta).max() / (4 * m * sqrt(k * B * many) / n),
    )
    return np.array(used)


def first_gradients(network: Network, start: np.ndarray, data: Sequences) -> tuple[np.ndarray, np.ndarray]:
    """Lemmas 12 and 14: coefficients of the gradients of W1 and W2 while attention is uniform and sign(nu)
    decides who is active.

    Exact with alpha; the printed line has its mean at the secret and lets psi carry the rest."""
    delta, alpha = signed_counts(network, data)
    on, scale = active(start), network.signs[:, None]
    return scale * (on * delta).reshape(len(on), -1), scale * np.einsum(
        "rqb,qjb->rj", on / one_based(network)[:, None], alpha
    )


def attention_gradient(
    network: Network, start: np.ndarray, tables: Coefficients, data: Sequences
) -> np.ndarray:
    """Lemma 20 at uniform attention, summed over a batch: coefficients of the gradient of A."""
    kappa = response(start, network.signs, tables)
    samples, places = data.bits.shape
    found = np.zeros((2 * places, 2 * data.labels.shape[1]))
    keys = data.embedded()
    for query in range(data.labels.shape[1]):
        place = network.first + query
        own, sign = data.bits[:, place], data.share * (1 - 2 * data.labels[:, query])
        heard = kappa[query, own][np.arange(samples)[:, None], keys[:, : place + 1]]
        share = 1 / (place + 1)
        moved = -sign[:, None] * share * (heard - share * heard.sum(1, keepdims=True))
        for bit in (0, 1):
            np.add.at(found[:, 2 * query + bit], keys[own == bit, : place + 1], moved[own == bit])
    return found


def response(start: np.ndarray, signs: np.ndarray, tables: Coefficients) -> np.ndarray:
    """Delta [query, b2, embedding] = <kappa_(i, b2), e>: minus what the active neurons make of an attended
    embedding."""
    return -np.einsum("rqb,r,rj->qbj", active(start), signs, tables.W2)


def third_gradient(network: Network, start: np.ndarray) -> np.ndarray:
    """Lemma 25, repaired: projections of the third gradient of W2 on e[S[i], b'], [neuron, query, b'].

    The factor 1/4 is the share of samples with given bits, which the print leaves out; at the first place it
    is 1/2, one bit alone."""
    on, turn = active(start), np.array([1.0, -1.0])
    share = (on[:, :, 0] - on[:, :, 1]) / 4
    share[:, 0] = on[:, 0, 0] / 2
    return network.signs[:, None, None] * share[:, :, None] * turn


def correlations(bits: int, secret_size: int, chain_of_thought: bool) -> tuple[float, float]:
    """Given the bit at an asked place, how the next bit correlates with the bits before: the least on what it
    needs, the most elsewhere.

    Over all inputs and all secrets in ascending order; the largest over the values of the given bit."""
    task = Parity(bits, secret_size, chain_of_thought)
    inputs = (np.arange(2**bits)[:, None] >> np.arange(bits)) & 1
    least, most = 1.0, 0.0
    for secret in combinations(range(bits), secret_size):
        labels = inputs @ task.sums(np.array(secret)).astype(int) % 2
        read = np.concatenate([inputs, np.zeros((len(inputs), 1), int), labels[:, :-1]], 1)
        for answer, place in enumerate(task.asked):
            needed = np.flatnonzero(task.depends_on(np.array(secret))[:, answer])
            for own in np.unique(read[:, place]):
                given = read[:, place] == own
                found = abs((1 - 2 * labels[given, answer]) @ (1 - 2 * read[given, :place])) / given.sum()
                least = min(least, found[needed].min())
                most = max(most, np.delete(found, needed).max())
    return float(least), float(most)
