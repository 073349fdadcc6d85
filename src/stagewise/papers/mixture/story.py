"""The paper as the report tells it."""

from __future__ import annotations

import numpy as np
import xarray as xr

from stagewise.lab.draw.dynamics import Frames, Heat, dynamics
from stagewise.lab.draw.example import Example
from stagewise.lab.draw.story import Part
from stagewise.papers.mixture.experiments import JointTraining
from stagewise.papers.mixture.readings import attention, onset, time_to_learn
from stagewise.tasks.mixture import Mixture


def sequence() -> Example:
    """One of the task's sequences, as sampled."""
    import jax

    task = Mixture(groups=3, length=5)
    drawn = jax.jit(task.sample, static_argnums=1)(jax.random.key(1), 1)  # one compilation, not one each
    signals, signs = np.asarray(drawn.signal[0]), np.asarray(drawn.sign[0])
    tokens = [("-" if sign < 0 else "") + task.signals[signal] for signal, sign in zip(signals, signs)]
    counts, group = int(drawn.answer[0]), int(np.flatnonzero(signals < task.groups)[0])
    label = "y = +1" if drawn.label[0] > 0 else "y = -1"
    return Example(
        (*tokens, label),
        frozenset({len(tokens)}),
        ((len(tokens), counts, "the sign that counts"), (counts, group, "the group that makes it count")),
        f"A sampled sequence {' '.join(tokens)} with the label {label}: the label is the sign of "
        f"{tokens[counts]}, since {tokens[group]} is there; the other signs are noise.",
    )


@dynamics("mixture.scrub", needs={"joint": JointTraining.plan()})
def three_stages(joint: xr.Dataset) -> Frames:
    """Training one step after another: the consistent loss falls while attention (here of the positive head
    on a conflicting sample) is uniform; then scores leave zero, class tokens look at the group token, and the
    conflicting loss falls."""
    tokens = ["c1", "v1", "-v2"]
    heat = (
        attention(joint, tokens).median("seed").transpose("record", "at", "to").rename(at="query", to="key")
    )
    scores = joint.scores.sel(head="+", drop=True).median("seed").transpose("record", "key", "query")
    steps = joint.step.values.astype(float)
    first, begun, learned = (
        float(when.median())
        for when in (time_to_learn(joint, "consistent"), onset(joint), time_to_learn(joint, "conflicting"))
    )
    stages = {
        "neurons align": (0, first),
        "attention grows unseen": (first, begun),
        "attention chooses": (begun, learned),
        "the rest": (learned, steps[-1]),
    }
    return Frames(
        "step",
        steps,
        {"attention on X(1,+,-)": Heat(heat, 1.0), "scores": Heat(scores)},
        {
            "loss by kind of sample": joint.loss.sel(kind=["consistent", "conflicting"]),
            "neurons of the + head": joint.neurons.sel(head="+", drop=True),
        },
        {name: (a, b) for name, (a, b) in stages.items() if np.isfinite([a, b]).all() and b > a},
    )


STORY = (
    Part(
        "The task",
        "A sequence holds one group token and signed class tokens. Only the sign of the class token that "
        "belongs to the group is the label; the others are "
        "noise that often votes against it. Where all signs agree, counting votes is enough. Where they "
        "conflict, one must know which vote counts.",
        (sequence,),
    ),
    Part(
        "The model",
        "One layer of attention with two heads, each followed by a row of ReLU neurons; the positive heads' "
        "sum less the negative heads' is the output. "
        "Keys, queries and neurons all learn, by gradient descent on the logistic loss. What the weights do "
        "can be followed exactly in a handful of inner products, and the lab does so.",
    ),
    Part(
        "Three stages",
        "Neurons come first: they align with the class signals, and the loss of consistent samples falls at "
        "once. Attention is uniform all that time. "
        "Its scores are products of two small weights; they grow exponentially, but from almost nothing, so "
        "nothing is seen for a thousand steps. Then class tokens turn to the "
        "group token within a few steps, and conflicting samples are learned. Move the slider to watch it.",
        (three_stages, "mixture.fig1"),
    ),
    Part(
        "What attention learned",
        "On a conflicting positive sample both class tokens look at the group token; on a negative one "
        "neither does. The scores between group keys and class queries "
        "dominate all others, with opposite signs for own and other group.",
        ("mixture.fig2", "mixture.fig4"),
    ),
    Part(
        "Why the neurons must learn too",
        "If attention alone is trained on top of random neurons, the loss stalls; from the same start all "
        "weights together learn the task.",
        ("mixture.fig3",),
    ),
    Part(
        "Beyond the paper: what decides how long it takes",
        "Not the width: from the scale that attention starts from to the step at which conflicting samples "
        "are learned it is the same for 8 neurons' width and 512. "
        "A smaller start costs time like its logarithm.",
        ("mixture.phase",),
    ),
)
