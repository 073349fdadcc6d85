"""Theorem 3: three steps of stochastic gradient descent on A and W together, and what its lemmas say after
each of them."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np

from stagewise.papers.parity import lemmas
from stagewise.papers.parity.theory import Coefficients, Network, Sequences, begin, embeddings
from stagewise.threads import on_each_core
from stagewise.training.program import EVALUATION, INITIAL, Program, generator

WATCHED = 512  # of them, on which single neurons are followed
STEPS = 3
BATCHES = 100  # the stream of step t is number 100 + t

DIMS = {
    "accuracy": (),
    "margin": (),
    "largest_output": (),
    "mass": ("answer",),
    "off_one_hot": (),
    "attended_error": (),
    "flips": (),
    "moved": (),
    "own_part": ("extreme",),
    "attended_part": (),
    "on_score": ("answer",),
    "off_score": ("answer",),
    "on_kappa": ("answer", "extreme"),
    "off_kappa": ("answer",),
    "kappa_error": (),
    "first_kappa": (),
    "signal": ("answer",),
    "over_bound": ("statistic",),
    "over_lemma13": (),
    "over_lemma15": (),
    "secret_gradient": (),
    "other_gradient": (),
    "third_error": (),
}


def frozen(settings, seed: int) -> tuple[Network, Coefficients, np.ndarray]:
    """The network of one seed, its start, and its embeddings."""
    rng = generator(seed, INITIAL)
    task, m = settings.task, settings.neurons
    secret, E = task.draw_secret(rng), embeddings(rng, task.length, settings.dimension)
    gram = E @ E.T if settings.dimension else E
    network = Network(task, secret, np.repeat([0.5, -0.5], m) / m, gram, settings.loss)
    return network, begin(rng, network, settings.epsilon), E


@dataclass(frozen=True)
class ThreeSteps(Program):
    """Records before the first step and after each."""

    settings: Any

    @property
    def chunks(self) -> int:
        return STEPS + 1

    @property
    def records(self) -> int:
        return STEPS + 1

    def advance(self, state, chunk):
        def lane(i: int):
            return self._lane({name: array[i] for name, array in state.items()}, chunk)

        moved, found = zip(*on_each_core((self, chunk), lane, range(len(state["seed"]))))
        return (
            {name: np.stack([one[name] for one in moved]) for name in moved[0]},
            {name: np.stack([np.asarray(one[name], float) for one in found])[:, None] for name in DIMS},
        )

    def _lane(self, lane, chunk):
        seed = int(lane["seed"])
        network, start, _ = frozen(self.settings, seed)
        before = Coefficients(lane["A"], lane["W1"], lane["W2"])
        if chunk == 0:
            return lane, measure(self.settings, network, start.W1, before, seed) | nothing()
        batch = network.draw(generator(seed, BATCHES + chunk), self.settings.batch)
        gradient = network.gradient(before, batch)
        after = before.moved(gradient, self.settings.rates()[chunk - 1])
        told = of_gradient(network, start.W1, gradient, batch, self.settings.batch)
        return {"seed": lane["seed"], **after._asdict()}, measure(
            self.settings, network, start.W1, after, seed
        ) | told

    def finished(self, state):
        return False

    def outcomes(self, state):
        return {}

    def describe(self, chunk):
        return "descent", 1 if chunk else 0

    def labels(self):
        return {
            "step": (("record",), np.arange(self.records)),
            "answer": (("answer",), np.arange(1, len(self.settings.task.asked) + 1)),
            "statistic": (("statistic",), np.array(lemmas.STATISTICS)),
            "extreme": (("extreme",), np.array(["least", "most"])),
        }

    @property
    def dims(self):
        return DIMS


def start(settings, seeds: np.ndarray) -> dict[str, np.ndarray]:
    begun = [frozen(settings, int(seed))[1]._asdict() for seed in seeds]
    return {"seed": seeds} | {name: np.stack([one[name] for one in begun]) for name in begun[0]}


def measure(settings, network: Network, nu: np.ndarray, c: Coefficients, seed: int) -> dict[str, Any]:
    """Accuracy, attention, activations, scores and the response kappa, on fresh sequences."""
    tables = network.tables(c)
    test = network.tested(generator(seed, EVALUATION), settings.tested)
    out = network.outputs(tables, test)
    signed = (2 * test.labels - 1) * out
    few = Sequences(*(part[:WATCHED] for part in test))
    return (
        {
            "accuracy": test.accuracy(out),
            "margin": signed.min(),
            "largest_output": abs(out).max(),
            "signal": test.share @ signed,
        }
        | of_attention(network, tables, test)
        | of_neurons(settings, network, nu, tables, few)
        | of_tables(settings, network, nu, tables)
    )


def of_attention(network: Network, tables: Coefficients, test: Sequences) -> dict[str, Any]:
    """Mass on the secret, the largest deviation from one-hot attention, and of the attended embedding from
    the secret's."""
    mass, off, error = [], 0.0, 0.0
    for query in range(test.labels.shape[1]):
        attention = network.attention(tables, test, query)
        wanted = network.task.depends_on(network.secret)[:, query].astype(float)
        wanted = np.pad(wanted / wanted.sum(), (0, attention.shape[1] - len(wanted)))
        mass.append(test.share @ attention[:, wanted > 0].sum(1))
        apart = attention - wanted
        off = max(off, abs(apart).max())
        by_row = np.zeros((min(len(apart), WATCHED), len(network.gram)))
        np.put_along_axis(by_row, test.embedded()[:WATCHED], apart[:WATCHED], 1)
        error = max(
            error, np.sqrt(np.maximum(np.einsum("nj,jl,nl->n", by_row, network.gram, by_row), 0)).max()
        )
    return {"mass": np.array(mass), "off_one_hot": off, "attended_error": error}


