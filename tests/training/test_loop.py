"""The training loop on a rule small enough to check by hand."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagewise.errors import Refused
from stagewise.training.loop import Rule, TrainingLoop, begin
from stagewise.training.schedule import schedule


@dataclass(frozen=True)
class Doubling(Rule):
    """x <- rate * x plus a little noise; done when x passes 100."""

    stops: bool = False

    def step(self, weights, constants, key):
        return {
            "x": constants["rate"] * weights["x"] + constants["noise"] * jax.random.normal(key, dtype=float)
        }

    def measure(self, weights, constants, key):
        return {"x": weights["x"]}

    def done(self, measured, constants):
        return measured["x"] > 100

    dims = {"x": ()}
    coords = {}


def run(program, rate, noise=0.0, state=None, chunks=None):
    lanes = len(rate)
    constants = {"rate": np.array(rate, float), "noise": np.full(lanes, noise)}
    state = state or begin({"x": np.ones(lanes)}, constants, np.arange(lanes))
    parts = []
    for chunk in range(program.chunks) if chunks is None else chunks:
        if program.finished(state):
            break
        state, records = program.advance(state, chunk)
        parts.append(records["x"])
    return state, np.concatenate(parts, 1)


def test_records_are_at_the_scheduled_steps():
    steps = schedule(50, evenly=7, log_spaced=9, dense=(20, 26, 2))
    _, x = run(TrainingLoop(Doubling(), steps), [1.1])
    np.testing.assert_allclose(x[0], 1.1 ** np.array(steps), rtol=1e-12)


@given(st.integers(1, 5000), st.integers(0, 60), st.integers(0, 60))
@settings(max_examples=30, deadline=None)
def test_a_schedule_is_increasing_from_zero_to_the_end(steps, evenly, log_spaced):
    chosen = schedule(steps, evenly=evenly, log_spaced=log_spaced)
    assert chosen[0] == 0 and chosen[-1] == steps and list(chosen) == sorted(set(chosen))


def test_negative_steps_are_refused():
    with pytest.raises(Refused):
        schedule(-1)


def test_one_compilation_serves_every_schedule(compilations):
    for steps in (schedule(40, log_spaced=10), schedule(1000, evenly=77), schedule(3)):
        run(TrainingLoop(Doubling(), steps), [1.0, 0.5, 0.2, 0.1])
    assert compilations("_advance") == 1


def test_stopping_between_chunks_changes_nothing():
    program = TrainingLoop(Doubling(), schedule(400, evenly=80))
    _, whole = run(program, [1.0, 0.99], noise=0.1)
    state, first = run(program, [1.0, 0.99], noise=0.1, chunks=range(2))
    _, second = run(
        program,
        [1.0, 0.99],
        noise=0.1,
        state=jax.tree.map(np.asarray, state),
        chunks=range(2, program.chunks),
    )
    np.testing.assert_array_equal(whole, np.concatenate([first, second], 1))


def test_seeds_do_not_depend_on_their_neighbours():
    program = TrainingLoop(Doubling(), schedule(100, evenly=10))
    _, together = run(program, [1.0, 1.0, 1.0], noise=0.1)
    _, alone = run(program, [1.0], noise=0.1)
    np.testing.assert_allclose(together[:1], alone, rtol=1e-12)
    assert abs(together[0] - together[1]).max() > 0


def test_a_seed_that_diverges_leaves_the_others_alone():
    state, x = run(TrainingLoop(Doubling(), schedule(2000, evenly=20)), [1e3, 0.5, 1.0])
    assert state["diverged_at"].tolist() == [200, -1, -1]
    np.testing.assert_array_equal(x[2], 1.0)


def test_until_done_freezes_finished_seeds_and_stops_when_all_are():
    program = TrainingLoop(Doubling(stops=True), schedule(10000, evenly=1000))
    state, x = run(program, [2.0, 1.1])
    assert state["done_at"].tolist() == [10, 50]
    assert x.shape[1] < 100 and x[0, -1] == 2.0**10


def test_rules_must_be_complete():
    with pytest.raises(TypeError):
        Rule()
    assert jnp.asarray(1.0).dtype == jnp.float64


@dataclass(frozen=True)
class OneByOne(Doubling):
    """The same, lane after lane."""

    stops: bool = True
    one_by_one: bool = True
    records_per_chunk: int = 3

    def ends(self, weights, constants):
        return {"final": weights["x"]}

    dims = {"x": (), "final": ()}


def test_lanes_that_follow_one_another_do_as_lanes_side_by_side():
    steps, rates = schedule(40, evenly=10), [1.3, 1.05, 1.6, 1.0]
    side_by_side, one_by_one = TrainingLoop(Doubling(stops=True), steps), TrainingLoop(OneByOne(), steps)
    (first, x), (second, y) = run(side_by_side, rates, noise=0.01), run(one_by_one, rates, noise=0.01)
    np.testing.assert_allclose(y, x, rtol=1e-12)
    for name in ("done_at", "diverged_at"):
        np.testing.assert_array_equal(second[name], first[name])
    np.testing.assert_allclose(one_by_one.outcomes(second)["final"], second["weights"]["x"])


def test_a_lane_that_is_done_takes_no_more_steps():
    state, x = run(TrainingLoop(OneByOne(), schedule(40, evenly=10)), [1.6, 1.0])
    assert state["step"].tolist() == [12, 40] and (x[0, 3:] == x[0, 3]).all()
