"""The population against the definition, the sampler against the population, bad settings."""

from collections import Counter

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagewise.errors import Refused
from stagewise.tasks.mixture import Mixture

sizes = given(groups=st.integers(2, 4), length=st.integers(3, 5))


@sizes
@settings(max_examples=12, deadline=None)
def test_population_is_a_distribution_that_treats_labels_and_groups_alike(groups, length):
    samples = Mixture(groups, length).population()
    assert samples.weight.sum() == pytest.approx(1)
    assert samples.weight @ samples.label == pytest.approx(0)
    for group in range(groups):
        assert samples.weight[samples.signal[:, 0] == group].sum() == pytest.approx(1 / groups)


@sizes
@settings(max_examples=12, deadline=None)
def test_every_sample_obeys_the_definition(groups, length):
    samples = Mixture(groups, length).population()
    group = samples.signal[:, 0]
    assert (samples.signal[:, 1] == groups + group).all() and (samples.sign[:, 1] == samples.label).all()
    assert (samples.signal[:, 2:] >= groups).all() and (
        samples.signal[:, 2:] != groups + group[:, None]
    ).all()


@pytest.mark.parametrize(
    "groups, length, count", [(2, 3, 8), (3, 3, 24), (4, 3, 48), (8, 3, 224), (2, 4, 12), (4, 5, 448)]
)
def test_population_sizes(groups, length, count):
    task = Mixture(groups, length)
    assert len(task.population().label) == task.population_size == count


def test_sampler_draws_the_population():
    task, draws = Mixture(3, 4), 20000
    drawn, samples = task.sample(jax.random.key(0), draws), task.population()

    def name(signal, sign):
        return tuple(sorted(zip(signal.tolist(), sign.tolist())))

    seen = Counter(map(name, np.asarray(drawn.signal), np.asarray(drawn.sign)))
    expected = {name(*row): w for *row, w in zip(samples.signal, samples.sign, samples.weight)}
    assert set(seen) == set(expected)
    chi_squared = sum((seen[k] - draws * w) ** 2 / (draws * w) for k, w in expected.items())
    assert chi_squared < len(expected) + 5 * np.sqrt(2 * len(expected))


def test_the_answer_is_where_the_task_says():
    drawn = Mixture(3, 5).sample(jax.random.key(1), 200)
    rows = np.arange(200)
    assert (np.asarray(drawn.sign)[rows, drawn.answer] == drawn.label).all()
    group = np.asarray(drawn.signal).min(1)
    assert (np.asarray(drawn.signal)[rows, drawn.answer] == 3 + group).all()


@pytest.mark.parametrize("bad", [dict(groups=1), dict(length=2), dict(groups=3, dimension=5)])
def test_out_of_range_settings_are_refused(bad):
    with pytest.raises(Refused, match="mixture: .* must be at least"):
        Mixture(**bad)
