"""The theory's model: blocks against the dense form, counting and closed forms against automatic
differentiation, constructions, algorithms."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stagewise.errors import Refused
from stagewise.models.attention_only import as_dense, dense, stream
from stagewise.models.blocks import embed
from stagewise.papers.composition import agreement as same
from stagewise.papers.composition import counting, gradients, identities, queries
from stagewise.papers.composition.construction import (
    any_number_of_levels,
    knows_hidden,
    labels,
    theorem4,
    theorem9,
)
from stagewise.papers.composition.experiments import Counting, EncoderTraining, Identities, Same, Theory
from stagewise.papers.composition.initial import hidden_of
from stagewise.papers.composition.learning import begin, layer_names, losses, plan
from stagewise.tasks.composition import Composition, hop
from tests.tiers import some_fast


def sequences(task, batch=6, seed=0):
    return task.draw(np.random.default_rng(seed), batch)


def test_formulas_are_automatic_differentiation():
    found = identities.measure(Identities(), 0)
    for name in (
        "population",
        "counted",
        "readout",
        "block_form",
        "later_losses_mean",
        "untrained_layers",
        "value",
        "value_all",
        "value_by_label",
    ):
        assert np.max(found[name]) < 1e-9, name
    for name in ("readout_uncentred", "later_losses", "value_one"):
        assert np.max(found[name]) > 1e-3, name


def test_numpy_and_jax_run_the_same_model():
    task = Composition(4, 3)
    scores = [np.random.default_rng(1).standard_normal(((n + 2) * 12,) * 2) for n in range(3)]
    sigma = sequences(task)
    ours, patterns = stream(embed(sigma, np.float64), scores)
    theirs, _ = stream(embed(jnp.asarray(sigma), np.float64), scores)
    assert np.allclose(ours, theirs, atol=1e-12) and np.allclose(patterns[2].sum(-1), 1)
    X, key_query, output_value = as_dense(embed(sigma, np.float64)[0], scores)
    assert np.allclose(np.asarray(dense(X, key_query, output_value)).T, ours[0].reshape(12, -1), atol=1e-12)


@pytest.mark.parametrize("levels", [1, 2, 4, 8])
def test_theorem_4_is_exact_from_every_level(levels):
    task = Composition(levels, 3)
    hidden, sigma = task.draw_hidden(np.random.default_rng(3)), sequences(task)
    assert theorem4(hidden, sigma).error(labels(task, hidden, sigma)) < 1e-12
    if levels > 1:
        # As printed: the first level only.
        assert theorem4(hidden, sigma, cyclic=False).error(labels(task, hidden, sigma)) > 0.5
        assert knows_hidden(hidden, sigma).error(labels(task, hidden, sigma)) < 1e-12


@pytest.mark.parametrize("levels", [3, 6, 7])
def test_other_numbers_of_levels_take_one_layer_more_a_bit(levels):
    task = Composition(levels, 3)
    hidden, sigma = task.draw_hidden(np.random.default_rng(4)), sequences(task)
    built = any_number_of_levels(hidden, sigma)
    assert built.error(labels(task, hidden, sigma)) < 1e-12
    assert len(built.scores) == levels.bit_length() + bin(levels).count("1") - 1


@pytest.mark.parametrize("levels, moved", [(4, 0), (8, 3), (8, 8), (32, 4)])
def test_theorem_9_is_exact_in_fewer_dimensions(levels, moved):
    task = Composition(levels, 3, moved)
    hidden, sigma = task.draw_hidden(np.random.default_rng(5)), sequences(task)
    built, first = theorem9(hidden, sigma, moved), slice(0, 3)
    assert built.error(labels(task, hidden, sigma), first) < 1e-12
    assert built.first.shape[-1] == (moved + 2) * 3
    doubled = theorem9(hidden, sigma, moved, repaired=False).error(labels(task, hidden, sigma), first)
    assert np.isclose(doubled, 1 if (hidden[-1] != np.arange(3)).any() else 0)


@pytest.mark.parametrize("layer", [1, 2, 3])
def test_one_query_gradients_are_counted(layer):
    task, rng = Composition(4, 5), np.random.default_rng(6)
    hidden, sigma, queries = task.draw_hidden(rng), sequences(task, 30), rng.integers(20, size=30)
    weights = begin(task, 0.5, np.float64)
    ideal = {"layer1": theorem4(hidden, sigma).scores[0], "layer2": theorem4(hidden, sigma).scores[1]}
    below = {name: ideal[name] for name in layer_names(3)[: layer - 1]}
    name = f"layer{layer}"
    slope = jax.grad(
        lambda W: losses(
            weights | below | {name: W}, task, jnp.asarray(hidden), jnp.asarray(sigma), jnp.asarray(queries)
        )[layer - 1]
    )(weights[name])
    expected = -np.asarray(slope) * task.tokens / 0.5
    found = gradients.counted(hidden, sigma, layer, queries).reshape(expected.shape)
    assert np.allclose(found, expected, atol=1e-12)


def test_counted_gradients_go_to_the_closed_form_and_point_at_the_right_keys():
    found = counting.measure(Counting(task=Composition(2, 3), sizes=(64, 4096)), 0)
    assert (found["noise"][:, 1] < 0.3 * found["noise"][:, 0]).all() and (found["right"][:, 1] == 1).all()


@pytest.mark.parametrize(
    "changes",
    some_fast(
        [
            {},
            {"algorithm": "mixture"},
            {"algorithm": "mixture", "shared": False, "readout": "all", "samples": 1600},
            {"queries": "one", "samples": 20_000, "chunk": 500},
        ],
        {},
    ),
)
def test_both_algorithms_climb_the_staircase(changes):
    settings = Theory(**{"task": Composition(4, 3), "tested": 20, "seeds": 2} | changes)
    program, state, records = settings.program(), settings.start(np.arange(2)), []
    for chunk in range(program.chunks):
        state, found = program.advance(state, chunk)
        records.append(found["loss"])
    seen, curriculum = np.concatenate(records, 1), settings.algorithm == "curriculum"
    assert (seen[:, 0] > 1.09).all() and (seen[:, -1] < 1e-3).all()
    for stage in range(4):
        now = seen[:, stage * (2 if curriculum else 1)]
        assert (now[:, :stage] < (1e-3 if curriculum else 0.6)).all() and (now[:, stage:] > 1.0).all()
    model = settings.model(jax.tree.map(lambda leaf: leaf[0], program.final(state)))
    sigma = sequences(settings.task)
    hidden = hidden_of(settings.task, 0)
    assert np.array_equal(
        np.argmax(model(jnp.asarray(sigma))[:, :, 2], -1), labels(settings.task, hidden, sigma)
    )
    assert list(model.attention(jnp.asarray(sigma))) == layer_names(3)


def test_both_algorithms_learn_the_same_matrices_and_others_of_another_target():
    training = Theory(task=Composition(4, 3), fresh=False)
    assert np.min(same.measure(Same(training=training), 0)["cosine"]) > 0.99
    assert np.abs(same.measure(Same(training=training, other_target=True), 0)["cosine"][0]) < 0.9


def test_plans_name_what_every_step_trains():
    assert plan(2, "curriculum")["losses"].tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]
    assert plan(2, "mixture")["moves_attention"].tolist() == [True, True, False, False]
    assert plan(3, "hardest")["losses"][0].tolist() == [0, 0, 1]


def test_inner_products_are_covariances():
    task, rng = Composition(2, 4), np.random.default_rng(7)
    everything = task.population()
    for _ in range(10):
        pi, rho = task.draw_hidden(rng), task.draw_hidden(rng)
        for cyclic in (False, True):
            assert np.isclose(
                queries.agreement(pi, rho, everything, cyclic).mean() - 1 / 4,
                queries.inner_product(pi, rho),
                atol=1e-12,
            )
    each = Composition(1, 4).population()
    products = queries.inner_product(
        everything[:, None].repeat(1, 1), np.broadcast_to(everything[:1, None], everything[:, None].shape)
    )
    assert queries.derangements(4) == 9 and len(each) == 24
    assert np.isclose((products == 0).mean(), queries.share_orthogonal(2, 4)) and np.isclose(
        np.sqrt((products**2).mean()), queries.root_mean_square(2, 4)
    )


def test_packings_keep_their_distance():
    chosen = queries.packing(5, 2, 100)
    agree = (chosen[:, None] == chosen[None]).sum(-1)
    assert (agree[np.triu_indices(len(chosen), 1)] < 2).all() and len(chosen) >= 2
    words = queries.codes(4, 6, 10, np.random.default_rng(8))
    agree = (words[:, None] == words[None]).sum(-1)
    assert (agree[np.triu_indices(len(words), 1)] <= 3).all()


@pytest.mark.parametrize(
    "wrong, said",
    [
        (lambda: Theory(task=Composition(6, 5)), "power of two"),
        (lambda: Theory(samples=50, chunk=100), "less than one chunk"),
        (lambda: Theory(samples=150, chunk=100), "whole chunks"),
        (lambda: Theory(gap=-1.0), "gap"),
        (lambda: Counting(sizes=(8, 4)), "grow"),
        (lambda: Identities(task=Composition(4, 5)), "too many"),
        (lambda: EncoderTraining(asked_hops=(2, 1)), "grow"),
        (lambda: EncoderTraining(solved=2.0), "solved"),
        (lambda: EncoderTraining(task=Composition(2, 3)), "too few"),
        (lambda: EncoderTraining(task=Composition(1024, 1000)), "more than 1024"),
        (lambda: Counting(sizes=(1, 10**15)), "more than the 10"),
        (lambda: EncoderTraining(task=Composition(4, 5, asked="plain")), "cyclic"),
        (lambda: Same(training=Theory()), "same sequences"),
        (lambda: Same(training=Theory(fresh=False, shared=False)), "same sequences"),
        (lambda: EncoderTraining(data="curriculum", steps=2), "fewer than"),
        (
            lambda: EncoderTraining(encoder=replace(EncoderTraining().encoder, vocabulary=9)),
            "follows from the task",
        ),
    ],
)
def test_bad_settings_are_refused_in_a_sentence(wrong, said):
    with pytest.raises(Refused, match=said):
        wrong()


@pytest.mark.slow
def test_the_smallest_and_the_largest_tasks_can_be_run():
    found = identities.measure(Identities(task=Composition(2, 2)), 0)
    assert all(
        np.isfinite(np.asarray(found[name])).all()
        for name in ("population", "counted", "readout", "block_form")
    )
    assert EncoderTraining(task=Composition(16, 25), pool=50, tested=4).start(np.arange(1))["constants"][
        "tested"
    ].shape == (1, 4, 16, 25)
    with pytest.raises(Refused, match="at least one hop"):
        hop(np.zeros((2, 2), int), np.zeros((1, 2, 2), int), 0)


def test_encoder_is_tested_on_sequences_that_are_not_in_its_pool():
    from stagewise.papers.composition.encoder_steps import pooled

    settings = EncoderTraining(task=Composition(2, 3), asked_hops=(1, 2), pool=20, tested=64)
    constants = settings.start(np.arange(3))["constants"]
    for pool, tested in zip(constants["pool"], constants["tested"]):
        trained = {one.tobytes() for one in np.asarray(pooled(settings.task, pool, 20)).astype(np.int32)}
        assert len(trained) > 5 and not trained & {one.tobytes() for one in tested.astype(np.int32)}
    rule = settings.program().rule
    member, _ = rule.member({"pool": jnp.asarray(constants["pool"][0])}, jnp.asarray(7), jnp.ones(2))
    assert np.array_equal(member, pooled(settings.task, constants["pool"][0], 20)[7])


def test_packing_numbers_are_counted_as_by_going_through_all_targets():
    for levels, symbols in ((1, 4), (2, 3), (2, 4)):
        targets = Composition(levels, symbols).population()
        products = queries.inner_product(np.broadcast_to(targets[:1], targets.shape), targets)
        near = 2 * (1 - 1 / symbols) - 2 * products < 0.5 - 1e-12
        assert np.isclose(queries.log_packing_number(levels, symbols), np.log(len(targets) / near.sum()))


@pytest.mark.parametrize("build", [theorem4, knows_hidden, lambda hidden, sigma: theorem9(hidden, sigma, 3)])
def test_constructions_refuse_levels_that_cannot_be_doubled_up_to(build):
    task = Composition(3, 3)
    with pytest.raises(Refused, match="power of two"):
        build(task.draw_hidden(np.random.default_rng(0)), sequences(task))
    with pytest.raises(Refused, match="more than the 1"):
        theorem9(Composition(4, 3).draw_hidden(np.random.default_rng(0)), sequences(Composition(4, 3)), 1)


@pytest.mark.slow
def test_encoder_learns_one_hop_and_is_probed():
    small = replace(EncoderTraining().encoder, layers=2, width=16, heads=2)
    for form in ("token", "readouts"):
        settings = EncoderTraining(
            task=Composition(2, 3),
            encoder=small,
            form=form,
            asked_hops=(1, 2),
            pool=12,
            batch=16,
            steps=60,
            evaluations=2,
            tested=32,
            seeds=1,
        )
        program, state = settings.program(), settings.start(np.arange(1))
        state, records = program.advance(state, 0)
        assert records["loss"][0, -1, 0] < records["loss"][0, 0, 0]
        ends = program.outcomes(state)
        assert ends["looked"].shape == (1, 2, 2, 6) and ((ends["probed"] >= 0) & (ends["probed"] <= 1)).all()
        assert np.isnan(ends["looked"][0, 0, 0, -1]) == (form == "readouts")
        # Without a token the trunk does not know what is asked.
        assert np.array_equal(ends["probed"][0, 0], ends["probed"][0, 1]) == (form == "readouts")
