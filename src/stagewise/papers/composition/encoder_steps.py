"""Figure 3, right: a standard encoder learns hops by Adam, from a fixed set of sequences of shown symbols.

Either a token in front says how many hops are asked (as in the paper), or every number of hops has a readout
of its own (as in the theory). What is asked is a mixture of hops, the hardest alone, or one number of hops
after another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Key, UInt32

from stagewise.models.encoder import Encoder
from stagewise.models.sizes import Shape
from stagewise.tasks.composition import Composition, hop
from stagewise.training import adam
from stagewise.training.loop import Rule

TARGETS = (
    "own level, hidden",
    "next level, 1 hop",
    "next level, 1 hop hidden",
    "2 levels on, 2 hops",
    "2 levels on, 2 hops hidden",
    "hop token",
)
PROBED = (1, 2)


@dataclass(frozen=True)
class EncoderSteps(Rule):
    """Adam on batches from a pool. Sequence m of the pool, and how many hops it asks for, are a function of
    m, so that nothing is stored."""

    task: Composition
    hops: tuple[int, ...]
    shape: Shape
    form: Literal["token", "readouts"]
    batch: int
    pool: int
    tested: int
    gradient_clip: float
    solved: float

    stops = True
    one_by_one = True
    records_per_chunk = 4
    most_lanes = 8

    def encoder(self, weights: dict) -> Encoder:
        return Encoder.of(weights, self.shape.heads)

    def step(self, weights, constants, key: Key[Array, ""]):
        count = weights["adam"]["count"]
        asked = constants["asked"][
            jnp.minimum(
                count * len(constants["asked"]) // constants["steps"].astype(jnp.int32),
                len(constants["asked"]) - 1,
            )
        ]
        chosen = jax.random.randint(key, (self.batch,), 0, self.pool)
        sigma, which = jax.vmap(lambda m: self.member(constants, m, asked))(chosen)

        def loss(model: dict) -> Float[Array, ""]:
            logits = self.respond(self.encoder(model), sigma, which)
            return self.weigh(self.entropy(logits, constants, sigma, which), asked)

        rate = constants["rate"] * jnp.minimum(1, (count + 1) / constants["warm_up"])
        moved, state = adam.step(
            weights["model"], jax.grad(loss)(weights["model"]), weights["adam"], rate, self.gradient_clip
        )
        return {"model": moved, "adam": state}

    def member(self, constants, m: Int[Array, ""], asked: Float[Array, " hop"]):
        """Sequence m of the pool, and which number of hops it asks for, drawn by weight."""
        of_sigma, of_hop = _keys(constants["pool"], m)
        return self.task.sample(of_sigma, 1)[0], jax.random.categorical(of_hop, jnp.log(asked))

    def respond(
        self, model: Encoder, sigma: Int[Array, "batch level symbol"], which: Int[Array, " batch"]
    ) -> Float[Array, "batch token readout symbol"]:
        shown = sigma.reshape(len(sigma), -1)
        if self.form == "readouts":
            return model(shown)
        return model(self.with_token(shown, which))[:, 1:]

    def with_token(
        self, shown: Int[Array, "batch token"], which: Int[Array, " batch"]
    ) -> Int[Array, "batch places"]:
        return jnp.concatenate([self.task.symbols + which[:, None], shown], axis=1)

    def labels(self, constants, sigma: Int[Array, "batch level symbol"]) -> Int[Array, "batch token hop"]:
        return jnp.stack([hop(constants["hidden"], sigma, r) for r in self.hops], -1).reshape(
            len(sigma), self.task.tokens, len(self.hops)
        )

    def entropy(
        self,
        logits: Float[Array, "batch token readout symbol"],
        constants,
        sigma,
        which: Int[Array, " batch"],
    ) -> Float[Array, " readout"]:
        labels = self.labels(constants, sigma)
        if self.form == "token":
            labels = jnp.take_along_axis(labels, which[:, None, None], axis=-1)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean((0, 1))

    def weigh(self, entropy: Float[Array, " readout"], asked: Float[Array, " hop"]) -> Float[Array, ""]:
        return entropy @ asked if self.form == "readouts" else entropy[0]

    def measure(self, weights, constants, key: Key[Array, ""]):
        model, sigma = self.encoder(weights["model"]), constants["tested"]
        labels = self.labels(constants, sigma)
        if self.form == "readouts":
            logits = jnp.moveaxis(self.respond(model, sigma, jnp.zeros(self.tested, int)), 2, 0)
        else:
            every = [
                self.respond(model, sigma, jnp.full(self.tested, n))[:, :, 0] for n in range(len(self.hops))
            ]
            logits = jnp.stack(every)
        labels = jnp.moveaxis(labels, 2, 0)
        right = (jnp.argmax(logits, -1) == labels).mean((1, 2), dtype=jnp.float32)
        return {
            "accuracy": right,
            "loss": optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean((1, 2)),
        }

    def done(self, measured, constants):
        return measured["accuracy"][-1] >= self.solved

    def ends(self, weights, constants):
        """For every number of hops asked: where each layer looks, and which partial hops can be read off it
        by a linear map. With readouts the trunk is not told what is asked."""
        hops, hidden, sigma = len(self.hops), np.asarray(constants["hidden"]), np.asarray(constants["tested"])
        told = [
            self.inside(weights["model"], hidden, sigma, which)
            for which in range(hops if self.form == "token" else 1)
        ]
        return {name: np.stack([one[name] for one in told] * (hops // len(told))) for name in told[0]}

    def inside(
        self,
        weights: dict,
        hidden: Int[np.ndarray, "level symbol"],
        sigma: Int[np.ndarray, "batch level symbol"],
        which: int,
    ) -> dict[str, Float[np.ndarray, "layer _"]]:
        states, patterns = jax.tree.map(np.asarray, self.states(weights, sigma, which))
        ahead = 1 if self.form == "token" else 0
        goals = np.stack(self.goals(hidden, sigma), -1) + ahead  # [batch, token, target]
        seen = [
            np.take_along_axis(pattern[:, :, ahead:], goals[:, None], -1).mean((0, 2)).max(0)
            for pattern in patterns
        ]
        on_token = [pattern[:, :, 1:, 0].mean((0, 2)).max() if ahead else np.nan for pattern in patterns]
        looked = np.concatenate([np.stack(seen), np.stack(on_token)[:, None]], -1)
        return {
            "looked": looked,
            "probed": np.stack([self.probe(state[:, ahead:], hidden, sigma) for state in states]),
        }

    @partial(jax.jit, static_argnums=0)
    def states(
        self, weights: dict, sigma: Int[Array, "batch level symbol"], which: Int[Array, ""]
    ) -> tuple[list[Array], list[Array]]:
        """What passes through the trunk, and the attention of every layer."""
        shown = sigma.reshape(len(sigma), -1)
        return self.encoder(weights).trunk.states(
            self.with_token(shown, jnp.full(len(sigma), which)) if self.form == "token" else shown
        )

    def goals(
        self, hidden: Int[np.ndarray, "level symbol"], sigma: Int[np.ndarray, "batch level symbol"]
    ) -> list[Int[np.ndarray, "batch token"]]:
        """The tokens that a token may need to look at: where the hidden permutation leads, then where hops
        lead, before and after the next hidden one."""
        k, N = self.task.levels, self.task.symbols
        level = np.arange(k)[:, None]

        def token(symbols, on):
            return ((level + on) % k * N + symbols).reshape(len(sigma), k * N)

        found = [token(np.broadcast_to(hidden, sigma.shape), 0)]
        for r in PROBED:
            reached = hop(hidden, sigma, r)
            then = np.roll(hidden, -r, axis=0)
            found += [
                token(reached, r),
                token(np.take_along_axis(np.broadcast_to(then, reached.shape), reached, -1), r),
            ]
        return found

    def probe(
        self,
        state: Float[np.ndarray, "batch token D"],
        hidden: Int[np.ndarray, "level symbol"],
        sigma: Int[np.ndarray, "batch level symbol"],
    ) -> Float[np.ndarray, " hop"]:
        """Accuracy, on the second half of the sequences, of partial hops read off a layer by a linear map
        fitted on the first."""
        half = len(state) // 2
        x = np.concatenate([state, np.ones((*state.shape[:2], 1), state.dtype)], -1)
        found = []
        for r in PROBED:
            wanted = hop(hidden, sigma, r).reshape(len(sigma), -1)
            rows, aims = (
                x[:half].reshape(-1, x.shape[-1]),
                np.eye(self.task.symbols, dtype=x.dtype)[wanted[:half].reshape(-1)],
            )
            fitted = np.linalg.solve(rows.T @ rows + 1e-3 * np.eye(x.shape[-1], dtype=x.dtype), rows.T @ aims)
            found.append((np.argmax(x[half:] @ fitted, -1) == wanted[half:]).mean())
        return np.stack(found)

    def final(self, state):
        return {"weights": state["weights"]["model"]}

    @property
    def dims(self):
        return {
            "accuracy": ("hops",),
            "loss": ("hops",),
            "looked": ("hops", "layer", "target"),
            "probed": ("hops", "layer", "partial"),
        }

    @property
    def coords(self):
        return {
            "hops": np.array(self.hops),
            "layer": np.arange(1, self.shape.layers + 1),
            "target": np.array(TARGETS),
            "partial": np.array(PROBED),
        }


def _keys(pool: UInt32[Array, "2"], m: Int[Array, ""]) -> tuple[Key[Array, ""], Key[Array, ""]]:
    """Of member m of a pool: the key of its sequence, and that of what it asks for."""
    of_sigma, of_hop = jax.random.split(jax.random.fold_in(jax.random.wrap_key_data(pool), m))
    return of_sigma, of_hop


@partial(jax.jit, static_argnums=(0, 2))
def pooled(
    task: Composition, pool: UInt32[Array | np.ndarray, "2"], size: int
) -> Int[Array, "size level symbol"]:
    """All sequences of a pool."""
    return jax.lax.map(
        lambda m: task.sample(_keys(cast(Array, pool), m)[0], 1)[0],
        jnp.arange(size),
        batch_size=min(size, 10_000),
    )
