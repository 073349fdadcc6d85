"""The paper's theory in code, against other ways to compute the same thing."""

import jax
import numpy as np
import pytest
from scipy.optimize import minimize

import stagewise as sw
from stagewise.papers.mixture import appendix_b, construction
from stagewise.papers.mixture.closed import Closed, outputs
from stagewise.papers.mixture.experiments import (
    JointTraining,
    SymmetricStages,
    SymmetricTraining,
    ThreeStagesByDescent,
)
from stagewise.papers.mixture.orbits import Orbits
from stagewise.probes.margin import maximum_margin
from stagewise.tasks.mixture import Mixture


def some_state(task, seed=0):
    n, rng = 2 * task.groups, np.random.default_rng(seed)
    W = rng.normal(size=(2, 7, 2 * n)) * 0.7
    return {"neurons": rng.normal(size=(2, n)), "gram": np.einsum("hma,hmb->hab", W, W)}


@pytest.mark.parametrize("task", [Mixture(), Mixture(3, 4), Mixture(4, 5)])
@pytest.mark.parametrize("kind", ["all", "conflicting"])
def test_appendix_b_agrees_with_automatic_differentiation(task, kind):
    state, n = some_state(task), 2 * task.groups
    K, S, Q = state["gram"][:, :n, :n], state["gram"][:, :n, n:], state["gram"][:, n:, n:]
    by_hand = appendix_b.velocity(task, state["neurons"], S, K, Q, 0.5, kind)
    by_machine = Closed(task).velocity(state, {"bias": 0.5}, task.kinds()[kind])
    np.testing.assert_allclose(by_hand["neurons"], by_machine["neurons"], atol=1e-13)
    gram = np.block(
        [
            [by_hand["key_self"], by_hand["scores"]],
            [np.swapaxes(by_hand["scores"], 1, 2), by_hand["query_self"]],
        ]
    )
    np.testing.assert_allclose(gram, by_machine["gram"], atol=1e-12)


def test_appendix_b_responds_like_the_model():
    task, state = Mixture(3, 4), some_state(Mixture(3, 4), 1)
    S = state["gram"][:, :6, 6:]
    heads, f = outputs(task, state["neurons"], S, 0.5)
    seen = appendix_b.respond(task, state["neurons"], S, 0.5)
    np.testing.assert_allclose(seen.heads, heads, atol=1e-12)
    np.testing.assert_allclose(seen.f, f, atol=1e-12)


@pytest.mark.parametrize("groups, length", [(2, 3), (3, 3), (3, 4), (2, 5), (4, 5)])
def test_orbits_are_the_population_folded(groups, length):
    task, orbits = Mixture(groups, length), Orbits(length)
    for kind, weight in orbits.kinds(groups).items():
        full = task.kinds()[kind]
        assert weight.sum() == pytest.approx(1)
        sizes = np.sort(weight[weight > 0])
        samples = task.population()
        rows = (samples.signal[:, 0] == 0) & (samples.label > 0)
        folded = {}
        for name, w in zip(np.flatnonzero(rows), full[rows]):
            others = samples.signal[name, 2:], samples.sign[name, 2:]
            key = tuple(
                sorted(
                    (int((others[1][others[0] == s] > 0).sum()), int((others[1][others[0] == s] < 0).sum()))
                    for s in set(others[0])
                )
            )
            folded[key] = folded.get(key, 0) + w * 2 * groups
        np.testing.assert_allclose(np.sort([w for w in folded.values() if w > 0]), sizes, atol=1e-14)


@pytest.mark.parametrize("task", [Mixture(), Mixture(3, 4), Mixture(4, 3)])
def test_orbit_reduction_equals_the_full_population(runs, task):
    settings = dict(task=task, steps=1500, initial_scale=0.3)
    reduced = sw.run(SymmetricTraining(**settings), runs=runs)
    full = sw.run(JointTraining(**settings, width="infinite"), runs=runs)
    np.testing.assert_allclose(
        reduced.trajectory.loss.isel(record=-1), full.trajectory.loss.isel(record=-1), atol=1e-12
    )
    np.testing.assert_allclose(reduced.model().scores, full.model().scores, atol=1e-11)
    np.testing.assert_allclose(reduced.model().neurons, full.model().neurons, atol=1e-11)


