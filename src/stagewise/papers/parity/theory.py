"""The paper's one-layer transformer (Definitions 3 to 6) in the exact table form, whose cost does not depend
on the dimension d.

Tokens have frozen embeddings e[j, b], two a place. Attention of the place i looks at scores e_j' A e_i, and a
layer of 2m neurons sees e_i and the attended mixture: out_i = sum_r h_r relu(<W1_r, e_i> + <W2_r, att_i>).
Gradients are combinations of embeddings, so training never leaves

    A = E' C_A E_q,   W1 = C_1 E_q,   W2 = C_2 E

(rows of E are embeddings, E_q those of the places asked), and the network reads weights only through the
tables Z = G C_A G_q, F1 = C_1 G_q, F2 = C_2 G with the Gram matrix G = E E'. G = 1 is the limit of many
dimensions. `plain.py` is the same without tables.

Places count from 0, and embedding (j, b) is row 2j + b. The label of a place is the next bit; out > 0
predicts 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stagewise.tasks.parity import Parity

ROWS = 4096  # samples whose responses are held at a time
MOST_BITS_TO_COUNT = 16  # up to here a batch may hold an input several times


class Coefficients(NamedTuple):
    """What is trained, as combinations of embeddings."""

    A: np.ndarray  # [embedding, query embedding]
    W1: np.ndarray  # [neuron, query embedding]
    W2: np.ndarray  # [neuron, embedding]

    def moved(self, gradient: Coefficients, rate: float) -> Coefficients:
        return Coefficients(*(c - rate * g for c, g in zip(self, gradient)))


class Sequences(NamedTuple):
    """Bits that the network reads [sample, place], labels of the places asked [sample, query], and each
    sample's share of the batch.

    A sample that was drawn several times is there once, with a larger share."""

    bits: np.ndarray
    labels: np.ndarray
    share: np.ndarray

    def accuracy(self, outputs: np.ndarray) -> float:
        """The share of sequences with every answer right."""
        wrong = ((outputs > 0) != self.labels.astype(bool)).any(1)
        return float(1 - self.share[wrong].sum())

    def embedded(self) -> np.ndarray:
        """Which embedding stands at a place: [sample, place]."""
        return 2 * np.arange(self.bits.shape[1]) + self.bits


@dataclass(frozen=True)
class Network:
    """What is frozen: the task with its secret, the neurons' signs, and the Gram matrix of the embeddings."""

    task: Parity
    secret: np.ndarray
    signs: np.ndarray  # h, +-1/(2m)
    gram: np.ndarray
    loss: str

    @property
    def first(self) -> int:
        return int(self.task.asked[0])

    @property
    def query_rows(self) -> slice:
        """Rows of the embeddings at the places asked."""
        return slice(2 * self.first, None)

    def draw(self, rng: np.random.Generator, samples: int) -> Sequences:
        """A batch of random inputs."""
        if self.task.bits > MOST_BITS_TO_COUNT:
            return self.spell(rng.integers(0, 2, (samples, self.task.bits)), np.full(samples, 1 / samples))
        times = np.bincount(rng.integers(0, 2**self.task.bits, samples), minlength=2**self.task.bits)
        # As many rows for every batch, if it can be.
        codes = np.arange(len(times)) if samples >= len(times) else np.flatnonzero(times)
        return self.spell(codes[:, None] >> np.arange(self.task.bits) & 1, times[codes] / samples)

    def tested(self, rng: np.random.Generator, samples: int) -> Sequences:
        """Sequences to test on: random ones, or one of every input if those are fewer."""
        every = 2 ** min(self.task.bits, 62)
        if every > samples:
            return self.draw(rng, samples)
        return self.spell(
            np.arange(every)[:, None] >> np.arange(self.task.bits) & 1, np.full(every, 1 / every)
        )

    def spell(self, inputs: np.ndarray, share: np.ndarray) -> Sequences:
        labels = inputs @ self.task.sums(self.secret).astype(int) % 2
        return Sequences(
            np.concatenate([inputs, np.zeros((len(inputs), 1), int), labels[:, :-1]], 1), labels, share
        )

    def tables(self, c: Coefficients) -> Coefficients:
        """Z, F1 and F2: scores and neurons' responses, for every pair of embeddings."""
        Gq = self.gram[self.query_rows, self.query_rows]
        return Coefficients(self.gram @ c.A @ Gq, c.W1 @ Gq, c.W2 @ self.gram)

    def attention(self, tables: Coefficients, data: Sequences, query: int) -> np.ndarray:
        """Attention of one of the places asked, [sample, place]; nothing after the place itself."""
        place = self.first + query
        keys = data.embedded()[:, : place + 1]
        scores = tables.A[keys, (2 * query + data.bits[:, place])[:, None]]
        weights = np.exp(scores - scores.max(1, keepdims=True))
        attention = np.zeros(data.bits.shape)
        attention[:, : place + 1] = weights / weights.sum(1, keepdims=True)
        return attention

    def respond(self, tables: Coefficients, data: Sequences, query: int):
        """Neurons before the ReLU [sample, neuron], the output, and attention by embedding [sample,
        embedding]."""
        attention = self.attention(tables, data, query)
        looked = np.zeros((len(attention), len(self.gram)))
        np.put_along_axis(looked, data.embedded(), attention, 1)
        seen = tables.W1.T[2 * query + data.bits[:, self.first + query]] + looked @ tables.W2.T
        return seen, np.maximum(seen, 0) @ self.signs, looked

    def outputs(self, tables: Coefficients, data: Sequences) -> np.ndarray:
        """[sample, query]."""
        parts = [
            self.respond(tables, part, q)[1] for part in pieces(data) for q in range(data.labels.shape[1])
        ]
        per = data.labels.shape[1]
        return np.concatenate([np.stack(parts[i : i + per], 1) for i in range(0, len(parts), per)])

    def gradient(self, c: Coefficients, data: Sequences) -> Coefficients:
        """Of the loss, summed over the places asked and averaged over the batch, with respect to the tables.

        Those are the coefficients by which one step of descent moves the weights."""
        tables, found = self.tables(c), Coefficients(*(np.zeros_like(part) for part in c))
        for part in pieces(data):
            for query in range(data.labels.shape[1]):
                self._add(found, tables, part, query)
        return found

    def _add(self, found: Coefficients, tables: Coefficients, data: Sequences, query: int) -> None:
        seen, out, looked = self.respond(tables, data, query)
        sign = 1.0 - 2 * data.labels[:, query]
        steep = sign if self.loss == "linear" else sign * (1 + sign * out > 0)
        pull = (seen > 0) * ((steep * data.share)[:, None] * self.signs)  # [sample, neuron]
        found.W2[...] += pull.T @ looked
        along = pull @ tables.W2
        scores = looked * (along - (looked * along).sum(1, keepdims=True))  # through the softmax
        own = data.bits[:, self.first + query]
        for bit in (0, 1):
            found.W1[:, 2 * query + bit] += pull[own == bit].sum(0)
            found.A[:, 2 * query + bit] += scores[own == bit].sum(0)


def pieces(data: Sequences):
    """The samples in portions that fit into memory."""
    return (Sequences(*(part[i : i + ROWS] for part in data)) for i in range(0, len(data.bits), ROWS))


def embeddings(rng: np.random.Generator, places: int, dimension: int) -> np.ndarray:
    """Two random sign vectors of length one for each place; with dimension 0, orthogonal ones."""
    if dimension == 0:
        return np.eye(2 * places)
    return rng.choice([-1.0, 1.0], (2 * places, dimension)) / np.sqrt(dimension)


def begin(rng: np.random.Generator, network: Network, epsilon: float) -> Coefficients:
    """Assumption 1: A = 0, W2 = 0, W1 a combination of the asked places' embeddings with coefficients
    +-epsilon."""
    rows, queries = len(network.gram), 2 * len(network.task.asked)
    neurons = len(network.signs)
    return Coefficients(
        np.zeros((rows, queries)),
        rng.choice([-epsilon, epsilon], (neurons, queries)),
        np.zeros((neurons, rows)),
    )
