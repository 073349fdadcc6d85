"""The LEGO paper's decoder: one training step against the same model written the usual way in PyTorch, and
chains of 160 in one pass against a rollout.

Same configuration on both sides: 180 variables, S5, width 128, two heads, 128 chains of length 5, float32,
Adam, the same weights and sentences."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch.nn import functional

from benchmarks.timing import rate, row, seconds
from stagewise import threads
from stagewise.models.clause_decoder import Answers, ClauseDecoder, draw, plain
from stagewise.models.rollout import rollout
from stagewise.models.sizes import Clauses
from stagewise.papers.lego import experiments
from stagewise.papers.lego.learning import Learning, next_clause_loss
from stagewise.tasks.groups import Action
from stagewise.tasks.lego import Lego, Sentences
from stagewise.training import adam
from stagewise.training.loop import TrainingLoop

RATE, CLIP, BATCH, LENGTH, REPEATS = 1e-3, 1.0, 128, 5, 20
TASK, SHAPE = Lego(Action("S5")), Clauses()


def rows() -> list[dict]:
    torch.set_num_threads(threads.of_xla())
    model = draw(SHAPE, TASK.variables, TASK.action.actions, TASK.action.values, np.random.default_rng(0))
    sentences = TASK.sample(jax.random.key(0), BATCH, LENGTH)
    fast, slow, theirs = (
        _ours(model, sentences, lambda m, s: m(s)),
        _ours(model, sentences, lambda m, s: plain(m, s)[0]),
        _theirs(model, sentences),
    )
    losses = [peer.losses(3) for peer in (fast, slow, theirs)]
    for other in losses[1:]:
        np.testing.assert_allclose(losses[0], other, rtol=1e-3)
    ours, plainly, peer = (min(seconds(each.step) for _ in range(REPEATS)) for each in (fast, slow, theirs))
    return [
        row(
            "lego: step of the decoder, L = 5, vs PyTorch eager over all clauses",
            "steps/s",
            1 / ours,
            1 / peer,
        ),
        row("lego: step of the decoder, L = 5, vs our plain path", "steps/s", 1 / ours, 1 / plainly),
        row(
            "lego: the lab's training, a seed on each core, fresh sentences, vs PyTorch eager on all",
            "seed-steps/s",
            _training(),
            1 / peer,
        ),
        _chains(model),
    ]


class _Unwatched(Learning):
    """Training without measurements."""

    def measure(self, weights, constants, key):
        return {}


def _training(steps: int = 100) -> float:
    """Seed-steps a second when the lab trains a seed on each thread, as its large presets do."""
    settings, lanes = experiments.DecoderTraining(task=TASK, decoder=SHAPE), threads.of_xla()
    rule = _Unwatched(TASK, SHAPE, LENGTH, BATCH, False, (LENGTH,), BATCH, CLIP)
    state = rule.enter(settings.start(np.arange(lanes)))
    return rate(lambda: TrainingLoop(rule, (steps,)).advance(state, 0), steps * lanes)


def _chains(model: ClauseDecoder) -> dict:
    """Whole chains of 160, 64 of them: one pass with true answers, and a rollout that keeps keys and
    values."""
    sentences = TASK.sample(jax.random.key(1), 64, 160)

    @jax.jit
    def one_pass(weights, s: Sentences):
        logits = ClauseDecoder(**weights, heads=SHAPE.heads)(s)
        return (jnp.argmax(logits.values, -1) == s.values[:, 1:]).all(1) & (
            jnp.argmax(logits.variables, -1) == s.variables[:, 1:]
        ).all(1)

    @jax.jit
    def rolled(weights, s: Sentences):
        own = rollout(ClauseDecoder(**weights, heads=SHAPE.heads), s)
        return (own.values == s.values).all(1) & (own.answered == s.variables).all(1)

    weights = {name: jnp.asarray(weight) for name, weight in model.weights().items()}
    assert np.array_equal(one_pass(weights, sentences), rolled(weights, sentences))
    times = [
        min(seconds(lambda: jax.block_until_ready(way(weights, sentences))) for _ in range(5))
        for way in (one_pass, rolled)
    ]
    return row(
        "lego: 64 chains of 160 judged in one pass, vs a cached rollout",
        "chains/s",
        64 / times[0],
        64 / times[1],
    )


class _ours:
    """Our step, by tables or clause by clause."""

    def __init__(self, model: ClauseDecoder, sentences: Sentences, run):
        self.weights = {name: jnp.array(weight) for name, weight in model.weights().items()}
        self.state = jax.tree.map(jnp.array, adam.begin(model.weights()))

        @partial(jax.jit, donate_argnums=(0, 1))
        def step(weights, state):
            value, gradient = jax.value_and_grad(
                lambda w: next_clause_loss(run(ClauseDecoder(**w, heads=SHAPE.heads), sentences), sentences)
            )(weights)
            return value, *adam.step(weights, gradient, state, jnp.float32(RATE), CLIP)

        self._step = step

    def losses(self, steps: int) -> list[float]:
        return [self.step() for _ in range(steps)]

    def step(self) -> float:
        value, self.weights, self.state = jax.block_until_ready(self._step(self.weights, self.state))
        return float(value)


class _theirs(torch.nn.Module):
    """The same model as one would write it: an embedding of tokens, clauses joined from five slots, causal
    attention over all of them, and everything at every place."""

    def __init__(self, model: ClauseDecoder, sentences: Sentences):
        super().__init__()

        def weight(values) -> torch.nn.Parameter:
            return torch.nn.Parameter(torch.tensor(np.asarray(values)))

        blank = np.zeros((1, SHAPE.embedding), np.float32)
        self.embedding = torch.nn.Embedding.from_pretrained(
            torch.tensor(np.concatenate([model.tokens, blank])), freeze=False, padding_idx=len(model.tokens)
        )
        queries = np.concatenate([np.zeros((3, *model.queries.shape[1:]), np.float32), model.queries])
        self.mapped = torch.nn.ParameterList(
            [weight(maps.reshape(5 * SHAPE.embedding, -1)) for maps in (queries, model.keys, model.contents)]
        )
        for name in ("out", "up", "up_bias", "down", "down_bias", "variable_head", "value_head"):
            setattr(self, name, weight(getattr(model, name)))
        self.optimiser = torch.optim.Adam(self.parameters(), lr=RATE)
        self.clauses, (self.variables, self.values) = (
            self._tokens(sentences, len(model.tokens)),
            self._targets(sentences),
        )

    def _tokens(self, s: Sentences, blank: int) -> torch.Tensor:
        tokens = np.full((BATCH, 2 * LENGTH, 5), blank)
        x, g, y = (
            np.asarray(s.variables),
            TASK.variables + np.asarray(s.actions),
            TASK.variables + TASK.action.actions + np.asarray(s.values),
        )
        tokens[:, :LENGTH, 0], tokens[:, :LENGTH, 1], tokens[:, :LENGTH, 2] = x[:, 1:], g, x[:, :-1]
        tokens[:, LENGTH:, 3], tokens[:, LENGTH:, 4] = x[:, :-1], y[:, :-1]
        return torch.tensor(tokens)

    def _targets(self, s: Sentences) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.tensor(np.asarray(s.variables[:, 1:])).long(), torch.tensor(
            np.asarray(s.values[:, 1:])
        ).long()

    def forward(self, clauses: torch.Tensor) -> Answers:
        joined = self.embedding(clauses).flatten(2)
        q, k, v = ((joined @ maps).unflatten(-1, (SHAPE.heads, -1)).transpose(1, 2) for maps in self.mapped)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = mixed @ self.out
        x = x + torch.relu(x @ self.up + self.up_bias) @ self.down + self.down_bias
        return Answers(x @ self.variable_head, x @ self.value_head)

    def losses(self, steps: int) -> list[float]:
        return [self.step() for _ in range(steps)]

    def step(self) -> float:
        logits = self(self.clauses)
        loss = sum(
            functional.cross_entropy(part[:, LENGTH:].flatten(0, 1), aim.flatten())
            for part, aim in zip(logits, (self.variables, self.values))
        )
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters(), CLIP)
        self.optimiser.step()
        return float(loss.detach())
