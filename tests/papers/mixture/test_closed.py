"""The closed system against the weights it stands for."""

import jax.numpy as jnp
import numpy as np
import pytest

import stagewise as sw
from stagewise.papers.mixture.experiments import JointTraining, ThreeStages
from stagewise.tasks.mixture import Mixture


@pytest.mark.parametrize("task", [Mixture(), Mixture(3, 4, dimension=10)])
def test_closed_descent_equals_descent_on_weights_for_a_thousand_steps(runs, task):
    settings = dict(task=task, width=16, initial_scale=0.3, steps=1000, seeds=2)
    closed = sw.run(JointTraining(**settings), runs=runs).trajectory
    plain = sw.run(JointTraining(**settings, form="weights"), runs=runs).trajectory
    for name in ("loss", "neurons", "scores", "key_self", "query_self"):
        np.testing.assert_allclose(closed[name], plain[name], atol=1e-10, err_msg=name)


@pytest.mark.parametrize("task", [Mixture(), Mixture(dimension=7)])
def test_the_trained_model_is_the_recorded_one(runs, task):
    tokens = task.tokens(task.population())
    for form in ("closed", "weights"):
        run = sw.run(JointTraining(task=task, width=8, steps=300, seeds=3, form=form), runs=runs)
        samples, model = task.population(), run.model(seed=2)
        outputs = jnp.stack([model(x) for x in tokens])
        loss = samples.weight @ np.log1p(np.exp(-samples.label * outputs))
        assert float(loss) == pytest.approx(
            run.trajectory.loss.sel(kind="all").isel(seed=2, record=-1).item(), abs=1e-12
        )
        assert model.attention(tokens[0])["head+"].shape == (3, 3)


def test_flow_keeps_what_it_must(runs):
    """tr(W_K^T W_K) - tr(W_Q^T W_Q) is constant along the flow."""
    stages = sw.run(ThreeStages(width=32, seeds=2), runs=runs).trajectory
    trace = np.trace(stages.key_self - stages.query_self, axis1=-2, axis2=-1)
    np.testing.assert_allclose(trace, np.broadcast_to(trace[:, :1], trace.shape), atol=1e-9)


def test_a_study_is_labelled_and_equals_its_cells(runs):
    study = sw.Study(
        "x",
        "two rates",
        JointTraining.plan(steps=200, seeds=2),
        over={"learning_rate": (0.05, 0.1), "width": (4, "infinite")},
    )
    gathered = sw.run(study.at("quick"), runs=runs)
    assert gathered.sizes["learning_rate"] == 2 and list(gathered.width.values) == ["4", "infinite"]
    alone = sw.run(
        JointTraining(steps=200, seeds=2, learning_rate=0.05, width=4), runs=runs.parent / "other"
    ).trajectory
    np.testing.assert_allclose(
        gathered.scores.sel(learning_rate=0.05, width="4"), alone.scores, rtol=1e-9, atol=1e-14
    )
    assert np.isnan(gathered.scores.sel(width="infinite").isel(seed=1)).all()


def test_cells_that_differ_in_numbers_share_a_compilation(runs, compilations):
    study = sw.Study(
        "x",
        "",
        JointTraining.plan(steps=50, seeds=3),
        over={"learning_rate": (0.01, 0.1), "bias": (0.3, 0.5), "width": (4, 9)},
    )
    sw.run(study.at("quick"), runs=runs)
    assert compilations("_advance") == 1 and compilations("_draw") <= 1
