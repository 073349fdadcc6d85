"""The theory's closed forms: against the plain model, against scipy, against each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

from stagewise.errors import Refused
from stagewise.papers.lego import identities, recursion
from stagewise.papers.lego.activation import clipped, smooth_relu, smooth_relu_b2
from stagewise.papers.lego.algorithms import learn_attention, learn_one_step
from stagewise.papers.lego.closed import (
    SCORES,
    attention,
    balance,
    chains,
    concentration,
    follow,
    ideal_features,
    scales,
    seen_by_neurons,
)
from stagewise.papers.lego.experiments import (
    DecoderTraining,
    Identities,
    OneStep,
    Recursion,
    Retrieval,
    TwoSteps,
)
from stagewise.papers.lego.initial import embedding
from stagewise.papers.lego.one_step import OneStep as Features
from stagewise.papers.lego.plain import Language
from stagewise.papers.lego.readings import half_sums, in_order
from stagewise.papers.lego.tensor_power import hitting_time, loser, race
from stagewise.papers.lego.two_steps import TwoSteps as Attention
from stagewise.papers.lego.two_steps import lane
from stagewise.tasks.groups import Action
from stagewise.training.program import DATA, generator
from tests.tiers import some_fast


@pytest.mark.parametrize("name", ["C3", "S3"])
def test_formulas_and_closed_forms_are_the_plain_model(name):
    found = identities.measure(Identities(action=Action(name)), 0)
    for formula in ("fact_a", "lemma_a", "fact_b", "fact_d", "lemma_d", "one_step", "retrieval", "two_steps"):
        assert float(found[formula]) < 1e-11, formula
    for perturbed in ("lemma_a_unweighted", "fact_b_without_loss", "fact_d_not_centred"):
        assert float(found[perturbed]) > 0.01, perturbed


def test_smooth_relu_is_smooth_in_both_forms():
    x = jnp.linspace(-3, 3, 6001)
    for f in (lambda x: smooth_relu(x, 0.5, 8.0), lambda x: smooth_relu_b2(x, 0.5, 8.0, 0.1, 2.0)):
        assert np.abs(np.diff(f(x))).max() < 2e-3  # no jumps: slopes are at most 1, steps 1e-3
    slope = np.asarray(jax.vmap(jax.grad(lambda x: smooth_relu(x, 0.5, 8.0)))(x))
    jumps = np.abs(np.diff(slope))
    assert jumps[x[1:] > -0.49].max() < 0.02 and slope[0] == 0 and slope[-1] == 1
    # At -rho, where the definition is said to be continuously differentiable and is not.
    assert slope[np.searchsorted(x, -0.4995)] < -0.9 and slope[np.searchsorted(x, -0.502)] == 0
    assert float(smooth_relu(jnp.asarray(-3.0), 0.5, 8.0)) == pytest.approx(0.5 / 8)
    assert float(smooth_relu(jnp.asarray(2.0), 0.5, 8.0)) == pytest.approx(2 - 0.5 * 7 / 8)


def test_a_narrow_clip_is_the_sharp_one():
    x = jnp.linspace(-1, 3, 401)
    np.testing.assert_allclose(clipped(x, 1.0, 1e-4), jnp.minimum(x, 1.0), atol=1e-4)
    np.testing.assert_array_equal(clipped(x, 1.0, 0.0), jnp.minimum(x, 1.0))


def test_ideal_features_answer_and_balance():
    for name in ("C6", "S3", "S4"):
        table = Action(name).maps()
        features, actions = ideal_features(table, 1.0), len(table)
        for g in range(actions):
            for y in range(table.shape[1]):
                halves = (features[..., g] + features[..., actions + y]) / 2
                assert np.unravel_index(halves.argmax(), halves.shape) == (table[g, y], y)
                assert halves.max() == pytest.approx(1.0)
                others = np.delete(halves.ravel(), halves.argmax())
                assert others.max() <= 1e-12  # what is half right cancels
    assert balance(Action("C6").maps()) == 1 and balance(Action("S3").maps()) == 1.25


def test_attention_of_four_numbers_is_a_softmax():
    scores = dict(zip(SCORES, (1.3, 0.4, -0.2, 0.1)))
    for length, step in ((2, 2), (5, 3), (8, 1)):
        row = np.concatenate(
            [np.full(length, scores["other_predicates"]), np.full(step, scores["other_answers"])]
        )
        row[step - 1], row[-1] = scores["predicate"], scores["answer"]
        expected = np.exp(row) / np.exp(row).sum()
        paid = attention(scores, length, step)
        assert paid["predicate"] == pytest.approx(expected[step - 1]) and paid["answer"] == pytest.approx(
            expected[-1]
        )
        assert concentration(scores, length, step)[0] == pytest.approx(1 - expected[step - 1] - expected[-1])


@pytest.mark.parametrize("name", some_fast(["C4", "S3", "S4"], "C4"))
def test_one_first_value_stands_for_all(name):
    """With ideal features the flow is the same whether chains begin with every value or with one."""
    table, constants = (
        Action(name).maps(),
        scales(256.0, 2.0, 2.0, 4) | {"clip_width": 0.05, "variables": 200.0},
    )
    features, steps = ideal_features(table, constants["top"]), ((2, 1), (2, 2))
    motion, scores = Attention(2, table.shape[1]), dict(zip(SCORES, (1.1, 0.7, -0.1, 0.2)))
    whole, one = (
        motion.velocity(
            scores, constants | lane(table, features, steps, 10**5, np.random.default_rng(0), firsts), None
        )
        for firsts in (None, 1)
    )
    for score in SCORES:
        assert float(one[score]) == pytest.approx(float(whole[score]), rel=1e-10)


def test_what_neurons_see_is_a_sum_over_clauses():
    table, rng = Action("S3").maps(), np.random.default_rng(0)
    features = rng.standard_normal((3, 4, 9))
    chosen, passed = chains(table, 4, 50, rng)
    scores, step = dict(zip(SCORES, rng.standard_normal(4))), 3
    paid = attention(scores, 4, step)
    seen, target = seen_by_neurons(features, chosen, passed, step)
    for n in range(5):
        expected = sum(
            paid["predicate" if k == step - 1 else "other_predicates"] * features[..., chosen[n, k]]
            for k in range(4)
        )
        expected = expected + sum(
            paid["answer" if k == step - 1 else "other_answers"] * features[..., 6 + passed[n, k]]
            for k in range(step)
        )
        np.testing.assert_allclose(seen[n] @ np.array([paid[name] for name in SCORES]), expected, atol=1e-12)
    assert np.array_equal(target, passed[:, step])


def test_walking_is_stepping():
    """`follow` keeps running sums; step by step from the clauses it is the same."""
    table, constants = Action("S3").maps(), scales(256.0, 2.0, 2.0, 4)
    features, scores = (
        ideal_features(table, constants["top"]),
        {"predicate": 2.5, "answer": 2.0, "other_predicates": 0.0, "other_answers": 0.0},
    )
    found = follow(features, table, scores, 12, constants, np.random.default_rng(1), count=200)
    chosen, passed = chains(table, 12, 200, np.random.default_rng(1))
    right = np.ones(200, bool)
    for step in range(1, 13):
        seen, target = seen_by_neurons(features, chosen, passed, step)
        paid = np.array([attention(scores, 12, step)[name] for name in SCORES])
        right &= _outputs(constants["bias"] + seen @ paid, constants).argmax(1) == target
    assert found["chain"] == pytest.approx(right.mean()) and 0.05 < right.mean() < 0.95


def _outputs(seen, constants):
    return np.minimum(
        np.asarray(smooth_relu(jnp.asarray(seen), constants["rho"], constants["q"])).sum(-1), constants["top"]
    )


def test_stage_2_follows_scipys_own_solution():
    settings = TwoSteps(action=Action("C3"), vocabulary=256.0, last=1.0)
    program, state = settings.program(), settings.start(np.array([0]))
    state, records = program.advance(state, 0)
    constants = scales(256.0, 2.0, 2.0, 4) | {"clip_width": 0.05, "variables": 200.0}
    table = Action("C3").maps()
    constants |= lane(
        table, ideal_features(table, constants["top"]), settings.losses, 4000, generator(0, DATA)
    )
    motion = Attention(len(settings.losses), 3)
    field = jax.jit(
        lambda y: jnp.stack([motion.velocity(dict(zip(SCORES, y)), constants, None)[name] for name in SCORES])
    )
    other = solve_ivp(
        lambda t, y: np.asarray(field(y)), (0, 256.0), np.zeros(4), method="Radau", rtol=1e-8, atol=1e-10
    )
    for i, name in enumerate(SCORES):
        assert records[name][0, -1] == pytest.approx(other.y[i, -1], abs=2e-5)
    assert records["time"][0, -1] == pytest.approx(256.0)


def test_algorithm_1_moves_attention_as_four_numbers_do():
    """Thirty steps of gradient descent on the full score matrices, from zero, against the same steps of the
    closed form."""
    n, table, steps, rate = 5, Action("C3").maps(), ((2, 1), (2, 2)), 0.05
    language = Language(n, tuple(map(tuple, table.tolist())))
    constants = scales(language.size, 2.0, 2.0, 4) | {"clip_width": 0.05}
    features, there, its = (
        ideal_features(table, constants["top"]),
        language.where("actions"),
        language.where("values"),
    )
    weights = np.zeros((language.size, 3, 5, language.size))
    weights[its, :, 1, there], weights[its, :, 4, its] = features[..., :3], features[..., 3:]
    start = jnp.zeros((5, language.size, 5, language.size))
    scores = np.array(learn_attention(language, jnp.asarray(weights), start, (1, 2), n * rate, 30, constants))
    held = constants | {"variables": float(n)} | lane(table, features, steps, 10**5, np.random.default_rng(0))
    motion, four = Attention(2, 3), dict.fromkeys(SCORES, 0.0)
    for _ in range(30):
        velocity = motion.velocity(four, held, None)
        four = {name: four[name] + rate * float(velocity[name]) for name in SCORES}
    eye = np.eye(n, dtype=bool)
    for name, slot, where in (
        ("predicate", 2, eye),
        ("answer", 3, eye),
        ("other_predicates", 2, ~eye),
        ("other_answers", 3, ~eye),
    ):
        np.testing.assert_allclose(scores[3, :n, slot, :n][where], four[name], atol=1e-10, err_msg=name)
    assert four["predicate"] > 0.5  # they did move
    scores[3, :n, 2:4, :n] = 0
    assert not scores.any()


def test_stage_1_moves_neurons_as_features_do():
    """Twenty steps with neurons of values on actions and values alone; other classes rest, as the closed form
    has them."""
    language, m, rate = Language(3, tuple(map(tuple, Action("C3").maps().tolist()))), 4, 0.5
    constants = scales(language.size, 2.0, 2.0, 4) | {"clip_width": 0.05}
    there, its, rng = language.where("actions"), language.where("values"), np.random.default_rng(0)
    weights = np.zeros((language.size, m, 5, language.size))
    weights[its, :, 1, there], weights[its, :, 4, its] = (
        0.5 * rng.standard_normal((3, m, 3)),
        0.5 * rng.standard_normal((3, m, 3)),
    )
    moved = np.asarray(learn_one_step(language, jnp.asarray(weights), 5, rate, 20, constants, seen=(2, 5)))
    held = constants | {"gram_actions": np.eye(3), "gram_values": np.eye(3)}
    features, motion = (
        jnp.concatenate([weights[its, :, 1, there], weights[its, :, 4, its]], -1),
        Features(language.table, m),
    )
    for _ in range(20):
        features = features + rate * motion.velocity({"V": features}, held, None)["V"]
    # the other classes do move in the model, by O(1/d) each
    np.testing.assert_allclose(
        np.concatenate([moved[its, :, 1, there], moved[its, :, 4, its]], -1), features, atol=0.05
    )
    assert np.abs(moved[its] - weights[its]).max() > 0.3


def test_own_answers_are_the_models_own():
    """With sharp attention they are true; with none at all they are what uniform attention gives."""
    table, constants = Action("S3").maps(), scales(256.0, 2.0, 2.0, 4)
    features, rng = ideal_features(table, constants["top"]), np.random.default_rng(0)
    chosen, passed = chains(table, 8, 300, rng)
    sharp, flat = (
        {"predicate": a, "answer": a, "other_predicates": 0.0, "other_answers": 0.0} for a in (8.0, 0.0)
    )
    assert np.array_equal(
        recursion.self_labels(features, table, sharp, 8, chosen, passed, constants), passed[:, :3]
    )
    assert not np.array_equal(
        recursion.self_labels(features, table, flat, 8, chosen, passed, constants), passed[:, :3]
    )


def test_tensor_powers_follow_their_flow():
    q, S = 6, 1.5
    grown = solve_ivp(
        lambda t, z: [z[0] ** (q - 1), S * z[1] ** (q - 1)],
        (0, hitting_time(q, 0.2, 1.0)),
        [0.2, 0.15],
        rtol=1e-10,
        atol=1e-14,
    )
    assert grown.y[0, -1] == pytest.approx(1.0, rel=1e-4)
    assert grown.y[1, -1] == pytest.approx(loser(q, 0.2, 0.15, S, 1.0), rel=1e-6)
    time, y = race(q, 0.2, 0.15, S, 1.0, 1e-4)
    assert time == pytest.approx(hitting_time(q, 0.2, 1.0), rel=1e-3) and y == pytest.approx(
        loser(q, 0.2, 0.15, S, 1.0), rel=1e-3
    )
    expected, _ = quad(lambda x: (0.1 * x + 0.5) ** 5 * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi), -10, 10)
    noisy = race(q, 0.5, 0.1, 1.0, 0.5 + 1e-9, 1e-6, noise=0.1)[0]  # one step: rate x / E(xi + x)^5
    assert noisy == pytest.approx(1e-6 * 0.5 / expected, rel=1e-9)


def test_curriculum_takes_each_neuron_and_feature_once():
    first = half_sums(np.random.default_rng(0).standard_normal((4, 8, 8)), Action("C4"))
    order = in_order(first)
    assert (
        len(order) == 16
        and len({(j, r) for j, r, _ in order}) == 16
        and len({(j, y) for j, _, y in order}) == 16
    )
    sizes = [first[jry] for jry in order]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] == first.max()


def test_embeddings_have_their_condition():
    skewed = embedding(5, 4.0, np.random.default_rng(0))
    assert np.linalg.cond(skewed.T @ skewed) == pytest.approx(4.0)
    assert np.array_equal(embedding(5, 1.0, np.random.default_rng(0)), np.eye(5))


@pytest.mark.parametrize(
    "cls, wrong, message",
    [
        (DecoderTraining, {"lengths": (5, 10, 10)}, "must grow"),
        (DecoderTraining, {"tested": (5, 180)}, "between 1 and 179"),
        (DecoderTraining, {"answers": 3}, "less than one chain"),
        (DecoderTraining, {"decoder.heads": 3}, "3 heads do not divide"),
        (
            DecoderTraining,
            {"decoder.encoding": "learned", "decoder.places": 100},
            "more than the 100 that are encoded",
        ),
        (OneStep, {"q": 5}, "q must be even"),
        (OneStep, {"vocabulary": 3.0}, "vocabulary must lie between"),
        (Recursion, {"target": 5.5}, "below the least"),
        (Retrieval, {"variables": 2}, "variables must lie between"),
    ],
)
def test_bad_settings_are_refused(cls, wrong, message):
    with pytest.raises(Refused, match=message):
        cls.at("standard", **wrong)