def test_any_number_of_groups_is_one_program():
    programs = {SymmetricTraining(task=Mixture(K)).program() for K in (2, 5, 32)}
    assert len(programs) == 1
    assert len({SymmetricStages(task=Mixture(K)).program() for K in (2, 5, 32)}) == 1


@pytest.mark.parametrize("shape", [(2, 3), (3, 3), (8, 3), (2, 4), (3, 6)])
def test_construction(shape):
    task = Mixture(*shape)
    assert construction.accuracy(task, construction.repaired(task, 40.0)) == pytest.approx(1)
    assert construction.accuracy(task, construction.printed(task, 40.0)) == pytest.approx(0.5)
    label = task.population().label
    np.testing.assert_allclose(construction.repaired(task, 60.0) * 2 * task.length / 0.5, label, atol=1e-8)


def test_construction_is_a_model(runs):
    from stagewise.models.two_heads import ScoredTwoHeads

    task = Mixture(3, 4)
    u, c = np.repeat([0.0, 1.0], 3), np.repeat([1.0, 0.0], 3)
    scale = 0.5 / 8
    model = ScoredTwoHeads(
        neurons=jax.numpy.asarray(scale * np.stack([u - 2 * c, u])),
        scores=jax.numpy.asarray(construction.attention_scores(task, 40.0)),
        bias=jax.numpy.asarray(0.5),
    )
    f = jax.vmap(model)(task.tokens(task.population()))
    np.testing.assert_allclose(f, construction.repaired(task, 40.0), atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_margin_agrees_with_a_general_optimiser(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(6, 4)) + 0.8
    best = minimize(
        lambda u: u @ u,
        np.ones(4),
        constraints={"type": "ineq", "fun": lambda u: rows @ u - 1},
        method="SLSQP",
    )
    expected = 1 / np.linalg.norm(best.x) if best.success else 0.0
    assert maximum_margin(rows) == pytest.approx(expected, rel=1e-5)
    assert maximum_margin(np.vstack([rows, -rows[:1]])) == 0


def test_staged_descent_moves_only_what_its_stage_says(runs):
    run = sw.run(ThreeStagesByDescent(width=16, seeds=3, initial_scale=0.3), runs=runs).trajectory
    for seed in range(3):
        one = run.isel(seed=seed)
        in_stage_1, in_stage_2 = one.stage.values < 2, one.stage.values == 2
        assert np.ptp(one.scores.values[in_stage_1], axis=0).max() == 0
        assert (
            np.ptp(one.neurons.values[in_stage_2], axis=0).max() == 0
            and np.ptp(one.scores.values[in_stage_2], axis=0).max() > 0
        )
    assert (run.done_at > 0).all() and (run.loss.sel(kind="all").isel(record=-1) <= 0.01).all()
    ends = run.ended_at.isel(record=-1).values
    assert (np.diff(ends, axis=1) > 0).all() and (run.outcome.isel(record=-1) == 0).all()
    resting = run.isel(record=run.stage.values[0] == 4)
    assert np.ptp(resting.neurons.values[0], axis=0).max() == 0  # from the step of its last event on


def test_a_stage_of_descent_that_runs_out_of_steps_says_so(runs):
    run = sw.run(ThreeStagesByDescent(width=16, seeds=2, steps=100, learning_rate=0.01), runs=runs).trajectory
    from stagewise.training.stages import EVENT, NOT_RUN, TIME_RAN_OUT

    assert (
        run.outcome.isel(record=-1).values == [TIME_RAN_OUT, NOT_RUN, NOT_RUN, NOT_RUN]
    ).all() and EVENT not in run.outcome.values
