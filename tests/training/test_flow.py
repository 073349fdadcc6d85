"""Gradient flow against scipy, events, and solvers that do not succeed."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from stagewise.papers.mixture.closed import Closed
from stagewise.papers.mixture.experiments import ThreeStages
from stagewise.training import stages as flow
from stagewise.training.flow import Flow, Motion, begin
from stagewise.training.stages import Stage, Until


@dataclass(frozen=True)
class Decay(Motion):
    """dx/dt = -rate x; y follows x."""

    stiff: bool = False

    def velocity(self, weights, constants, samples):
        return {"x": -constants["rate"] * weights["x"] * samples.sum(), "y": weights["x"] - weights["y"]}

    def measure(self, weights, constants):
        return weights

    def watched(self, weights, constants):
        return {"x": weights["x"], "y": weights["y"]}

    def samples(self, kind):
        return {"all": np.array([0.5, 0.5]), "half": np.array([0.5, 0.0])}[kind]

    dims = {"x": (), "y": ()}
    coords = {}


def go(stages, rate=(1.0, 2.0), **options):
    program = Flow(Decay(), tuple(stages), **options)
    lanes = len(rate)
    state = begin(
        {"x": np.ones(lanes), "y": np.zeros(lanes)},
        {"rate": np.array(rate), "low": np.full(lanes, 0.1)},
        len(stages),
    )
    records = []
    for chunk in range(program.chunks):
        state, record = program.advance(state, chunk)
        records.append(record)
    return state, records


def test_an_event_ends_a_stage_at_the_right_time():
    state, (first, second) = go(
        [
            Stage("one", ("x",), "all", Until("x", 0.5, rising=False), limit=100.0),
            Stage("two", ("x",), "half", Until("x", "low", rising=False), limit=100.0),
        ]
    )
    expected = np.log(2) / np.array([1.0, 2.0])
    np.testing.assert_allclose(state["ended"][:, 0], expected, rtol=1e-8)
    np.testing.assert_allclose(
        np.diff(state["ended"], axis=1)[:, 0], 2 * np.log(5) / np.array([1.0, 2.0]), rtol=1e-7
    )
    assert (state["outcome"] == flow.EVENT).all()
    np.testing.assert_array_equal(state["weights"]["y"], 0)  # y was not among what moves
    np.testing.assert_allclose(first["x"], np.exp(-np.array([[1.0], [2.0]]) * first["time"]), rtol=1e-7)
    assert first["x"][:, -1] == pytest.approx(0.5) and second["x"][:, 0] == pytest.approx(0.5)


def test_an_event_that_has_already_happened_takes_no_time():
    state, _ = go([Stage("one", ("x",), "all", Until("x", 2.0, rising=False), limit=100.0)])
    assert (state["ended"] == 0).all() and (state["outcome"] == flow.EVENT).all()


def test_a_stage_that_runs_out_of_time_says_so_and_the_next_is_not_run():
    state, _ = go(
        [
            Stage("one", ("x",), "all", Until("x", 2.0), limit=3.0),
            Stage("two", ("x",), "all", Until("x", 0.01, rising=False), limit=3.0),
        ]
    )
    assert (state["outcome"] == [flow.TIME_RAN_OUT, flow.NOT_RUN]).all()
    assert np.isnan(state["ended"]).all()


def test_a_start_that_is_not_a_number_is_no_success():
    program = Flow(Decay(), (Stage("one", ("x",), "all", Until("x", 0.5, rising=False), limit=1.0),))
    state = begin({"x": np.array([np.nan]), "y": np.zeros(1)}, {"rate": np.ones(1)}, 1)
    state, _ = program.advance(state, 0)
    assert state["outcome"][0, 0] == flow.NOT_FINITE and np.isnan(state["ended"][0, 0])


def test_a_solver_that_gives_up_is_reported():
    state, _ = go(
        [Stage("one", ("x",), "all", Until("x", 1e-30, rising=False), limit=1e3)], max_solver_steps=16
    )
    assert (state["outcome"] == flow.GAVE_UP).all()


def test_all_stages_share_one_compilation(compilations):
    go(
        [
            Stage(str(i), ("x",), "all", Until("x", 0.5 - 0.1 * i, rising=False), limit=10.0 + i)
            for i in range(4)
        ],
        rate=(1, 2, 3.0),
    )
    assert compilations("_solve") == 1


@pytest.mark.slow
def test_the_three_stage_flow_agrees_with_scipy():
    experiment = ThreeStages(width=16, seeds=1, initial_scale=0.3)
    program, state = experiment.program(), experiment.start(np.arange(1))
    motion = Closed(experiment.task)
    constants = {name: value[0] for name, value in state["constants"].items()}
    for chunk, stage in enumerate(program.stages[:3]):
        before = {name: np.asarray(value[0]) for name, value in state["weights"].items()}
        state, _ = program.advance(state, chunk)
        after = {name: np.asarray(value[0]) for name, value in state["weights"].items()}
        lasted = state["ended"][0, chunk] - (state["ended"][0, chunk - 1] if chunk else 0)
        shapes, sizes = [before[n].shape for n in before], [before[n].size for n in before]

        def field(t, y):
            parts = np.split(y, np.cumsum(sizes)[:-1])
            w = {name: part.reshape(shape) for name, part, shape in zip(before, parts, shapes)}
            v = motion.velocity(w, constants, motion.samples(stage.samples))
            return np.concatenate([np.asarray(v[n]).ravel() * (n in stage.moves) for n in before])

        start = np.concatenate([before[name].ravel() for name in before])
        solved = solve_ivp(field, (0, lasted), start, method="DOP853", rtol=1e-9, atol=1e-12)
        ours = np.concatenate([after[name].ravel() for name in before])
        np.testing.assert_allclose(ours, solved.y[:, -1], atol=2e-6)
