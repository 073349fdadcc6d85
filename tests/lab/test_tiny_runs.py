"""What every experiment gives at a tiny size is what it gave before, to three digits: a number changes only
on purpose.

    python -m tests.lab.test_tiny_runs      # writes tiny_runs.json anew; say in the commit why"""

import json
from pathlib import Path

import numpy as np
import pytest

from stagewise.lab import catalogue
from stagewise.precision import in_double
from stagewise.training.flow import Flow
from tests.lab.tiny import TINY

KEPT = Path(__file__).with_name("tiny_runs.json")


@in_double
def numbers_of(name: str) -> dict[str, list[float]]:
    """Of every array that a tiny run records, means of its last record and of its size; of all records too,
    unless a solver chose their times."""
    experiment = catalogue.experiments()[name].at("quick", **TINY[name])
    program = experiment.program()
    state, kept = experiment.start(np.arange(experiment.lanes)), []
    for chunk in range(program.chunks):
        state, records = program.advance(state, chunk)
        kept.append(records)
    found = {}
    for array in sorted(kept[0]):
        whole = np.concatenate([np.asarray(part[array], float) for part in kept], 1)
        parts = [whole[:, -1]] if isinstance(program, Flow) else [whole[:, -1], whole]
        found[array] = [value for part in parts for value in _means(part)]
    return found


def _means(values: np.ndarray) -> list[float]:
    finite = values[np.isfinite(values)]
    mean = [float(np.mean(finite)), float(np.mean(abs(finite)))] if finite.size else [0.0, 0.0]
    return [float(f"{value:.5g}") for value in (*mean, finite.size)]


@pytest.mark.parametrize("name", TINY)
def test_numbers_are_those_of_before(name):
    before, now = json.loads(KEPT.read_text())[name], numbers_of(name)
    assert set(now) == set(before)
    for array, values in now.items():
        scale = max(1e-9, max(map(abs, before[array][:2])))
        np.testing.assert_allclose(values, before[array], rtol=1e-3, atol=1e-4 * scale, err_msg=array)


if __name__ == "__main__":
    KEPT.write_text(json.dumps({name: numbers_of(name) for name in TINY}, indent=0, sort_keys=True) + "\n")
