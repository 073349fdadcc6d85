"""A setting that would be ignored is refused: whatever can be set changes what is computed, or is said."""

import typing

import jax
import numpy as np
import pytest

from stagewise.errors import Refused
from stagewise.lab import catalogue
from stagewise.lab.spec.settings import flatten, hint_of, override
from stagewise.precision import in_double
from stagewise.training.measurement import Measurement
from tests.lab.tiny import TINY

EXPERIMENTS = catalogue.experiments()
WHICH_SEEDS = ("seeds", "first_seed", "perturbed")
"""Settings of every experiment that say which lanes are run; they change none of them, but for rounding."""
ROOM = ("parity.training", "answers")
"""How many answers a compiled program has room for, whatever the task asks: it is shared by all cells of a
grid, also by those without a chain of thought."""
OTHER_WORDS = {
    "group": ("C3", "S3", "C4"),
    "subgroup": ("(0 1)",),
    "table": ("0 1, 1 0", "0 1 2, 1 2 0, 2 0 1"),
}


def others(path: str, value, hint) -> list:
    """Other values of a setting, most of them legal."""
    choices = [word for part in (hint, *typing.get_args(hint)) for word in typing.get_args(part)]
    found = [each for each in choices if isinstance(each, str)]
    if isinstance(value, bool):
        found = [not value]
    elif isinstance(value, tuple):
        found = [(*value, value[-1] + 1) if value else (0, 1), value[:-1], (1, 2, 3)]
    elif isinstance(value, str):
        found += OTHER_WORDS.get(path.rpartition(".")[2], ())
    elif value is None:
        found += [4, 8]
    elif int in (typing.get_args(hint) or (hint,)):
        found += [value * 2, value + 1, value + 6, max(1, value // 2), value + 100, 1, 2, 0]
    else:
        found += [value * 1.5, value / 2, value + 0.1, 0.0]
    return [each for each in found if each != value]


def is_choice(value, hint) -> bool:
    """Whether a setting may decide which others count."""
    args = [each for part in (hint, *typing.get_args(hint)) for each in typing.get_args(part)]
    return isinstance(value, bool) or any(isinstance(each, str) for each in args) or value in (None, "", ())


def same_action(one, other) -> bool:
    """A cyclic group acts on its points as on itself: then the choice cannot count."""
    ours, theirs = (getattr(getattr(each, "task", each), "action", None) for each in (one, other))
    return ours is not None and ours != theirs and np.array_equal(ours.maps(), theirs.maps())


@in_double
def computed(experiment):
    """What tells two experiments' numbers apart: their programs and starts, or, where a program holds all
    settings, what it measures."""
    program = experiment.program()
    state = experiment.start(np.arange(2))
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(state)]
    leaves += shapes_of_model(experiment, program, state)
    if isinstance(program, Measurement) or hasattr(program, "settings"):
        program = type(program)
        for chunk in range(experiment.program().chunks):
            state, records = experiment.program().advance(state, chunk)
            leaves += [np.asarray(records[name]) for name in sorted(records)]
    return program, [(leaf.shape, leaf.tobytes()) for leaf in leaves]


def shapes_of_model(experiment, program, state) -> list[np.ndarray]:
    """Some settings are about the model that is handed out, and no number of the run."""
    try:
        model = experiment.model(jax.tree.map(lambda leaf: leaf[0], program.final(state)))
    except (Refused, KeyError):
        return []
    return [np.array(np.shape(leaf)) for leaf in jax.tree.leaves(model)]


def legal(experiment, path: str):
    """The experiment with each legal other value of a setting."""
    for other in others(path, flatten(experiment)[path], hint_of(type(experiment), path)):
        try:
            changed = override(experiment, {path: other})
            changed.program()
        except Refused:
            continue
        if not same_action(experiment, changed):
            yield changed


def bases(cls):
    """The experiment at a tiny size, and with each choice made otherwise."""
    tiny = cls.at("quick", **TINY[cls.name])
    yield "", tiny
    for path, value in flatten(tiny).items():
        if is_choice(value, hint_of(cls, path)):
            for changed in legal(tiny, path):
                yield f"{path}={flatten(changed)[path]}", changed


@pytest.mark.slow
@pytest.mark.parametrize("name", TINY)
def test_a_setting_that_would_be_ignored_is_refused(name):
    cls, ignored = EXPERIMENTS[name], []
    for choice, base in bases(cls):
        before = computed(base)
        for path in flatten(base):
            if path.rpartition(".")[2] not in WHICH_SEEDS and (name, path) != ROOM:
                changes = legal(base, path)
                first = next(changes, None)
                if first and computed(first) == before and all(computed(one) == before for one in changes):
                    ignored.append((choice, path))
    assert not ignored, "\n".join(map(str, ignored))
