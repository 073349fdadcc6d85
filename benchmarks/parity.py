"""One training step of the parity paper's GPT-2 against Hugging Face's in PyTorch, against our own plain
path, and against the machine's matmul.

Same configuration everywhere: n = 30, k = 3, width 720, batch 512, float32, no dropout, Adam, the same
weights and batches, the same threads."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import torch
import transformers

from benchmarks.timing import row, seconds
from stagewise import threads
from stagewise.models.answers import answers
from stagewise.models.exchange import to_hugging_face
from stagewise.models.gpt import GPT
from stagewise.papers.parity.experiments import GPTTraining
from stagewise.papers.parity.initial import lane
from stagewise.training import adam

RATE, CLIP, BATCH, REPEATS = 1e-4, 1.0, 512, 3
SHAPES = ((1, 1), (2, 2), (4, 4))


def rows() -> list[dict]:
    torch.set_num_threads(threads.of_xla())
    matmul = _matmul_rate()
    found = []
    for layers, heads in SHAPES:
        for chain_of_thought in (True, False):
            found += _compare(layers, heads, chain_of_thought, matmul, plainly=layers == 1)
    return found


def _compare(layers: int, heads: int, chain_of_thought: bool, matmul: float, plainly: bool) -> list[dict]:
    settings = GPTTraining.at(
        "paper", **{"gpt.layers": layers, "gpt.heads": heads, "task.chain_of_thought": chain_of_thought}
    )
    weights, _ = lane(settings, 0)
    task, model = settings.task, GPT(**weights["model"], heads=heads)
    rng = np.random.default_rng(0)
    batch = jax.tree.map(
        np.asarray, task.spell(rng.integers(0, 2, (BATCH, task.bits)), task.draw_secret(rng))
    )
    theirs = _theirs(model, settings.shape, batch, task.asked)
    fast = _ours(model, weights["adam"], batch, task.asked, plain=False)
    compared = 3 if layers == 1 else 1  # theirs takes minutes for deep models
    losses = [fast.losses(compared), theirs.losses(compared)]
    np.testing.assert_allclose(losses[0], losses[1], rtol=2e-3)
    ours = min(seconds(fast.step) for _ in range(REPEATS + 1))
    peer = min(seconds(theirs.step) for _ in range(REPEATS if layers == 1 else 1))
    what = (
        f"parity: step of GPT-2, {layers} layers {heads} heads, "
        f"{'with' if chain_of_thought else 'without'} a chain of thought"
    )
    work, plain_work = operations(settings, True), operations(settings, False)
    table = [
        row(
            f"{what}, vs Hugging Face + AdamW (operations {plain_work / work:.0f} : 1)",
            "steps/s",
            1 / ours,
            1 / peer,
        )
    ]
    if plainly:
        plain = _ours(model, weights["adam"], batch, task.asked, plain=True)
        np.testing.assert_allclose(plain.losses(compared), losses[0], rtol=2e-3)
        table.append(
            row(
                f"{what}, vs our plain path",
                "steps/s",
                1 / ours,
                1 / min(seconds(plain.step) for _ in range(REPEATS)),
            )
        )
    return [*table, row(f"{what}, vs this machine's matmul", "GFLOP/s", work / ours / 1e9, matmul)]


class _ours:
    """Our step, fast or plain, warmed up."""

    def __init__(self, model: GPT, state: dict, batch, asked: np.ndarray, plain: bool):
        self.weights, self.state = jax.tree.map(jnp.asarray, (model.weights(), state))
        heads, tokens, labels = model.heads, jnp.asarray(batch.tokens), jnp.asarray(batch.labels)

        def loss(weights):
            model = GPT(**weights, heads=heads)
            logits = model(tokens)[:, asked] if plain else answers(model, tokens, int(asked[0]))
            return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1).mean()

        @partial(jax.jit, donate_argnums=(0, 1))
        def step(weights, state):
            value, gradient = jax.value_and_grad(loss)(weights)
            return value, *adam.step(weights, gradient, state, jnp.float32(RATE), CLIP)

        self._step = step

    def losses(self, steps: int) -> list[float]:
        return [self.step() for _ in range(steps)]

    def step(self) -> float:
        value, self.weights, self.state = jax.block_until_ready(self._step(self.weights, self.state))
        return float(value)


class _theirs:
    """The library's GPT-2 with its own AdamW, as its trainer would do it."""

    def __init__(self, model: GPT, shape, batch, asked: np.ndarray):
        config = transformers.GPT2Config(
            vocab_size=2,
            n_positions=shape.positions,
            n_embd=shape.width,
            n_layer=shape.layers,
            n_head=shape.heads,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=None,
            eos_token_id=None,
        )
        self.model = transformers.GPT2LMHeadModel(config)
        self.model.load_state_dict(
            {name: torch.tensor(np.asarray(value)) for name, value in to_hugging_face(model).items()},
            strict=False,
        )
        self.model.tie_weights()
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=RATE, weight_decay=0.0)
        self.tokens = torch.tensor(np.asarray(batch.tokens), dtype=torch.long)
        self.labels, self.asked = (
            torch.tensor(np.asarray(batch.labels), dtype=torch.long),
            torch.tensor(asked),
        )

    def losses(self, steps: int) -> list[float]:
        return [self.step() for _ in range(steps)]

    def step(self) -> float:
        logits = self.model(self.tokens).logits[:, self.asked]
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, 2), self.labels.reshape(-1))
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimiser.step()
        return float(loss.detach())


def operations(settings: GPTTraining, fast: bool) -> float:
    """Floating-point operations of the matrix products of one step, forward and backward (three times the
    forward pass)."""
    D, T, P, L, H = (
        settings.gpt.width,
        settings.shape.positions,
        len(settings.task.asked),
        settings.gpt.layers,
        settings.gpt.heads,
    )

    def block(
        places: int,
    ) -> int:  # keys and values everywhere; queries, output and perceptron at some places
        return 2 * T * D * D + places * (2 * D * D + 8 * D * D + 2 * T * D)

    if not fast:
        per_sample = L * block(T)
    else:
        # From tables, with the output folded into the values.
        first = (P if L == 1 else T) * (8 * D * D + 2 * T * H * D)
        per_sample = first + (L - 2) * block(T) + block(P) if L > 1 else first
    return 6.0 * BATCH * per_sample


def _matmul_rate(size: int = 1536) -> float:
    """GFLOP/s of a large float32 product, by the same library and threads."""
    a = jnp.asarray(np.random.default_rng(0).standard_normal((size, size), np.float32))
    product = jax.jit(jnp.matmul)
    jax.block_until_ready(product(a, a))
    best = min(seconds(lambda: jax.block_until_ready(product(a, a))) for _ in range(5))
    return 2 * size**3 / best / 1e9
