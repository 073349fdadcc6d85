"""The paper as the report tells it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from stagewise.lab.draw.dynamics import Frames, Heat, dynamics
from stagewise.lab.draw.example import Example
from stagewise.lab.draw.story import Part
from stagewise.lab.spec.settings import setting
from stagewise.papers.parity.readings import first_reaching
from stagewise.papers.parity.studies.training import chained_curves
from stagewise.tasks.parity import Parity


def sequence() -> Example:
    """A sequence with its chain of thought, as spelled."""
    task, rng = Parity(bits=8, secret_size=3), np.random.default_rng(5)
    secret = task.draw_secret(rng)
    inputs, _ = task.inputs(rng, 1, 1)
    batch = task.spell(inputs, secret)
    read, last = np.asarray(batch.tokens[0]).tolist(), int(batch.labels[0, -1])
    tokens = tuple(map(str, [*read, last]))
    places = task.bits + 1 + np.arange(task.secret_size)
    links = [(int(at), int(secret[n]), "one secret bit") for n, at in enumerate(places)] + [
        (int(at), int(at) - 1, "the sum so far") for at in places[1:]
    ]
    return Example(
        tokens,
        frozenset(places.tolist()),
        tuple(links),
        f"Bits {' '.join(tokens[:8])}, a separator 0, and the partial sums {' '.join(tokens[9:])}. "
        f"The secret is at places {', '.join(map(str, secret))}; each sum needs one of these bits and the "
        "sum before.",
    )


@dynamics("parity.scrub", needs={"run": chained_curves})
def attention_finds_the_secret(run: xr.Dataset) -> Frames:
    """GPT-2 with a chain of thought: each step of the chain (rows) turns to one input bit (columns), and
    accuracy jumps. Attention is that of seed 0, over all heads."""
    samples = run.step.values.astype(float) * setting(run, "batch")
    looked = (
        run.looked.isel(seed=0)
        .transpose("record", "answer", "bit")
        .rename(answer="step of the chain", bit="input bit")
    )
    entropy = run.entropy.sel(places="all", drop=True).mean(["layer", "head"])
    mass = run.mass.max(["layer", "head"]).mean("answer")
    parts: list[xr.DataArray] = [run.accuracy, entropy, mass]
    curves = xr.concat(
        parts, pd.Index(["accuracy", "entropy of attention", "attention on the secret"], name="curve")
    )
    jump = float(first_reaching(run).median())
    stages = (
        {"attention searches": (0, jump), "every answer is right": (jump, samples[-1])}
        if np.isfinite(jump)
        else {}
    )
    return Frames(
        "samples",
        samples,
        {"attention to input bits": Heat(looked, 1.0)},
        {"accuracy and attention": curves, "loss": run.loss.expand_dims(curve=["loss"])},
        stages,
    )


STORY = (
    Part(
        "The task",
        "A sequence is n random bits; the answer is the parity of k secret ones. With a chain of thought the "
        "partial sums are written out first, and each of them depends on one bit and the sum before.",
        (sequence,),
    ),
    Part(
        "The model",
        "GPT-2, from one layer of one head up, and for the theory a one-layer network of attention and "
        "neurons that takes three steps of gradient descent.",
    ),
    Part(
        "With a chain of thought",
        "One bit matters for each step, and the first gradient already sees it. Attention turns to the "
        "secret bits, one step of the chain after another, and accuracy jumps when it gets there.",
        (attention_finds_the_secret, "parity.fig1b", "parity.fig3b"),
    ),
    Part(
        "Without one",
        "No single bit says anything about the answer. Every further secret bit multiplies the samples that "
        "training needs, and at the same number of samples chains of thought win by orders of magnitude.",
        ("parity.fig2b", "parity.fig1a", "parity.full_width"),
    ),
    Part(
        "Three steps of gradient descent",
        "In the theory's network neurons come to prefer the bit that matters, then attention turns to it, "
        "then outputs become right: one step each.",
        ("parity.three_steps", "parity.construction", "parity.phase"),
    ),
    Part(
        "Seeing few inputs many times",
        "Without a chain of thought, a small training set used again and again can teach what fresh data "
        "does not.",
        ("parity.fig5",),
    ),
)
