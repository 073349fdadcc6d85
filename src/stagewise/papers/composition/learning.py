"""Algorithms 1 and 2: a handful of large gradient steps on the attention-only model.

The curriculum takes two steps for every hop: key-query matrices on that hop's loss, then readouts at the new
matrices. The mixture steps on the sum of all losses, L times on key-query matrices and once on readouts. One
rule does both: what a step trains on, and what it moves, are constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from stagewise.models.attention_only import read_out, stream
from stagewise.models.blocks import embed, ideal_blocks
from stagewise.tasks.composition import Composition, doubled_hops, right_keys
from stagewise.training.loop import Rule


def layer_names(depth: int) -> list[str]:
    return [f"layer{layer + 1}" for layer in range(depth)]


def begin(task: Composition, beta0: float, dtype: type | np.dtype = np.float32) -> dict[str, np.ndarray]:
    """Key-query matrices at zero; readout l is beta0 (1_k (x) I) on the block that layer l writes. [task,
    block, width, symbol]"""
    L, T = task.depth, task.tokens
    own = np.eye(L, L + 2, 2)[:, :, None, None]
    readouts = beta0 * own * np.kron(np.ones((task.levels, 1)), np.eye(task.symbols))
    zeros = {name: np.zeros(((layer + 2) * T,) * 2, dtype) for layer, name in enumerate(layer_names(L))}
    return zeros | {"readouts": readouts.astype(dtype)}


def plan(depth: int, algorithm: str) -> dict[str, np.ndarray]:
    """For every gradient step: the weight of each hop's loss, and whether it moves key-query matrices (or
    readouts). All algorithms' plans are as long, so that one compilation serves them; the mixture's ends
    earlier."""
    steps = np.arange(2 * depth)
    if algorithm == "curriculum":
        return {"losses": np.eye(depth, dtype=np.float32)[steps // 2], "moves_attention": steps % 2 == 0}
    which = np.ones(depth) if algorithm == "mixture" else np.eye(depth)[-1]
    return {"losses": np.tile(which, (2 * depth, 1)).astype(np.float32), "moves_attention": steps < depth}


def losses(
    weights: dict,
    task: Composition,
    hidden: Int[Array, "level symbol"],
    sigma: Int[Array, "batch level symbol"],
    queries: Int[Array, " batch"] | None,
) -> Float[Array, " hop"]:
    """Cross-entropy of every doubled hop, at one query a sequence or at all that are asked (equation 2)."""
    L, T = task.depth, task.tokens
    blocks, _ = stream(embed(sigma, weights["readouts"].dtype), [weights[name] for name in layer_names(L)])
    labels = jnp.stack(doubled_hops(hidden, sigma), -1).reshape(len(sigma), T, L)
    if queries is None:
        blocks, labels = blocks[:, task.asks()], labels[:, task.asks()]
    else:
        rows = jnp.arange(len(sigma))
        blocks, labels = blocks[rows, queries], labels[rows, queries]
    entropy = optax.softmax_cross_entropy_with_integer_labels(read_out(blocks, weights["readouts"]), labels)
    return entropy.reshape(-1, L).mean(0)


@dataclass(frozen=True)
class Steps(Rule):
    """One gradient step on so many chunks of sequences. Numbers say how many chunks, and whether steps draw
    fresh ones, and hops share them (equation 3)."""

    task: Composition
    chunk: int
    queries: Literal["one", "all"]
    readout: Literal["own", "all"]
    tested: int

    one_by_one = True
    records_per_chunk = 1
    most_lanes = 4

    def step(self, weights, constants, key: Key[Array, ""]):
        which, moves_attention = (
            constants["losses"][weights["count"]],
            constants["moves_attention"][weights["count"]],
        )
        key = jax.random.wrap_key_data(
            jnp.where(constants["fresh"], jax.random.key_data(key), constants["sample"])
        )
        layers, readouts = (
            {name: weights[name] for name in layer_names(self.task.depth)},
            {"readouts": weights["readouts"]},
        )

        slopes = self.gradients(layers, readouts, which, moves_attention, constants, key)
        moved = jax.tree.map(
            lambda weight, slope: weight - constants["rate"] * slope, layers | readouts, slopes
        )
        gradient = jnp.stack([jnp.abs(slopes[name]).max() for name in layers])
        return moved | {
            "count": weights["count"] + 1,
            "gradient": jnp.where(moves_attention, gradient, weights["gradient"]),
        }

    def trained_blocks(self) -> np.ndarray:
        """Of a readout either its own block learns, as in the paper's formula, or all do, as in Algorithm
        1."""
        L = self.task.depth
        return (np.eye(L, L + 2, 2) if self.readout == "own" else np.ones((L, L + 2))).astype(np.float32)[
            :, :, None, None
        ]

    def gradients(
        self,
        layers: dict,
        readouts: dict,
        which: Float[Array, " hop"],
        moves_attention: Bool[Array, ""],
        constants,
        key: Key[Array, ""],
    ) -> dict:
        """The gradient of the mean loss over all samples, with respect to the layers or the readouts; what
        does not move has none."""

        def loss(of, rest, weighed, sigma, queries):
            return losses(rest | of, self.task, constants["hidden"], sigma, queries) @ weighed

        L, shared = self.task.depth, constants["shared"]
        # One set of sequences for all hops, or one for each.
        sets, weighed = (jnp.where(shared, 1, L), jnp.where(shared, which, jnp.diag(which)))
        still = jax.tree.map(jnp.zeros_like, layers | readouts)

        def add(part, total):
            of_sigma, of_query = jax.random.split(jax.random.fold_in(key, part))
            sigma = self.task.sample(of_sigma, self.chunk)
            queries = (
                None
                if self.queries == "all"
                else jax.random.randint(of_query, (self.chunk,), 0, int(self.task.asks().sum()))
            )
            drawn = weighed[part % sets], sigma, queries
            slopes = jax.lax.cond(
                moves_attention,
                lambda: still | jax.grad(loss)(layers, readouts, *drawn),
                lambda: (
                    still
                    | {
                        "readouts": jax.grad(loss)(readouts, layers, *drawn)["readouts"]
                        * self.trained_blocks()
                    }
                ),
            )
            return jax.tree.map(jnp.add, total, slopes)

        total = jax.lax.fori_loop(0, constants["chunks"] * sets, add, still)
        return jax.tree.map(lambda each: each / constants["chunks"].astype(each.dtype), total)

    def measure(self, weights, constants, key: Key[Array, ""]):
        task, L, T = self.task, self.task.depth, self.task.tokens
        hidden, asked = constants["hidden"], self.task.asks()
        parts = max(1, self.tested // 50)

        def look(key):
            sigma = task.sample(key, -(-self.tested // parts))
            hops = doubled_hops(hidden, sigma)
            blocks, patterns = stream(
                embed(jnp.concatenate([sigma, example(task)[None]])),
                [weights[name] for name in layer_names(L)],
            )
            blocks, patterns, shown = (
                blocks[:-1],
                [pattern[:-1] for pattern in patterns],
                [pattern[-1] for pattern in patterns],
            )
            logits, labels = (
                read_out(blocks, weights["readouts"])[:, asked],
                jnp.stack(hops, -1).reshape(-1, T, L)[:, asked],
            )
            off = jnp.abs(jax.nn.softmax(logits, -1) - jax.nn.one_hot(labels, task.symbols)).max((0, 1, 3))
            entropy = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean((0, 1))
            seen = [
                jnp.take_along_axis(pattern, goal[..., None], -1)[..., 0]
                for pattern, goal in zip(patterns, right_keys(hidden, hops))
            ]
            away = jnp.abs(blocks - ideal_blocks(hops, sigma)).max((0, 1, 3))[2:]
            return {
                "loss": entropy,
                "error": off,
                "least_attention": jnp.stack([s.min() for s in seen]),
                "away": away,
                "pattern": jnp.stack(shown),
            }

        found = jax.lax.map(look, jax.random.split(key, parts))
        joined = {"loss": jnp.mean, "error": jnp.max, "least_attention": jnp.min, "away": jnp.max}
        return {name: how(found[name], axis=0) for name, how in joined.items()} | {
            "gradient": weights["gradient"],
            "pattern": found["pattern"][0],
        }

    def final(self, state):
        return {
            "weights": {name: state["weights"][name] for name in (*layer_names(self.task.depth), "readouts")}
        }

    @property
    def dims(self):
        by_hop = {name: ("hops",) for name in ("loss", "error")}
        return (
            by_hop
            | {name: ("layer",) for name in ("least_attention", "away", "gradient")}
            | {"pattern": ("layer", "query", "key")}
        )

    @property
    def coords(self):
        return {"hops": np.array(self.task.doublings), "layer": np.arange(1, self.task.depth + 1)}


def example(task: Composition) -> Int[np.ndarray, "level symbol"]:
    """The sequence on which attention is shown."""
    return task.draw(np.random.default_rng(8), 1)[0].astype(np.int32)
