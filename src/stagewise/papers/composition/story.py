"""The paper as the report tells it."""

from __future__ import annotations

import numpy as np
import xarray as xr

from stagewise.lab.draw.dynamics import Frames, Heat, dynamics
from stagewise.lab.draw.example import Example
from stagewise.lab.draw.story import Part
from stagewise.papers.composition.studies import small
from stagewise.tasks.composition import Composition


def sequence() -> Example:
    """A sampled sequence of four levels, and the way of one symbol through it."""
    task, rng = Composition(levels=4, symbols=3), np.random.default_rng(3)
    hidden, sigma = task.draw_hidden(rng), task.draw(rng, 1)[0]
    tokens, places, symbol, way = ["1→"], [0], 0, []
    for level in range(task.levels):
        tokens.append("|")
        place = int(hidden[level, symbol])
        places.append(len(tokens) + place)
        tokens += [str(shown + 1) for shown in sigma[level]]
        way.append(
            f"at level {level + 1} symbol {symbol + 1} reads token {place + 1}, which shows "
            f"{sigma[level, place] + 1}"
        )
        symbol = int(sigma[level, place])
    links = [(here, before, "which symbol to go on with") for before, here in zip(places, places[1:])]
    secret = " | ".join(" ".join(str(to + 1) for to in row) for row in hidden)
    return Example(
        (*tokens, "|", f"={symbol + 1}"),
        frozenset({len(tokens) + 1}),
        (*links, (len(tokens) + 1, places[-1], "the answer stands there")),
        "Four permutations of three symbols, asked from symbol 1. Which token of a level a symbol reads is "
        f"hidden: {secret}. So {'; '.join(way)}. That is the answer.",
    )


@dynamics("composition.scrub", needs={"run": small})
def one_layer_after_another(run: xr.Dataset) -> Frames:
    """The curriculum on four levels of five symbols, step by step: two steps for every number of hops, one of
    attention and one of the readout. Each layer's attention is uniform until its step, and exact after it."""
    patterns = run.pattern.isel(seed=0).assign_coords(
        query=np.arange(1, run.sizes["query"] + 1), key=np.arange(1, run.sizes["key"] + 1)
    )
    heats = {
        f"attention of layer {layer}": Heat(
            patterns.sel(layer=layer, drop=True).transpose("record", "query", "key"), 1.0
        )
        for layer in run.layer.values
    }
    steps, hops = run.step.values.astype(float), run.hops.values
    stages = {f"{hop} hop{'s' if hop > 1 else ''}": (2.0 * n, 2.0 * (n + 1)) for n, hop in enumerate(hops)}
    return Frames(
        "gradient step",
        steps,
        heats,
        {"loss by number of hops": run.loss, "least attention on the right token": run.least_attention},
        stages,
    )


STORY = (
    Part(
        "The task",
        "A sequence shows k permutations; the task hides k others. Asked for a symbol, one follows it "
        "through the levels, each by a hidden and then the shown permutation: r levels far, r hops.",
        (sequence,),
    ),
    Part(
        "The model",
        "Attention alone, in log2 k + 1 layers. Two times r hops are r hops after r hops, so each layer can "
        "double the hops of the one before; the first finds what the hidden permutations are.",
    ),
    Part(
        "From easy to hard, one layer a step",
        "Trained on 1, 2, 4, … hops in turn, layer after layer learns its part in a single large step. "
        "Trained on all at once the same happens by itself: what an untrained layer "
        "hands on is the same for all queries, so the layers after it get no gradient until it is their "
        "turn.",
        (one_layer_after_another, "composition.fig3left", "composition.fig3mid", "composition.curriculum"),
    ),
    Part(
        "Learned beside built",
        "Attention that training finds is that of the construction.",
        ("composition.patterns",),
    ),
    Part(
        "Why k-fold data alone are hopeless",
        "Two targets agree hardly more often than chance, and the excess falls exponentially in k. No "
        "learner that goes by correlations can tell them apart with fewer queries than that.",
        ("composition.correlations",),
    ),
    Part(
        "How many samples",
        "Far fewer than the theorem asks for, and fewer still if all queries of a sequence are asked.",
        ("composition.samples", "composition.phase"),
    ),
    Part(
        "A standard encoder",
        "Adam on an encoder with all its parts shows the same order of hops. Whether it gets to four hops "
        "depends on what else is in the mixture.",
        ("composition.fig3right", "composition.decides", "composition.stuck", "composition.gate"),
    ),
)
