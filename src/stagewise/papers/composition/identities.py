"""Closed forms beside automatic differentiation over all sequences, and what single samples do: one set of
numbers for each draw of hidden permutations."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from stagewise.models.attention_only import AnyArray, Scores, as_dense, dense, stream
from stagewise.models.blocks import embed, ideal_blocks
from stagewise.papers.composition import gradients
from stagewise.papers.composition.construction import SHARP, theorem4
from stagewise.papers.composition.learning import begin, layer_names, losses
from stagewise.tasks.composition import Composition, doubled_hops, right_keys
from stagewise.training.program import INITIAL, generator

PERTURBED = (1e-3, 1e-2, 1e-1)
LEADS = (6.0, 9.0, 12.0, 15.0)  # of the right key's score, in layers that are trained
SIZES = (64, 256, 1024, 4096)
FEW = (8, 32, 128, 512)  # samples, where each is differentiated
DRAWS = 100
DIMS = {
    "population": ("layer",),
    "population_without_fixed_points": ("layer",),
    "population_a_level_on": ("layer",),
    "counted": ("layer",),
    "counted_uncentred": ("layer",),
    "readout": ("layer",),
    "readout_uncentred": ("layer",),
    "perturbed": ("layer", "perturbation"),
    "block_form": (),
    "block_form_other_copies": (),
    "trained": ("lead",),
    "in_training": ("lead",),
    "unfocused": ("lead",),
    "hardest_noise": ("few",),
    "easiest_noise": ("few",),
    "hardest_elsewhere": (),
    "own_loss": (),
    "later_losses": (),
    "later_losses_mean": (),
    "untrained_layers": (),
    "value": (),
    "value_by_label": (),
    "value_one": ("size",),
    "value_all": ("size",),
}


def labels_along(settings) -> tuple:
    return (
        ("layer", tuple(range(1, settings.task.depth + 1))),
        ("perturbation", PERTURBED),
        ("size", SIZES),
        ("few", FEW),
        ("lead", LEADS),
    )


def measure(settings, seed: int) -> dict[str, AnyArray | float]:
    task: Composition = settings.task
    rng, everything = generator(seed, INITIAL), task.population()
    hidden = task.draw_hidden(rng)
    hidden[0] = np.arange(task.symbols)  # so that terms in the number of fixed points show
    layers = range(1, task.depth + 1)
    by_layer = [of_layer(task, hidden, everything, layer, settings.beta0, rng) for layer in layers]
    found = {name: np.stack([one[name] for one in by_layer]) for name in by_layer[0]}
    found |= (
        single_samples(task, hidden, everything, settings.beta0)
        | trained_layers(task, hidden, everything, settings.beta0, rng)
        | hardest_alone(task, hidden, settings.beta0, rng)
    )
    return found | value_matrix(task, hidden, everything, rng) | block_form(task, everything, rng)


def of_layer(
    task: Composition, hidden, sigma, layer: int, beta0: float, rng: np.random.Generator
) -> dict[str, AnyArray | float]:
    """Lemmas 15, 19 and 24 (the population's gradient), 18, 23 and 28 (the readout's), 20 and 25 (a perturbed
    input)."""
    hops = doubled_hops(hidden, sigma)
    first = ideal_blocks(hops[: layer - 1], sigma, np.float64)
    labels = hops[layer - 1].reshape(len(sigma), task.tokens)
    auto = key_query_gradient(first, labels, task, beta0)
    closed = gradients.population(hidden, layer)
    # No fixed points.
    generic = np.array([np.roll(np.arange(task.symbols), 1)] * task.levels) if layer != 1 else hidden
    without = gradients.population(generic, layer)
    if layer == 1:
        without[1, :, 1, :] = 0
    shift = rng.uniform(-1, 1, first.shape[1:])  # the same for all sequences, so that it does not average out
    shifted = [key_query_gradient(first + size * shift, labels, task, beta0) for size in PERTURBED]
    k, N = task.levels, task.symbols
    ideal = ideal_blocks([hops[layer - 1]], sigma, np.float64)[:, :, 2]
    slope = readout_gradient(ideal, labels, beta0 * np.kron(np.ones((k, 1)), np.eye(N)))
    size = 1 / (k * (np.exp(beta0) + N - 1))
    expected, uncentred = (-size * np.kron(np.ones((k, 1)), each) for each in (np.eye(N) - 1 / N, np.eye(N)))
    return {
        "population": np.abs(auto - closed).max(),
        "population_without_fixed_points": np.abs(auto - without).max(),
        "population_a_level_on": np.abs(auto - np.roll(closed, N, axis=1)).max(),
        "counted": np.abs(auto - gradients.counted(hidden, sigma, layer)).max(),
        "counted_uncentred": np.abs(auto - gradients.counted(hidden, sigma, layer, centred=False)).max(),
        "perturbed": np.array([np.abs(each - auto).max() for each in shifted]),
        "readout": np.abs(slope - expected).max(),
        "readout_uncentred": np.abs(slope - uncentred).max(),
    }


def key_query_gradient(
    first: Float[np.ndarray, "batch token blocks width"],
    labels: Int[np.ndarray, "batch token"],
    task: Composition,
    beta0: float,
) -> np.ndarray:
    """g of a layer at zero, [key block, width, query block, width], by automatic differentiation."""
    blocks, T = first.shape[2:]
    slope = _key_query_slope(
        np.zeros((blocks * T, blocks * T)),
        first,
        labels,
        np.kron(np.ones((task.levels, 1)), np.eye(task.symbols)),
        beta0,
    )
    return -np.asarray(slope).reshape(blocks, T, blocks, T) * task.tokens / beta0


@jax.jit
def _key_query_slope(matrix, first, labels, readout, beta0):
    def loss(matrix):
        blocks, _ = stream(first, [matrix])
        return _entropy(blocks[:, :, -1] @ (beta0 * readout), labels).mean()

    return jax.grad(loss)(matrix)


@jax.jit
def readout_gradient(
    written: Float[Array, "batch token width"],
    labels: Int[Array, "batch token"],
    readout: Float[Array, "width symbol"],
) -> Float[Array, "width symbol"]:
    return jax.grad(lambda readout: _entropy(written @ readout, labels).mean())(readout)


def _entropy(logits: Float[Array, "*n symbol"], labels: Int[Array, "*n"]) -> Float[Array, "*n"]:
    return -jnp.take_along_axis(jax.nn.log_softmax(logits, -1), labels[..., None], -1)[..., 0]


def single_samples(task: Composition, hidden, sigma, beta0: float) -> dict[str, AnyArray | float]:
    """Lemma 37 at the start: what the loss of two hops does to the first layer, on one sample and averaged
    over its symbols, over what the loss of one hop does; and what any loss does to the layers after the
    first."""
    weights = begin(task, beta0, np.float64)
    one, names = sigma[len(sigma) // 3][None], layer_names(task.depth)

    def slopes(hop: int, query: int) -> dict:
        return jax.tree.map(np.asarray, _slopes(task, weights, hidden, one, hop, np.array([query])))

    signal = np.abs(slopes(0, 0)["layer1"]).max()
    own = max(np.abs(slopes(0, query)["layer1"]).max() for query in range(1, task.symbols))
    later = [slopes(1, query)["layer1"] for query in range(task.symbols)]
    untrained = [np.abs(slopes(hop, 0)[name]).max() for hop in range(task.depth) for name in names[1:]]
    return {
        "own_loss": own / signal,
        "later_losses": max(np.abs(each).max() for each in later) / signal,
        "later_losses_mean": np.abs(sum(later) / len(later)).max() / signal,
        "untrained_layers": np.max(np.stack(untrained)) / signal,
    }


def trained_layers(
    task: Composition, hidden, sigma, beta0: float, rng: np.random.Generator
) -> dict[str, AnyArray | float]:
    """Lemma 29: the last stage's loss on single samples, when all layers before the last have Theorem 4's
    weights at some lead. By lead, the largest gradient over samples of the layers that are trained and of the
    one in training, and eps = 2 (1 - least attention on the right key)."""
    scores, names = theorem4(hidden, sigma[:1]).scores[:-1], layer_names(task.depth)
    some = min(8, len(sigma))
    chosen, queries = sigma[rng.choice(len(sigma), some, replace=False)], rng.integers(task.tokens, size=some)
    goals = right_keys(hidden, doubled_hops(hidden, chosen))
    rows = []
    for lead in LEADS:
        layers = [matrix * (lead / SHARP) for matrix in scores]
        weights = begin(task, beta0, np.float64) | dict(zip(names, layers))
        slopes = [
            _slopes(task, weights, hidden, one[None], task.depth - 1, query[None])
            for one, query in zip(chosen, queries)
        ]
        largest = [max(float(np.abs(slope[name]).max()) for slope in slopes) for name in names]
        _, patterns = stream(embed(chosen, np.float64), layers)
        least = min(
            float(np.take_along_axis(np.asarray(pattern), goal[..., None], -1).min())
            for pattern, goal in zip(patterns, goals)
        )
        rows.append((max(largest[:-1]), largest[-1], 2 * (1 - least)))
    return dict(zip(("trained", "in_training", "unfocused"), np.array(rows).T))


def hardest_alone(
    task: Composition, hidden, beta0: float, rng: np.random.Generator
) -> dict[str, AnyArray | float]:
    """At the start, on random samples of one query each: the size of layer 1's gradient by the loss of the
    most hops, and of one hop, by number of samples (root mean square over draws); and the largest gradient of
    the other layers by the former."""
    weights, total = begin(task, beta0, np.float64), 4 * FEW[-1]
    sigma, queries = task.draw(rng, total), rng.integers(task.tokens, size=total)

    def norms(hop: int) -> tuple[np.ndarray, float]:
        by_sample = _slopes_by_sample(task, weights, hidden, sigma, hop, queries)
        first = np.asarray(by_sample["layer1"]).reshape(total, -1)
        sizes = [
            np.sqrt(np.mean(np.sum(first.reshape(-1, many, first.shape[1]).mean(1) ** 2, axis=1)))
            for many in FEW
        ]
        return np.array(sizes), max(
            float(np.abs(slope).max()) for name, slope in by_sample.items() if name != "layer1"
        )

    (hardest, elsewhere), (easiest, _) = norms(task.depth - 1), norms(0)
    return {"hardest_noise": hardest, "easiest_noise": easiest, "hardest_elsewhere": elsewhere}


@partial(jax.jit, static_argnums=0)
def _slopes_by_sample(task: Composition, weights: dict, hidden, sigma, hop, queries) -> dict:
    return jax.lax.map(
        lambda one: _slopes(task, weights, hidden, one[0][None], hop, one[1][None]),
        (sigma, queries),
        batch_size=64,
    )


@partial(jax.jit, static_argnums=0)
def _slopes(task: Composition, weights: dict, hidden, sigma, hop, queries) -> dict:
    layers = {name: weights[name] for name in layer_names(task.depth)}
    return jax.grad(lambda layers: losses(weights | layers, task, hidden, sigma, queries)[hop])(layers)


def value_matrix(task: Composition, hidden, sigma, rng: np.random.Generator) -> dict[str, AnyArray | float]:
    """Appendix E: the size of the gradient of W_OV at zero, over all sequences, and over random ones with one
    query each or all."""
    d, T = task.tokens * (task.depth + 2), task.tokens
    readout = begin(task, 1.0, np.float64)["readouts"][0].reshape(d, -1)
    labels = doubled_hops(hidden, sigma)[0].reshape(len(sigma), T)
    X = np.pad(
        embed(sigma, np.float64).reshape(len(sigma), T, -1).swapaxes(1, 2), ((0, 0), (0, d - 2 * T), (0, 0))
    )

    def slope(weight: Float[np.ndarray, "sequence query"]) -> np.ndarray:
        return np.asarray(_value_slope(weight, X, labels, readout))

    # X 1 is the same for all sequences, so a sample's gradient depends on its label only, and that of many is
    # the mean over labels
    by_label = np.stack([slope((labels == label) / (labels == label).sum()) for label in range(task.symbols)])

    def drawn(size: int, queries: int) -> float:
        """Root mean square over draws of so many samples, with one query each or all."""
        shares = [
            np.bincount(_some(labels, size, queries, rng).ravel(), minlength=task.symbols) / (size * queries)
            for _ in range(DRAWS)
        ]
        return float(np.sqrt(np.mean([np.sum(np.tensordot(share, by_label, 1) ** 2) for share in shares])))

    one_draw = (
        rng.multinomial(SIZES[0], np.full(labels.size, 1 / labels.size)).reshape(labels.shape).astype(float)
    )
    share = np.array([one_draw[labels == label].sum() for label in range(task.symbols)]) / one_draw.sum()
    return {
        "value": float(np.linalg.norm(slope(np.ones(labels.shape)))),
        "value_one": np.array([drawn(size, 1) for size in SIZES]),
        "value_all": np.array([drawn(size, T) for size in SIZES]),
        "value_by_label": np.abs(slope(one_draw) - np.tensordot(share, by_label, 1)).max(),
    }


def _some(
    labels: Int[np.ndarray, "sequence token"], size: int, queries: int, rng: np.random.Generator
) -> np.ndarray:
    """Labels of random sequences, at one random token of each or at all."""
    rows = labels[rng.integers(len(labels), size=size)]
    return rows if queries > 1 else rows[np.arange(size), rng.integers(labels.shape[1], size=size)]


@jax.jit
def _value_slope(
    weight, X: Float[Array, "sequence d token"], labels, readout: Float[Array, "d symbol"]
) -> Float[Array, "d d"]:
    still = jnp.zeros((X.shape[1], X.shape[1]))

    def loss(W_OV):
        out = jax.vmap(lambda one: dense(one, [still], [W_OV]))(X)
        return (weight * _entropy(jnp.swapaxes(out, 1, 2) @ readout, labels)).sum() / weight.sum()

    return jax.grad(loss)(still)


def block_form(task: Composition, sigma, rng: np.random.Generator) -> dict[str, float]:
    """The stream of blocks against Definition 3 to the letter, at random weights: the largest difference. And
    if layers copied other blocks."""
    scores: Scores = [rng.standard_normal(((layer + 2) * task.tokens,) * 2) for layer in range(task.depth)]
    first = embed(sigma[:3], np.float64)
    literal = np.stack([dense(*as_dense(one, scores)).T for one in first])

    def apart(copied: list[int] | None) -> float:
        blocks, _ = stream(first, scores, copied)
        return float(np.abs(blocks.reshape(literal.shape) - literal).max())

    return {"block_form": apart(None), "block_form_other_copies": apart([1] * task.depth)}
