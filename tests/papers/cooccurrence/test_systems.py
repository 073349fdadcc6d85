"""The gradients and the closed systems against automatic differentiation, against each other, and against
scipy."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import stagewise as sw
from stagewise.errors import Refused
from stagewise.papers.cooccurrence import appendix_b, closed, forms, initial, response
from stagewise.papers.cooccurrence.experiments import (
    SHARED,
    Descent,
    FlowToTimes,
    Start,
    ThreeForms,
    TwoPhases,
)
from stagewise.tasks.cooccurrence import Cooccurrence
from stagewise.training.program import DATA, generator

SMALL = ThreeForms()
STARTS = ("condition1", "torch_linear", "kaiming_linear", "kaiming_normal")


def drawn(settings, seed=0):
    w = initial.draw_weights(settings, seed)
    sentences = settings.task.training_set(generator(seed, DATA))
    constants = initial.data(settings, seed) | {"signs": w["signs"]}
    return w, sentences, {name: jnp.asarray(value) for name, value in constants.items()}


def near(ours, theirs, tolerance=1e-12):
    for name in theirs:
        scale = np.max(abs(np.asarray(theirs[name])))
        np.testing.assert_allclose(ours[name], theirs[name], rtol=0, atol=tolerance * scale, err_msg=name)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("irrelevant", ["distinct", "shared"])
def test_gradients_of_appendix_b_are_those_of_the_model(start, irrelevant):
    # With 8 words some occur twice in a sequence.
    task = Cooccurrence(12, 5, 35 if irrelevant == "distinct" else 8, irrelevant)
    w, sentences, constants = drawn(replace(SMALL, initial=start, task=task), seed=3)
    near(appendix_b.flow(w, sentences), forms.plain_velocity(w, constants))


@pytest.mark.parametrize("start", STARTS)
def test_systems_of_appendix_c_are_the_flow_of_the_weights(start):
    w, sentences, constants = drawn(replace(SMALL, initial=start, task=Cooccurrence(12, 5, 8)), seed=1)
    plain = {name: w[name] for name in forms.WEIGHTS}
    along = (plain,), (forms.plain_velocity(plain, constants),)
    kinds, moved = jax.jvp(lambda w: forms.inner_products(w, constants["signs"]), *along)
    near(
        forms.six_kinds_velocity({name: kinds[name] for name in forms.SIX}, constants),
        {name: moved[name] for name in forms.SIX},
    )
    near(
        closed.velocity({name: kinds[name] for name in forms.COMPACT}, constants),
        {name: moved[name] for name in forms.COMPACT},
    )
    printed = [
        appendix_b.score_speed(w, sentences, key, query) for key, query in ((0, 1), (2, 0), (0, 5), (5, 5))
    ]
    np.testing.assert_allclose(
        printed, [moved["S"][pair] for pair in ((0, 1), (2, 0), (0, 5), (5, 5))], rtol=1e-11
    )


def test_the_pulls_are_the_gradients_in_G_and_S():
    w, _, constants = drawn(replace(SMALL, task=Cooccurrence(12, 5, 8)))
    state = initial.inner_products(w)

    def loss(G, S):
        F = response.outputs(
            response.attend(S, constants["tokens"], constants["present"], constants["width"]),
            G,
            constants["tokens"],
        )
        return jnp.mean(jax.nn.softplus(-constants["label"] * F))

    dG, dS = jax.grad(loss, (0, 1))(jnp.asarray(state["G"]), jnp.asarray(state["S"]))
    b, M = response.pulls(jnp.asarray(state["G"]), jnp.asarray(state["S"]), constants)
    dense = response.times(M, constants["tokens"], jnp.eye(len(b)))
    near(
        {"b": b, "M": dense, "MT": response.transposed_times(M, constants["tokens"], jnp.eye(len(b)))},
        {"b": -dG, "M": -dS, "MT": -dS.T},
    )


def test_descent_is_exact_over_many_steps():
    w, sentences, constants = drawn(replace(SMALL, initial="torch_linear"))
    state, rate = {name: jnp.asarray(v) for name, v in initial.inner_products(w).items()}, 0.1
    step = jax.jit(closed.descend)
    for _ in range(60):
        state = step(state, constants, rate)
        moved = appendix_b.flow(w, sentences)
        w = {name: value + rate * moved[name] if name in moved else value for name, value in w.items()}
    near(state, initial.inner_products(w), 1e-12)


def test_the_neurons_that_ride_along_move_as_in_the_six_kinds():
    w, _, constants = drawn(SMALL)
    kinds = {name: jnp.asarray(v) for name, v in forms.inner_products(w, w["signs"]).items()}
    followed = initial.followed_neurons(w)
    constants["signs"] = jnp.asarray(followed["signs"])  # padded with neurons that are not there
    b, _ = response.pulls(kinds["G"], kinds["S"], constants)
    ours = closed.neuron_velocity(
        kinds | {name: jnp.asarray(followed[name]) for name in closed.NEURONS}, b, constants
    )
    theirs = forms.six_kinds_velocity(
        {name: kinds[name] for name in forms.SIX}, constants | {"signs": jnp.asarray(w["signs"])}
    )
    there = len(w["signs"])
    near({"H": ours["H"][:there], "N": ours["N"][:there, :there]}, {"H": theirs["H"], "N": theirs["N"]})
    np.testing.assert_allclose(ours["Na"][:there], theirs["N"] @ w["signs"], rtol=1e-10)
    assert not np.any(ours["H"][there:]) and not np.any(ours["N"][there:])


@pytest.mark.slow
def test_the_flow_agrees_with_scipy(runs):
    settings = TwoPhases(
        task=Cooccurrence(12, 5, 35, "distinct"), width=16, neurons=8, target_loss=0.05, seeds=1
    )
    flow = sw.run(settings, runs=runs)
    w, _, constants = drawn(settings)
    state = initial.inner_products(w)
    names, shapes = list(state), {name: np.shape(value) for name, value in state.items()}
    sizes = np.cumsum([0] + [int(np.prod(shape)) for shape in shapes.values()])
    velocity = jax.jit(closed.velocity)

    def field(_, flat):
        parts = {name: flat[a:b].reshape(shapes[name]) for name, a, b in zip(names, sizes, sizes[1:])}
        moved = velocity(parts, constants)
        return np.concatenate([np.ravel(moved[name]) for name in names])

    end = flow.trajectory.time.isel(seed=0, record=-1).item()
    solved = solve_ivp(
        field,
        (0, end),
        np.concatenate([np.ravel(state[name]) for name in names]),
        method="DOP853",
        rtol=1e-9,
        atol=1e-12,
    )
    final = {name: solved.y[a:b, -1].reshape(shapes[name]) for name, a, b in zip(names, sizes, sizes[1:])}
    mine = flow.trajectory.isel(seed=0, record=-1)
    np.testing.assert_allclose(mine.G, final["G"][:3], rtol=1e-4)
    np.testing.assert_allclose(mine.scores, final["S"][:3, :3], rtol=1e-4)
    np.testing.assert_allclose(mine.alpha, final["alpha"], rtol=1e-4)
    model = flow.model(seed=0)
    F = jax.vmap(model)(jnp.asarray(constants["tokens"]))
    np.testing.assert_allclose(np.mean(np.logaddexp(0, -constants["label"] * F)), mine.loss, rtol=1e-9)
    for name in ("value_invariant", "score_invariant"):
        drift = abs(flow.trajectory[name] - flow.trajectory[name].isel(record=0)).max()
        assert drift <= 1e-11 * flow.trajectory.alpha.max()


@pytest.mark.slow
def test_padding_changes_nothing(runs, monkeypatch):
    from stagewise.papers.cooccurrence import experiments

    settings = TwoPhases(
        task=Cooccurrence(12, 5, 35, "distinct"), width=16, neurons=8, target_loss=0.1, seeds=2
    )
    padded = sw.run(settings, runs=runs).trajectory
    monkeypatch.setattr(experiments, "COMPILED", ())
    exact = sw.run(settings, runs=runs.parent / "exact").trajectory
    for name in (
        "loss",
        "type_loss",
        "G",
        "scores",
        "alpha",
        "dattention",
        "margin_speed",
        "error_ratio",
        "neuron_change",
        "test_loss",
    ):
        np.testing.assert_allclose(
            padded[name].isel(record=-1), exact[name].isel(record=-1), rtol=2e-4, atol=1e-12, err_msg=name
        )


def test_one_program_serves_all_flows(runs, compilations):
    for settings in (
        TwoPhases(width=8, neurons=4, seeds=1, target_loss=0.3, task=Cooccurrence(12, 5, 35, "distinct")),
        TwoPhases(
            width=16,
            neurons=40,
            seeds=2,
            target_loss=0.2,
            task=SHARED,
            initial="torch_linear",
            trains="values",
        ),
    ):
        sw.run(settings, runs=runs)
    assert compilations("_solve") <= 1


def test_descent_goes_to_the_flow_as_the_rate_falls(runs):
    task = Cooccurrence(12, 5, 16)
    flow = sw.run(
        FlowToTimes(task=task, width=16, neurons=8, learning_rate=0.01, epochs=400, seeds=1), runs=runs
    )
    target = flow.trajectory.G.isel(record=-1).values
    off = []
    for rate, epochs in ((0.04, 100), (0.02, 200), (0.01, 400)):
        end = sw.run(
            Descent(task=task, width=16, neurons=8, learning_rate=rate, epochs=epochs, seeds=1), runs=runs
        ).trajectory.G.isel(record=-1)
        off.append(abs(end.values - target).max())
    # First order.
    assert off[0] / off[1] == pytest.approx(2, rel=0.25) and off[1] / off[2] == pytest.approx(2, rel=0.25)


def test_starts_have_their_scales():
    for start in STARTS:
        scale = {"attention_scale": 0.5} if start == "condition1" else {}
        settings = TwoPhases(task=SHARED, initial=start, width=200, neurons=300, **scale)
        w, (s0, s1) = initial.draw_weights(settings, 0), settings.scales()
        assert w["W"].std() == pytest.approx(s1, rel=0.02) and w["WK"].std() == pytest.approx(s0, rel=0.03)
    uniform = initial.draw_weights(TwoPhases(task=SHARED, initial="torch_linear"), 0)
    assert abs(uniform["W"]).max() <= 1 / np.sqrt(128) and abs(uniform["WV"]).max() <= 1 / np.sqrt(64)


@pytest.mark.parametrize(
    "wrong, says",
    [
        (dict(width=0), "width"),
        (dict(neurons=0), "neurons"),
        (dict(attention_scale=0.0), "attention_scale"),
        (dict(neuron_scale=-1.0), "neuron_scale"),
        (dict(target_loss=0.0), "target_loss"),
        (dict(task=Cooccurrence(vocabulary=6000)), "vocabulary"),
    ],
)
def test_bad_settings_are_refused(wrong, says):
    with pytest.raises(Refused, match=says):
        TwoPhases(**wrong)


def test_the_start_trains_nothing(runs):
    run = sw.run(Start(width=32, neurons=8, seeds=2), runs=runs)
    with pytest.raises(Refused, match="trains nothing"):
        run.model(seed=0)
