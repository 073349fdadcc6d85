"""How a clause decoder learns LEGO: Adam on sentences of one length, with true answers or the model's own,
and what is measured."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Key

from stagewise.models.clause_decoder import Answers, ClauseDecoder, Sentences, plain
from stagewise.models.rollout import rollout
from stagewise.models.sizes import Clauses
from stagewise.papers.lego.readings import BONUS, LOOKED, ORDER, RAISED, WATCHED
from stagewise.tasks.lego import Lego
from stagewise.training import adam
from stagewise.training.phases import Phase


@dataclass(frozen=True)
class Learning(Phase):
    """Next-clause prediction on chains of one length (equation 6). With `own_answers` the model as it was
    when the phase began writes the answers, greedily, and the model is trained on them (Section 5). The rate
    falls along a cosine over the phase."""

    task: Lego
    decoder: Clauses
    length: int
    batch: int
    own_answers: bool
    tested: tuple[int, ...]
    test_sentences: int
    gradient_clip: float

    one_by_one = True
    most_lanes = 4  # a chunk is half a phase: with few lanes a stop need not wait long
    records_per_chunk = 1

    def enter(self, state):
        weights = state["weights"]
        entered = {
            "phase": weights["phase"] + 1,
            "began": weights["adam"]["count"],
            "teacher": weights["model"],
        }
        return state | {"weights": weights | jax.tree.map(np.array, entered)}

    def step(self, weights, constants, key: Key[Array, ""]):
        count = weights["adam"]["count"] - weights["began"]
        sentences = self.task.sample(key, self.batch, self.length)
        if self.own_answers:
            sentences = rollout(self.decoder_of(weights["teacher"]), sentences)
        gradients = jax.grad(lambda model: next_clause_loss(self.decoder_of(model)(sentences), sentences))(
            weights["model"]
        )
        if self.decoder.encoding == "sinusoidal":  # waves are not trained
            gradients = gradients | {"positions": jnp.zeros_like(gradients["positions"])}
        rate = adam.cosine_decay(
            constants["rates"][weights["phase"]],
            constants["last_rate"],
            count,
            constants["steps"][weights["phase"]],
        )
        moved, state = adam.step(weights["model"], gradients, weights["adam"], rate, self.gradient_clip)
        return weights | {"model": moved, "adam": state}

    def decoder_of(self, weights: dict) -> ClauseDecoder:
        return ClauseDecoder(**weights, heads=self.decoder.heads)

    def measure(self, weights, constants, key: Key[Array, ""]):
        model, (of_loss, of_chains, of_attention, of_labels) = (
            self.decoder_of(weights["model"]),
            jax.random.split(key, 4),
        )
        sentences = self.task.sample(of_loss, self.test_sentences, self.length)
        found = {
            "loss": next_clause_loss(model(sentences), sentences),
            "label_agreement": self.agreement(weights, of_labels),
        }
        return found | self.chains(model, of_chains) | self.look(model, of_attention)

    def agreement(self, weights, key: Key[Array, ""]) -> Float[Array, ""]:
        """How many of the values that the phase trains on are true."""
        if not self.own_answers:
            return jnp.float32(1)
        true = self.task.sample(key, self.test_sentences, self.length)
        own = rollout(self.decoder_of(weights["teacher"]), true)
        return jnp.mean((own.values == true.values)[:, 1:], dtype=jnp.float32)

    def chains(self, model: ClauseDecoder, key: Key[Array, ""]) -> dict[str, Array]:
        """Accuracy at every length tested: of whole chains (every variable and value), with scores raised or
        not; of values in whole chains, of steps' values, and of steps' variables.

        A rollout is right throughout if and only if every step is right after true answers: until its first
        error the two are the same. So one parallel pass tells how many rollouts would be."""
        longest = max(self.tested)
        drawn = self.task.sample(key, self.test_sentences, longest)
        groups = jax.tree.map(
            lambda rows: rows.reshape(-1, min(64, self.test_sentences), rows.shape[1]), drawn
        )

        def at(length, bonus):
            def judge(sentences: Sentences):
                logits = model(sentences, length, raised(longest, bonus))
                counted = jnp.arange(longest) < length
                value = (jnp.argmax(logits.values, -1) == sentences.values[:, 1:]) | ~counted
                variable = (jnp.argmax(logits.variables, -1) == sentences.variables[:, 1:]) | ~counted
                skipped = longest - length
                return {
                    "chain": (value & variable).all(1).mean(dtype=jnp.float32),
                    "value_chain": value.all(1).mean(dtype=jnp.float32),
                    "step_accuracy": (value.sum(1) - skipped).mean(dtype=jnp.float32) / length,
                    "variable_accuracy": (variable.sum(1) - skipped).mean(dtype=jnp.float32) / length,
                }

            return jax.tree.map(lambda each: each.mean(0), jax.lax.map(judge, groups))

        tested, bonuses = jnp.array(self.tested), jnp.array([[0, 0], [BONUS, 0], [0, BONUS]], jnp.float32)
        tried = jax.lax.map(
            lambda pair: at(*pair),
            (jnp.tile(tested, len(RAISED)), jnp.repeat(bonuses, len(tested), axis=0)),
        )
        by_bonus = jax.tree.map(lambda flat: flat.reshape(len(RAISED), -1), tried)
        return {"chain_raised": by_bonus["chain"]} | {name: values[0] for name, values in by_bonus.items()}

    def look(self, model: ClauseDecoder, key: Key[Array, ""]) -> dict[str, Array]:
        """Mean attention over heads and sentences on the predicate and the answer that are needed, by
        place."""
        room = max(LOOKED)
        sentences = self.task.sample(key, WATCHED, room)
        place = jnp.arange(room)

        def at(length):
            mean = model.attention(sentences, length).mean((0, 1))
            targets = jnp.stack([jnp.diagonal(mean[:, :room]), jnp.diagonal(mean[:, room:])])
            return jnp.where(place < length, targets, jnp.nan)

        return {"attention": jax.lax.map(at, jnp.array(LOOKED))}

    @partial(jax.jit, static_argnums=0)
    def ends(self, weights, constants):
        """Figures 2 and 5: attention with the predicates in order and in another one, and by how much that
        changes any logit. And real rollouts of the longest chains looked at: how many are right throughout,
        how many at the end, and how many one pass says are."""
        model, length = self.decoder_of(weights["model"]), LOOKED[0]
        long = self.task.sample(jax.random.key(6), WATCHED, LOOKED[-1])
        own, forced = rollout(model, long), model(long)
        rolled = ((own.values == long.values) & (own.answered == long.answered)).all(1)
        passed = (
            (jnp.argmax(forced.values, -1) == long.values[:, 1:])
            & (jnp.argmax(forced.variables, -1) == long.answered[:, 1:])
        ).all(1)
        rollouts = {
            "rolled_chain": rolled.mean(dtype=jnp.float32),
            "rolled_final": (own.values[:, -1] == long.values[:, -1]).mean(dtype=jnp.float32),
            "rolled_otherwise": (rolled != passed).sum(),
        }
        sentences = self.task.sample(jax.random.key(5), WATCHED, length)
        (kept, before), (moved, after) = (plain(model, sentences, order) for order in (None, ORDER))
        change = jnp.max(jnp.array([jnp.abs(a - b).max() for a, b in zip(kept, moved)]))
        return rollouts | {
            "change": change,
            "ordered_heatmap": before.mean((0, 1)),
            "permuted_heatmap": after.mean((0, 1)),
        }

    def final(self, state):
        return {"weights": state["weights"]["model"]}

    @property
    def dims(self):
        return {
            "loss": (),
            "label_agreement": (),
            "chain": ("tested",),
            "value_chain": ("tested",),
            "step_accuracy": ("tested",),
            "variable_accuracy": ("tested",),
            "chain_raised": ("raised", "tested"),
            "attention": ("looked", "target", "place"),
            "rolled_chain": (),
            "rolled_final": (),
            "rolled_otherwise": (),
            "change": (),
            "ordered_heatmap": ("query", "key"),
            "permuted_heatmap": ("query", "key"),
        }

    @property
    def coords(self):
        n = LOOKED[0]
        keys = [f"predicate {i + 1}" for i in range(n)] + [f"answer {i}" for i in range(n)]
        return {
            "tested": np.array(self.tested),
            "raised": np.array(RAISED),
            "looked": np.array(LOOKED),
            "target": np.array(["predicate", "answer"]),
            "place": np.arange(1, max(LOOKED) + 1),
            "query": np.arange(n),
            "key": np.array(keys),
        }


def next_clause_loss(logits: Answers, sentences: Sentences) -> Float[Array, ""]:
    """Cross-entropy of variable and value, mean over steps and sentences. The three blank slots are constants
    and are left out."""
    entropy = optax.softmax_cross_entropy_with_integer_labels
    return (
        entropy(logits.variables, sentences.answered[:, 1:]).mean()
        + entropy(logits.values, sentences.values[:, 1:]).mean()
    )


def raised(room: int, bonus: Float[Array, "2"]) -> Float[Array, "query key"]:
    """Scores that put a bonus on the predicate and the answer that each answer needs."""
    return jnp.concatenate(
        [bonus[0] * jnp.eye(room, dtype=bonus.dtype), bonus[1] * jnp.eye(room, dtype=bonus.dtype)], axis=1
    )
