"""How a GPT learns parity: Adam on batches of sequences, with accuracy, losses and attention measured on the
way.

The secret is a table of marked bits, a number of the lane and not of the program: every secret, size of
secret and kind of answer (with a chain of thought or without) that fits into the same sequence shares one
compilation. A task with fewer answers than the program has is padded with answers that carry no weight; no
earlier place sees them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, UInt8

from stagewise.models.answers import answers, answers_with_dropout, patterns
from stagewise.models.gpt import GPT, dropout
from stagewise.models.sizes import Shape
from stagewise.probes.entropy import entropies
from stagewise.tasks.parity import Batch, spell
from stagewise.training import adam
from stagewise.training.loop import Rule

WATCHED = 64  # validation inputs on which attention is measured
PLACES = ("all", "asked", "asked, mean")
"""Over which places the entropy is taken: its minimum over all of a sequence (the paper's), its minimum over
those that the loss reads, and its mean over those."""
BELOW_ONE = 1e-6


class Text(NamedTuple):
    """What sequences a lane is trained on: which bits each answer adds up, which it has to look at, and which
    answers count."""

    sums: Int[Array, "bits answers"]
    looks: Int[Array, "bits answers"]
    counts: Int[Array, " answers"]


@dataclass(frozen=True)
class Learning(Rule):
    """Next-bit prediction at the answers. `pool` is how many training inputs are kept (0: random bits), used
    in reshuffled passes if `passes`, else drawn from. A lane is done at its `goal`, an exact match, which may
    be out of reach."""

    shape: Shape
    bits: int
    answers: int
    separated: bool
    batch: int
    gradient_clip: float
    dropout: float
    pool: int
    passes: bool
    validation: int

    stops = True
    one_by_one = True  # a step fills a core by itself, and a lane that has solved its task costs nothing more

    most_lanes = 12  # a few at a time: chunks stay short, and with them the wait for a checkpoint

    @property
    def records_per_chunk(self) -> int:
        """Fewer records for larger models, for the same reason."""
        work = self.batch * (self.answers + (self.shape.layers - 1) * self.bits) * self.shape.width**2
        return max(1, min(4, int(5e8 // work)))

    @property
    def first(self) -> int:
        """The first place asked."""
        return self.bits - 1 + self.separated

    def step(self, weights, constants, key: Key[Array, ""]):
        data_key, drop_key = jax.random.split(key)
        count = weights["adam"]["count"]
        inputs, order = self.draw(constants, weights["order"], count, data_key)
        text = self.text(constants, count)
        batch = spell(inputs, text.sums, self.separated)

        def loss(model: dict) -> Float[Array, ""]:
            return cross_entropy(
                self.respond(GPT(**model, heads=self.shape.heads), batch, drop_key), batch.labels, text.counts
            )

        gradients = jax.grad(loss)(weights["model"])
        rate = adam.linear_decay(constants["rate"], count, constants["decay_steps"])
        moved, state = adam.step(weights["model"], gradients, weights["adam"], rate, self.gradient_clip)
        return {"model": moved, "adam": state, "order": order}

    def respond(self, model: GPT, batch: Batch, drop_key: Key[Array, ""]) -> Float[Array, "batch answers 2"]:
        if self.dropout:
            return answers_with_dropout(model, batch.tokens, self.first, dropout(self.dropout, drop_key))
        return answers(model, batch.tokens, self.first)

    def draw(self, constants, order: Int[Array, " pool"], count: Int[Array, ""], key: Key[Array, ""]):
        """A batch of inputs, and the order of the present pass over the pool."""
        if not self.pool:
            return jax.random.bits(key, (self.batch, self.bits), jnp.uint8) & 1, order
        if not self.passes:
            chosen = jax.random.randint(key, (self.batch,), 0, self.pool)
            return unpacked(constants["pool"][chosen], self.bits), order
        batches = self.pool // self.batch
        order = jax.lax.cond(count % batches == 0, lambda: jax.random.permutation(key, order), lambda: order)
        chosen = jax.lax.dynamic_slice_in_dim(order, count % batches * self.batch, self.batch)
        return unpacked(constants["pool"][chosen], self.bits), order

    def text(self, constants, count: Int[Array, ""]) -> Text:
        """The text of a step: another up to step `switch`."""
        late = count >= constants["switch"]
        return Text(
            **jax.tree.map(
                lambda early, now: jnp.where(late, now, early), constants["first_text"], constants["text"]
            )
        )

    def measure(self, weights, constants, key: Key[Array, ""]):
        model, text = GPT(**weights["model"], heads=self.shape.heads), Text(**constants["text"])
        validation = unpacked(constants["validation"], self.bits)
        loss, accuracy = self.judge(model, text, validation)
        found = {"loss": loss, "accuracy": accuracy} | self.watch(model, text, validation[:WATCHED])
        if self.passes:
            seen = unpacked(constants["pool"][: len(validation)], self.bits)
            found["training_loss"], found["training_accuracy"] = self.judge(model, text, seen)
        return found

    def judge(
        self, model: GPT, text: Text, inputs: UInt8[Array, "batch bits"]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Loss, and the share of sequences with every answer right."""
        batch = spell(inputs, text.sums, self.separated)
        logits = answers(model, batch.tokens, self.first)
        right = (logits[..., 1] > logits[..., 0]) == batch.labels.astype(bool)
        return cross_entropy(logits, batch.labels, text.counts), jnp.all(
            right | (text.counts == 0), axis=1
        ).mean(dtype=jnp.float32)

    def watch(self, model: GPT, text: Text, inputs: UInt8[Array, "batch bits"]) -> dict[str, Array]:
        """Attention at every layer and head: its entropy, its mass on the bits that an answer needs, how
        often the place it looks at most is one of them, and how far it is from uniform on them at the worst;
        and where answers look, mean over heads."""
        tokens = spell(inputs, text.sums, self.separated).tokens
        pattern, place = patterns(model, tokens), jnp.arange(tokens.shape[1])
        entropy, there = entropies(pattern, jnp), (place < self.first + text.counts.sum())[1:]
        asked = there & (place >= self.first)[1:]
        smallest = [jnp.where(where, entropy, jnp.inf).min(-1) for where in (there, asked)]
        mean = jnp.where(asked, entropy, 0).sum(-1) / asked.sum()

        at_answers = pattern[..., self.first :, :]  # [input, layer, head, answer, place]
        looks = jnp.pad(text.looks.T, ((0, 0), (0, len(place) - self.bits))).astype(pattern.dtype)
        needed = looks.sum(1)
        counts = text.counts * (needed > 0)
        hit = (looks * (jnp.arange(len(place)) == at_answers.argmax(-1)[..., None])).sum(-1)
        off = jnp.abs(at_answers - looks / jnp.maximum(needed, 1)[:, None]).max(-1)
        return {
            "entropy": jnp.stack([*smallest, mean], -1).mean(0),
            "mass": (at_answers * looks).sum(-1).mean(0),
            "hits": ((hit * counts).sum(-1) / counts.sum()).mean(0),
            "off_one_hot": (off * counts).max((0, -1)),
            "looked": at_answers[..., : self.bits].mean((0, 1, 2)),
        }

    @partial(jax.jit, static_argnums=0)
    def ends(self, weights, constants):
        model, text = GPT(**weights["model"], heads=self.shape.heads), Text(**constants["text"])
        tokens = spell(
            unpacked(constants["validation"], self.bits)[:WATCHED], text.sums, self.separated
        ).tokens
        return {
            "looked_at": patterns(model, tokens)[..., self.first :, : self.bits].mean(0),
            "secret_bits": text.looks,
        }

    def final(self, state):
        return {"weights": state["weights"]["model"], "text": state["constants"]["text"]}

    def done(self, measured, constants):
        return measured["accuracy"] >= constants["goal"] - BELOW_ONE

    @property
    def dims(self):
        seen = ("layer", "head")
        passes = {"training_loss": (), "training_accuracy": ()} if self.passes else {}
        return {
            "loss": (),
            "accuracy": (),
            "entropy": (*seen, "places"),
            "mass": (*seen, "answer"),
            "hits": seen,
            "off_one_hot": seen,
            "looked": ("answer", "bit"),
            "looked_at": (*seen, "answer", "bit"),
            "secret_bits": ("bit", "answer"),
        } | passes

    @property
    def coords(self):
        return {
            "layer": np.arange(1, self.shape.layers + 1),
            "head": np.arange(1, self.shape.heads + 1),
            "places": np.array(PLACES),
            "answer": np.arange(1, self.answers + 1),
            "bit": np.arange(self.bits),
        }


def cross_entropy(
    logits: Float[Array, "batch answers 2"],
    labels: Int[Array, "batch answers"],
    counts: Int[Array, " answers"],
) -> Float[Array, ""]:
    """Mean over sequences and the answers that count."""
    margin = (2 * labels - 1) * (logits[..., 1] - logits[..., 0])
    return (jax.nn.softplus(-margin).mean(0) * counts).sum() / counts.sum()


def unpacked(rows: UInt8[Array, "rows bytes"], bits: int) -> UInt8[Array, "rows bits"]:
    """Inputs from the bytes they are kept in."""
    return jnp.unpackbits(rows, axis=1, count=bits)
