"""The composition paper's model: a gradient step in blocks against the dense model in PyTorch, and gradients
by counting against automatic differentiation.

Same configuration on both sides: k = 16, N = 5, five layers, float32; stage 5 of the curriculum, layers 1 to
4 as Theorem 4 builds them, a tenth as sharp."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import torch

from benchmarks.timing import row, seconds
from stagewise import threads
from stagewise.models.attention_only import as_dense
from stagewise.models.blocks import embed
from stagewise.papers.composition import gradients
from stagewise.papers.composition.construction import theorem4
from stagewise.papers.composition.learning import begin, layer_names, losses
from stagewise.tasks.composition import Composition, doubled_hops

TASK, SEQUENCES, REPEATS, BETA0 = Composition(16, 5), 40, 5, 1.0


def rows() -> list[dict]:
    torch.set_num_threads(threads.of_xla())
    rng = np.random.default_rng(0)
    hidden, sigma = (
        TASK.draw_hidden(rng),
        np.argsort(rng.random((SEQUENCES, TASK.levels, TASK.symbols)), axis=-1),
    )
    built = [0.1 * matrix.astype(np.float32) for matrix in theorem4(hidden, sigma[:1]).scores]
    weights = begin(TASK, BETA0) | dict(zip(layer_names(TASK.depth), built[:-1]))
    ours, theirs = _blocks(weights, hidden, sigma), _dense(weights, hidden, sigma)
    np.testing.assert_allclose(ours(), theirs(), atol=1e-7)
    times = [min(seconds(each) for _ in range(REPEATS)) for each in (ours, theirs)]
    return [
        row(
            "composition: gradient step of stage 5, k = 16, in blocks, vs PyTorch eager, dense",
            "sequences/s",
            SEQUENCES / times[0],
            SEQUENCES / times[1],
        ),
        _counting(hidden, rng),
    ]


def _blocks(weights: dict, hidden: np.ndarray, sigma: np.ndarray):
    """The gradient of every key-query matrix by the loss of 16 hops; that of the last is returned."""
    slope = jax.jit(
        lambda layers, sigma: jax.grad(
            lambda layers: losses(weights | layers, TASK, jnp.asarray(hidden), sigma, None)[-1]
        )(layers)
    )
    layers, shown = {name: jnp.asarray(weights[name]) for name in layer_names(TASK.depth)}, jnp.asarray(sigma)
    return lambda: np.asarray(jax.block_until_ready(slope(layers, shown))[layer_names(TASK.depth)[-1]])


def _dense(weights: dict, hidden: np.ndarray, sigma: np.ndarray):
    """Definition 3 as one would write it: d = 560, batched over sequences."""
    L, T = TASK.depth, TASK.tokens
    scores = [weights[name] for name in layer_names(L)]
    first = embed(sigma)
    X0 = torch.tensor(np.stack([as_dense(one, scores)[0] for one in first]))
    _, key_query, output_value = as_dense(first[0], scores)
    key_query = [torch.tensor(matrix, requires_grad=True) for matrix in key_query]
    output_value = [torch.tensor(matrix, dtype=torch.float32) for matrix in output_value]
    readout = torch.tensor(weights["readouts"][-1].reshape((L + 2) * T, -1))
    labels = torch.tensor(doubled_hops(hidden, sigma)[-1].reshape(-1))

    def step() -> np.ndarray:
        X = X0
        for W_KQ, W_OV in zip(key_query, output_value):
            X = X + W_OV @ X @ torch.softmax(X.transpose(1, 2) @ W_KQ @ X, dim=1)
        logits = (X.transpose(1, 2) @ readout).reshape(-1, TASK.symbols)
        for matrix in key_query:
            matrix.grad = None
        torch.nn.functional.cross_entropy(logits, labels).backward()
        return key_query[-1].grad[: (L + 1) * T, : (L + 1) * T].numpy()

    return step


def _counting(hidden: np.ndarray, rng: np.random.Generator) -> dict:
    """One-query samples a second: counting, and automatic differentiation at the same point, with ideal
    layers below the last."""
    L, T, many = TASK.depth, TASK.tokens, 5000
    sigma, queries = (
        np.argsort(rng.random((many, TASK.levels, TASK.symbols)), axis=-1),
        rng.integers(T, size=many),
    )
    scores = [matrix.astype(np.float32) for matrix in theorem4(hidden, sigma[:1]).scores]
    weights = begin(TASK, BETA0) | dict(zip(layer_names(L), scores[:-1]))
    name = layer_names(L)[-1]
    slope = jax.jit(
        lambda matrix, sigma, queries: jax.grad(
            lambda matrix: losses(weights | {name: matrix}, TASK, jnp.asarray(hidden), sigma, queries)[-1]
        )(matrix)
    )
    few = jnp.asarray(sigma[:SEQUENCES]), jnp.asarray(queries[:SEQUENCES])
    auto = -np.asarray(slope(weights[name], *few)) * T / BETA0
    np.testing.assert_allclose(
        gradients.counted(hidden, sigma[:SEQUENCES], L, queries[:SEQUENCES]).reshape(auto.shape),
        auto,
        atol=1e-5,
    )
    began = time.perf_counter()
    gradients.counted(hidden, sigma, L, queries)
    counted = many / (time.perf_counter() - began)
    peer = SEQUENCES / min(
        seconds(lambda: jax.block_until_ready(slope(weights[name], *few))) for _ in range(REPEATS)
    )
    return row(
        "composition: one-query gradients of stage 5 by counting, vs automatic differentiation",
        "samples/s",
        counted,
        peer,
    )