def of_neurons(
    settings, network: Network, nu: np.ndarray, tables: Coefficients, test: Sequences
) -> dict[str, Any]:
    """In units of epsilon: how far responses are from nu, the part of a neuron's response that its own place
    makes, and attention's part."""
    moved, own, attended, flips = 0.0, [], 0.0, []
    for query in range(test.labels.shape[1]):
        seen, _, looked = network.respond(tables, test, query)
        row = 2 * query + test.bits[:, network.first + query]
        mine, first = tables.W1.T[row], nu.T[row]
        moved, attended = max(moved, abs(seen - first).max()), max(attended, abs(seen - mine).max())
        own += [(mine * np.sign(first)).min(), (mine * np.sign(first)).max()]
        flips.append((np.sign(seen) != np.sign(first)).mean())
    epsilon = settings.epsilon
    return {
        "moved": moved / epsilon,
        "own_part": np.array([min(own), max(own)]) / epsilon,
        "attended_part": attended / epsilon,
        "flips": np.mean(flips),
    }


def of_tables(settings, network: Network, nu: np.ndarray, tables: Coefficients) -> dict[str, Any]:
    """Scores and kappa on the secret and elsewhere, for the bits that occur; kappa in units of eta0 / (32 m
    i)."""
    queries, i = len(network.task.asked), lemmas.one_based(network)
    unit = settings.rates()[0] / (32 * settings.neurons * i)
    Delta = lemmas.response(nu, network.signs, tables) / unit[:, None, None]
    on, off, off_kappa, errors = (np.zeros(queries) for _ in range(4))
    on_kappa = np.zeros((queries, 2))
    turn = np.array([1.0, -1.0])
    for q in range(queries):
        bits = [0] if q == 0 else [0, 1]
        columns, visible = [2 * q + b for b in bits], 2 * (network.first + q + 1)
        looks = np.flatnonzero(network.task.depends_on(network.secret)[:, q])
        secret = np.isin(np.arange(len(network.gram)) // 2, looks)
        rest = ~secret & (np.arange(len(secret)) < visible)
        on[q], off[q] = tables.A[secret][:, columns].min(), abs(tables.A[rest][:, columns]).max()
        wanted = np.outer(np.ones(len(bits)) if q else [2.0], np.tile(turn, len(looks))) * (
            turn[bits][:, None] if q else 1
        )
        found = Delta[q][bits][:, secret]
        on_kappa[q] = (found / wanted).min(), (found / wanted).max()
        off_kappa[q] = abs(Delta[q][bits][:, rest & (np.arange(len(secret)) // 2 != network.secret[0])]).max()
        errors[q] = max(abs(found - wanted).max(), abs(Delta[q][bits][:, rest]).max()) * unit[q]
    common = (
        Delta[1:, :, 2 * network.secret[0] : 2 * network.secret[0] + 2] * turn if queries > 1 else np.zeros(1)
    )
    return {
        "on_score": on,
        "off_score": off,
        "on_kappa": on_kappa,
        "off_kappa": off_kappa,
        "kappa_error": errors.max(),
        "first_kappa": common.mean(),
    }


def of_gradient(
    network: Network, nu: np.ndarray, gradient: Coefficients, batch: Sequences, B: int
) -> dict[str, Any]:
    """The gradient of the step just made against the bounds, and the statistics of its batch."""
    n, m = network.task.bits, len(network.signs) // 2
    rows = network.gram[network.query_rows, network.query_rows]
    onto = gradient.W2 @ network.gram
    secret = np.isin(np.arange(2 * n) // 2, network.secret)
    chained = network.task.chain_of_thought
    third = lemmas.third_gradient(network, nu) if chained else 0
    places = np.stack([2 * network.secret, 2 * network.secret + 1], 1)
    return {
        "over_bound": lemmas.over_bounds(network, nu, batch, B)
        if chained
        else np.full(len(lemmas.STATISTICS), np.nan),
        "over_lemma13": abs(gradient.W1 @ rows).max()
        / (sqrt(log(300 * n * B / lemmas.FAILURE)) / (m * sqrt(B))),
        "over_lemma15": abs(onto).max() / (3 / (2 * m * n)),
        "secret_gradient": sqrt((onto[:, : 2 * n][:, secret] ** 2).mean()),
        "other_gradient": sqrt((onto[:, : 2 * n][:, ~secret] ** 2).mean()),
        "third_error": abs(onto[:, places] - third).max() * 2 * m if chained else np.nan,
    }


def nothing() -> dict[str, Any]:
    """Before the first step there is no gradient to speak of."""
    names = ("over_lemma13", "over_lemma15", "secret_gradient", "other_gradient", "third_error")
    return {"over_bound": np.full(len(lemmas.STATISTICS), np.nan)} | {name: np.nan for name in names}
