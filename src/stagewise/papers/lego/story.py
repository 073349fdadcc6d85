"""The paper as the report tells it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from stagewise.lab.draw.charts import on_times
from stagewise.lab.draw.dynamics import Frames, Heat, dynamics
from stagewise.lab.draw.example import Example
from stagewise.lab.draw.story import Part
from stagewise.papers.lego import closed
from stagewise.papers.lego.readings import top_of
from stagewise.papers.lego.studies.theory import cyclic, cyclic_sizes
from stagewise.tasks.groups import Action
from stagewise.tasks.lego import Lego


def sentence() -> Example:
    """A chain of length 3 over C4, as sampled."""
    import jax

    task, length = Lego(Action("C4"), variables=9), 3
    drawn = jax.jit(task.sample, static_argnums=(1, 2))(jax.random.key(0), 1, length)
    variables, actions, values = (
        np.asarray(part[0]) for part in (drawn.variables, drawn.actions, drawn.values)
    )
    asks = [f"x{variables[n + 1]} = g{actions[n]}(x{variables[n]})" for n in range(length)]
    answers = [f"x{variable} = {value}" for variable, value in zip(variables, values)]
    needed = task.depends_on(length)
    links = [
        (length + 1 + n, int(place), why)
        for n in range(length)
        for place, why in zip(
            needed[n], ("its predicate, for the action", "the answer before, for the value")
        )
    ]
    return Example(
        (*asks, *answers),
        frozenset(range(length + 1, 2 * length + 1)),
        tuple(links),
        f"A sampled sentence: {', '.join(asks)}; {answers[0]}. The answers to write are "
        f"{', '.join(answers[1:])}; each needs its predicate and the answer before.",
    )


def _over_time(run: xr.Dataset, times: np.ndarray):
    return lambda values: on_times(run, values, times).drop_vars("time").rename(time="record")


@dynamics("lego.scrub_values", needs={"run": cyclic})
def neurons_take_over(run: xr.Dataset) -> Frames:
    """Stage 1, chains of length 1: what the neurons of one answer give to each action and value, over the
    clip. One neuron after another takes over a pair, at full height."""
    times = np.geomspace(
        max(float(run.time.isel(record=1).max()), float(run.time.max()) / 1e4),
        float(run.time.isel(record=-1).min()),
        60,
    )
    over_time = _over_time(run, times)
    V = over_time(run.V.isel(value=0, drop=True)).isel(seed=0).transpose(
        "record", "neuron", "token"
    ) / top_of(run)
    curves = {name: over_time(run[name]).expand_dims(curve=[name]) for name in ("loss", "accuracy")}
    return Frames("time", times, {"neurons of answer 0, by token": Heat(V, 1.0)}, curves)


@dynamics("lego.scrub_attention", needs={"runs": cyclic_sizes})
def attention_closes_in(runs: xr.Dataset) -> Frames:
    """Stage 2, chains of length 2, C6, d = 1024: where the second answer looks. First at predicates, then at
    both clauses it needs, then equally at both."""
    run = runs.sel(vocabulary=1024.0)
    times = np.geomspace(1e-2, float(run.time.isel(seed=0).max()), 80)
    over_time = _over_time(run, times)
    names = {
        "predicate": "its predicate",
        "answer": "the answer before",
        "other_predicates": "the other predicate",
        "other_answers": "the other answer",
    }
    scores = {name: over_time(run[name]).isel(seed=0) for name in names}
    moments = [
        closed.attention({name: float(score[n]) for name, score in scores.items()}, 2, 2)
        for n in range(len(times))
    ]
    paid = {name: xr.DataArray([float(moment[name]) for moment in moments], dims="record") for name in names}

    def column(parts: dict[str, xr.DataArray]) -> xr.DataArray:
        """Of the answer that asks, over clauses: [record, clause, asked by]."""
        stacked = xr.concat([parts[name] for name in names], pd.Index(list(names.values()), name="clause"))
        return stacked.expand_dims({"asked by": ["answer 2"]}).transpose("record", "clause", "asked by")

    away = xr.concat(
        [over_time(run.missed), over_time(run.gap)], pd.Index(["missed (epsilon)", "gap"], name="curve")
    )
    loss = over_time(run.loss).expand_dims(curve=["loss"])
    gap = over_time(run.gap).isel(seed=0).values
    widest = int(np.nanargmax(gap))
    closed_at = widest + int(np.argmax(gap[widest:] < 0.1 * gap[widest]))
    stages = {
        "2.1: the gap opens": (0, times[widest]),
        "2.2, 2.3: it closes": (times[widest], times[closed_at]),
        "attention sharpens": (times[closed_at], times[-1]),
    }
    return Frames(
        "time",
        times,
        {"attention": Heat(column(paid), 1.0), "scores": Heat(column(scores))},
        {"attention that misses, and the gap": away, "loss": loss},
        stages,
    )


STORY = (
    Part(
        "The task",
        "A sentence gives actions, x2 = g(x1), and a first value; what is to be written are the values of "
        "all variables, one after another, each from the one before. The actions form a group "
        "that acts on the values. An answer needs two clauses: the predicate of its variable, wherever it "
        "stands, and the answer just written.",
        (sentence,),
    ),
    Part(
        "The model",
        "One layer of attention over clauses and one perceptron with a smooth ReLU, as a decoder that writes "
        "clause after clause. Training has stages: chains of length 1 with attention fixed, then chains "
        "of length 2 with the perceptron fixed, then chains the model has answered itself.",
    ),
    Part(
        "Stage 1: the perceptron learns to act",
        "For each value of the answer one neuron after another takes over a pair of action and value; which, "
        "is set by the random start.",
        (neurons_take_over,),
    ),
    Part(
        "Stage 2: attention learns where to look",
        "It turns to predicates first, then to both clauses it needs, and then balances the two. How sharp "
        "it gets depends on the group.",
        (attention_closes_in, "lego.stages", "lego.concentration"),
    ),
    Part(
        "How far it reaches",
        "If one action alone leads from a value to another, attention sharpens with the vocabulary, and "
        "chains much longer than those trained on are solved. If many do, it stays blurred by a constant, "
        "and the reach is a constant factor. That is the shape of Figures 1 and 2.",
        ("lego.fig1a", "lego.fig1b", "lego.fig2", "lego.fig2.symmetric"),
    ),
    Part(
        "Self-training",
        "A model that solves twice the length it was trained at can write the answers to such chains, train "
        "on them, and double its reach again.",
        ("lego.recursion", "lego.curriculum", "lego.fig6"),
    ),
)
