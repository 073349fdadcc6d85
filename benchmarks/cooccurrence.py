"""The co-occurrence experiment: the closed map and the flow against the same training in PyTorch, and their
cost against sizes."""

import jax
import numpy as np
import torch

from benchmarks.timing import rate, row, seconds
from stagewise.papers.cooccurrence import initial
from stagewise.papers.cooccurrence.experiments import Descent, FlowToTimes
from stagewise.training.program import DATA, generator

SEEDS, EPOCHS = 8, 30000


def rows() -> list[dict]:
    paper = Descent.at("paper")
    _check_same_numbers()
    _go(Descent(epochs=300))  # compiles
    steps = SEEDS * EPOCHS / seconds(lambda: _go(paper))
    one = rate(lambda: torch_eager(range(1), 1000), 1000)
    batched = rate(lambda: torch_eager(range(SEEDS), 300), SEEDS * 300)
    flow = FlowToTimes.at("paper")
    along = rate(lambda: _go(flow), SEEDS * EPOCHS)
    what = f"cooccurrence: the experiment, {SEEDS} seeds x {EPOCHS} epochs"
    measured = [
        row(f"{what}, closed map vs PyTorch eager, one seed after another", "seed-epochs/s", steps, one),
        row(f"{what}, closed map vs PyTorch eager, batched over seeds", "seed-epochs/s", steps, batched),
        row(
            f"{what}, flow to the same time vs PyTorch eager, one seed after another",
            "seed-epochs/s",
            along,
            one,
        ),
    ]
    short = 1000
    paper_sizes = _begun(Descent(epochs=short))
    base = rate(lambda: _advance(*paper_sizes), SEEDS * short)
    for m, m1 in ((128, 4096), (2048, 256), (8192, 256)):
        state = _begun(Descent(epochs=short, width=m, neurons=m1))
        measured.append(
            row(
                f"cooccurrence: closed map at m={m}, m1={m1} vs m=128, m1=256",
                "seed-epochs/s",
                rate(lambda: _advance(*state), SEEDS * short),
                base,
            )
        )
    return measured


def _begun(settings):
    return settings.program(), settings.start(np.arange(SEEDS))


def _advance(program, state):
    for chunk in range(program.chunks):
        state, records = program.advance(state, chunk)
    return jax.block_until_ready(state), records


def _go(settings):
    return _advance(*_begun(settings))


def torch_eager(seeds, epochs: int) -> dict:
    """Gradient descent by autograd on W, W_V, W_K, W_Q as the paper writes the model, word vectors in, seeds
    as a batch dimension."""
    settings = Descent()
    drawn = [initial.draw_weights(settings, seed) for seed in seeds]
    sets = [settings.task.training_set(generator(seed, DATA)) for seed in seeds]
    a = torch.tensor(np.stack([w["signs"] for w in drawn]))
    # [seed, n, d, L]
    X = torch.tensor(np.stack([np.eye(settings.task.vocabulary)[s.tokens] for s in sets])).transpose(-1, -2)
    label = torch.tensor(np.stack([s.label for s in sets]))
    w = {
        name: torch.tensor(np.stack([one[name] for one in drawn]), requires_grad=True)
        for name in ("W", "WV", "WK", "WQ")
    }
    for _ in range(epochs):
        V, K, Q = (w[name][:, None] @ X for name in ("WV", "WK", "WQ"))
        attention = torch.softmax(K.transpose(-1, -2) @ Q / settings.width**0.5, -2)
        F = torch.einsum("sj,sjm,snml->sn", a, w["W"], V @ attention)
        loss = torch.nn.functional.softplus(-label * F).mean(-1).sum()
        gradients = torch.autograd.grad(loss, list(w.values()))
        with torch.no_grad():
            for value, gradient in zip(w.values(), gradients):
                value -= settings.learning_rate * gradient
    return w


def _check_same_numbers() -> None:
    """Both sides agree on the scores of the special words of all seeds after 300 epochs, well into Phase
    2."""
    theirs = torch_eager(range(SEEDS), 300)
    scores = torch.einsum("smd,sme->sde", theirs["WK"], theirs["WQ"]).detach().numpy()[:, :3, :3]
    _, records = _go(Descent(epochs=300))
    np.testing.assert_allclose(records["scores"][:, -1], scores, atol=1e-10)
