"""The paper as the report tells it."""

from __future__ import annotations

import numpy as np
import xarray as xr

from stagewise.lab.draw.charts import on_times
from stagewise.lab.draw.dynamics import Frames, Heat, dynamics
from stagewise.lab.draw.example import Example
from stagewise.lab.draw.story import Part
from stagewise.papers.cooccurrence.readings import at_end, at_T1, change, half_time, phase, speed
from stagewise.papers.cooccurrence.studies import small_start
from stagewise.tasks.cooccurrence import COMMON, FIRST, SECOND, Cooccurrence


def sequence() -> Example:
    """A positive sequence of a training set, as drawn."""
    drawn = Cooccurrence(length=6).training_set(np.random.default_rng(2))
    words = drawn.tokens[0].tolist()
    named = {FIRST: "mu1", SECOND: "mu2", COMMON: "mu3"}
    tokens = [named.get(word, f"w{word}") for word in words]
    end = len(tokens)
    return Example(
        (*tokens, "y = +1"),
        frozenset({end}),
        ((end, words.index(FIRST), "a target word"), (end, words.index(SECOND), "a target word")),
        f"A sampled sequence {' '.join(tokens)}, positive because both targets mu1 and mu2 are in it. mu3 is "
        "in every sequence and the rest are random words.",
    )


@dynamics("cooccurrence.scrub", needs={"flow": small_start})
def two_phases(flow: xr.Dataset) -> Frames:
    """Gradient flow from a small start: first what words contribute, G, while the loss of sequences with one
    target goes up and down again; scores move after that, between the targets up and from the common word
    down."""
    T1, end, unit = at_T1(flow).time.isel(seed=0).item(), float(at_end(flow).time.min()), speed(flow)
    times = np.geomspace(T1 / 300, end, 60)

    def over_time(values: xr.DataArray) -> xr.DataArray:
        return on_times(flow, values, times).drop_vars("time").rename(time="record")

    half = min(float(half_time(phase(flow, "1")).fillna(np.inf).median()), T1)
    moved = over_time(change(flow)).median("seed").transpose("record", "key", "query")
    return Frames(
        "scaled time",
        times * unit,
        {"change of scores": Heat(moved)},
        {
            "loss by type of sequence": over_time(flow.type_loss),
            "what words contribute, G": over_time(flow.G),
        },
        {
            "Phase 1": (0, half * unit),
            "balance": (half * unit, T1 * unit),
            "Phase 2": (T1 * unit, end * unit),
        },
    )


STORY = (
    Part(
        "The task",
        "A sequence is positive if both target words are in it. Sequences with one target or none are "
        "negative. One common word is in all of them, and the rest are random. By type: 1 has both targets, "
        "2 the first alone, 3 the second alone, 4 neither.",
        (sequence,),
    ),
    Part(
        "The model",
        "One layer of softmax attention, then one row of ReLU neurons with fixed signs. All weights move by "
        "gradient flow. Every word contributes a number G(word), weighted by attention; "
        "their sum is the output.",
    ),
    Part(
        "Two phases",
        "Both targets rise at once, since they are mostly seen in positive sequences, and that makes "
        "sequences with a single target wrong. These pull back through the word "
        "that all sequences share: its G falls, faster than either target rises and slower than both "
        "together. So one target ends negative and two positive, and every training sample is right. "
        "From then on everything grows along the max-margin direction and the loss falls like 1/t. Only now "
        "do attention scores move.",
        (two_phases, "cooccurrence.fig1a", "cooccurrence.fig1b"),
    ),
    Part(
        "Balance",
        "The pulls of the four types of sequence balance each other by themselves, and keep their order to "
        "the end.",
        ("cooccurrence.values", "cooccurrence.balance"),
    ),
    Part(
        "What three and seven numbers say",
        "With many samples and small scales the flow is one of three numbers; if every sample has random "
        "words of its own, of seven. Their times and slopes are what large runs should have.",
        ("cooccurrence.scaling", "cooccurrence.limit7"),
    ),
)
