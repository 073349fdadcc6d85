"""Joint training of the two-headed transformer against the same model in PyTorch."""

import jax
import numpy as np
import torch

from benchmarks.timing import rate, row
from stagewise.papers.mixture import initial
from stagewise.papers.mixture.experiments import JointTraining

SEEDS, STEPS, WIDTH = 32, 6000, 128


def rows() -> list[dict]:
    settings = JointTraining(width=WIDTH, seeds=SEEDS, steps=STEPS)
    seeds = np.arange(SEEDS)
    program, start = settings.program(), settings.start(seeds)
    weights = initial.weights(settings, seeds)

    def ours():
        state = start
        for chunk in range(program.chunks):
            state, _ = program.advance(state, chunk)
        return jax.block_until_ready(state)

    _check_same_numbers(settings, weights)
    fast = rate(ours, SEEDS * STEPS)
    one = rate(lambda: torch_eager(weights, settings, slice(0, 1), 300), 300)
    batched = rate(lambda: torch_eager(weights, settings, slice(None), 300), SEEDS * 300)
    what = f"mixture: joint training, {SEEDS} seeds x {STEPS} steps, m={WIDTH}"
    return [
        row(f"{what}, vs PyTorch eager, one seed after another", "seed-steps/s", fast, one),
        row(f"{what}, vs PyTorch eager, batched over seeds", "seed-steps/s", fast, batched),
    ]


def torch_eager(weights: dict, settings: JointTraining, seeds: slice, steps: int) -> dict:
    """Plain gradient descent by autograd on the weights, seeds as a batch dimension."""
    samples = settings.task.population()
    X = torch.tensor(np.asarray(settings.task.tokens(samples)))
    label, weight = torch.tensor(samples.label), torch.tensor(samples.weight)
    w = {name: torch.tensor(array[seeds], requires_grad=True) for name, array in weights.items()}
    for _ in range(steps):
        keys, queries = (
            torch.einsum("bhmd,nld->bhnlm", w["keys"], X),
            torch.einsum("bhmd,nld->bhnlm", w["queries"], X),
        )
        attention = torch.softmax(keys @ queries.transpose(-1, -2), -2)
        values = torch.einsum("bhd,nld->bhnl", w["neurons"], X)
        heads = torch.relu((attention * values[..., None]).sum((-1, -2)) + settings.bias)
        f = heads[:, 0] - heads[:, 1]
        loss = (weight * torch.nn.functional.softplus(-label * f)).sum()
        gradients = torch.autograd.grad(loss, list(w.values()))
        with torch.no_grad():
            for value, gradient in zip(w.values(), gradients):
                value -= settings.learning_rate * gradient
    return w


def _check_same_numbers(settings: JointTraining, weights: dict) -> None:
    """Both sides agree on all scores of all seeds after 1500 steps, when attention has been learned."""
    short = JointTraining(width=WIDTH, seeds=SEEDS, steps=1500)
    program, state = short.program(), short.start(np.arange(SEEDS))
    for chunk in range(program.chunks):
        state, records = program.advance(state, chunk)
    theirs = torch_eager(weights, settings, slice(None), 1500)
    scores = torch.einsum("bhmd,bhme->bhde", theirs["keys"], theirs["queries"]).detach().numpy()
    np.testing.assert_allclose(records["scores"][:, -1], scores, atol=1e-8)
