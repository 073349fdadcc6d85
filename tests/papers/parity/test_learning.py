"""Training: data apart, secrets as numbers of a lane, padding, passes, texts, and what is recorded."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stagewise as sw
from stagewise.errors import Refused
from stagewise.lab.execute import compute as engine
from stagewise.lab.execute.progress import Progress
from stagewise.models.gpt import GPT
from stagewise.models.sizes import Shape
from stagewise.papers.parity import initial as started
from stagewise.papers.parity.experiments import GPTTraining
from stagewise.papers.parity.learning import Text, cross_entropy, unpacked
from stagewise.papers.parity.readings import half_fallen, samples_needed
from stagewise.probes.entropy import normalised_entropy
from stagewise.tasks.parity import Parity, spell

TINY = dict(
    gpt=Shape(heads=2, width=16),
    batch=32,
    samples=640,
    validation=64,
    learning_rate=1e-3,
    scale=0.1,
    embedding_scale=0.2,
)


def tiny(**changes):
    task = Parity(
        bits=8,
        secret_size=changes.pop("secret_size", 2),
        chain_of_thought=changes.pop("chain_of_thought", True),
        format=changes.pop("format", "paper"),
    )
    return GPTTraining(task=task, **TINY | changes)


def lane(settings, seed=0):
    return jax.tree.map(jnp.asarray, started.lane(settings, seed))


def test_training_inputs_are_never_validation_inputs():
    settings = tiny()
    weights, constants = lane(settings)
    rule = settings.program().rule
    held_out = {row.tobytes() for row in np.asarray(unpacked(constants["validation"], 8))}
    drawn = [rule.draw(constants, weights["order"], jnp.int32(i), jax.random.key(i))[0] for i in range(20)]
    assert len(held_out) == 64 and not held_out & {
        row.tobytes() for batch in drawn for row in np.asarray(batch)
    }


def test_a_pass_shows_every_input_once_and_the_next_in_another_order():
    settings = tiny(training_set=96)
    weights, constants = lane(settings)
    rule, order, seen = settings.program().rule, weights["order"], []
    for count in range(6):
        inputs, order = rule.draw(constants, order, jnp.int32(count), jax.random.key(count))
        seen += [row.tobytes() for row in np.asarray(inputs)]
    kept = [row.tobytes() for row in np.asarray(unpacked(constants["pool"], 8))]
    assert sorted(seen[:96]) == sorted(seen[96:]) == sorted(kept) and seen[:96] != seen[96:]


def test_secrets_of_every_size_share_one_program():
    programs = {tiny(secret_size=k, answers=4).program() for k in (1, 2, 3, 4)}
    assert len(programs) == 1
    assert len({tiny(secret_size=k, chain_of_thought=False).program() for k in (1, 2, 3, 4)}) == 1
    assert tiny(learning_rate=1e-4, until="end", plain_samples=64).program() == tiny().program()


@pytest.mark.slow
def test_room_for_more_answers_changes_nothing():
    settings, roomy = tiny(), tiny(answers=5)
    (weights, constants), (_, padded) = lane(settings), lane(roomy)
    wpe = np.concatenate([weights["model"]["wpe"], np.ones((3, 16), np.float32)])
    for rule, given, model in (
        (settings.program().rule, constants, weights["model"]),
        (roomy.program().rule, padded, weights["model"] | {"wpe": wpe}),
    ):
        found = rule.measure({"model": model}, given, jax.random.key(0))
        if rule.answers == 2:
            first = found
    for name in ("loss", "accuracy", "entropy", "hits", "off_one_hot"):
        np.testing.assert_allclose(found[name], first[name], rtol=2e-6, err_msg=name)
    np.testing.assert_allclose(found["mass"][..., :2], first["mass"], rtol=2e-6)


def test_recorded_attention_is_that_of_the_plain_model():
    settings = tiny(scale=0.5, embedding_scale=1.0)
    weights, constants = lane(settings)
    rule, text = settings.program().rule, Text(**constants["text"])
    model = GPT(**weights["model"], heads=2)
    tokens = spell(unpacked(constants["validation"], 8)[:64], text.sums, True).tokens
    found = rule.watch(model, text, unpacked(constants["validation"], 8)[:64])
    pattern = np.asarray(model.attention(tokens)["layer1.head2"])
    secret = np.flatnonzero(constants["text"]["sums"][:, -1])
    np.testing.assert_allclose(found["entropy"][0, 1, 0], normalised_entropy(pattern).mean(), rtol=1e-5)
    np.testing.assert_allclose(
        found["entropy"][0, 1, 1], normalised_entropy(pattern, np.array([8, 9])).mean(), rtol=1e-5
    )
    np.testing.assert_allclose(
        found["mass"][0, 1], [pattern[:, 8, secret[0]].mean(), pattern[:, 9, secret[1]].mean()], rtol=1e-5
    )
    hits = [(pattern[:, 8 + i].argmax(-1) == place).mean() for i, place in enumerate(secret)]
    np.testing.assert_allclose(found["hits"][0, 1], np.mean(hits), rtol=1e-5)
    wanted = np.zeros((2, 10))
    wanted[[0, 1], secret] = 1
    np.testing.assert_allclose(found["off_one_hot"][0, 1], abs(pattern[:, 8:] - wanted).max(), rtol=1e-5)


def test_answers_that_need_no_bit_are_not_counted_as_hits():
    """In the format of the code the separator is an answer, and needs none."""
    settings = tiny(scale=0.5, embedding_scale=1.0, format="code")
    weights, constants = lane(settings)
    rule, text = settings.program().rule, Text(**constants["text"])
    inputs = unpacked(constants["validation"], 8)[:64]
    tokens = spell(inputs, text.sums, rule.separated).tokens
    pattern = np.asarray(GPT(**weights["model"], heads=2).attention(tokens)["layer1.head2"])
    looks = np.asarray(text.looks).T
    assert looks[0].sum() == 0 < looks[1].sum()
    needed = {bit: int(np.flatnonzero(row)[0]) for bit, row in enumerate(looks) if row.sum()}
    hits = [(pattern[:, rule.first + answer].argmax(-1) == place).mean() for answer, place in needed.items()]
    np.testing.assert_allclose(
        rule.watch(GPT(**weights["model"], heads=2), text, inputs)["hits"][0, 1], np.mean(hits)
    )


def test_cross_entropy_is_the_mean_over_the_answers_that_count():
    logits, labels = jnp.array([[[0.0, 2.0], [1.0, 0.0], [9.0, 0.0]]]), jnp.array([[1, 1, 1]])
    expected = np.mean([np.log(1 + np.exp(-2)), np.log(1 + np.exp(1))])
    np.testing.assert_allclose(cross_entropy(logits, labels, jnp.array([1, 1, 0])), expected, rtol=1e-6)


def test_the_text_changes_from_answers_to_chains_of_thought():
    settings = tiny(plain_samples=320)
    _, constants = lane(settings)
    rule = settings.program().rule
    early, late = (rule.text(constants, jnp.int32(count)) for count in (9, 10))
    np.testing.assert_array_equal(early.counts, [1, 0])
    np.testing.assert_array_equal(late.counts, [1, 1])
    assert early.sums[:, 0].sum() == 2 and late.sums[:, 0].sum() == 1


def test_a_run_learns_stops_and_gives_out_its_model(runs):
    settings = GPTTraining.at("quick", seeds=3, samples=25_600, **{"task.secret_size": 3})
    run = sw.run(settings, runs=runs)
    done = run.trajectory.done_at.values
    assert (done > 0).sum() >= 2 and run.trajectory.sizes["record"] == settings.program().records
    np.testing.assert_array_equal(samples_needed(run.trajectory), np.where(done < 0, 25_600, done * 128))
    seed = int(np.argmax(done > 0))
    inputs = np.random.default_rng(5).integers(0, 2, (200, 16))
    batch = settings.task.spell(
        inputs, np.flatnonzero(run.trajectory.secret_bits.isel(seed=seed).sum("answer"))
    )
    right = np.asarray(run.model(seed)(batch.tokens))[:, settings.task.asked].argmax(-1) == np.asarray(
        batch.labels
    )
    assert right.all(1).mean() > 0.95
    assert sw.run(settings, runs=runs).trajectory.equals(run.trajectory)


@pytest.mark.slow
def test_a_seed_does_not_depend_on_its_company(runs):
    three, one = (sw.run(tiny(seeds=n), runs=runs / str(n)).trajectory for n in (3, 1))
    np.testing.assert_array_equal(three.loss.isel(seed=0), one.loss.isel(seed=0))


def test_a_run_that_was_stopped_goes_on_to_the_same_end(runs, monkeypatch):
    settings = tiny(seeds=2, until="end")
    undisturbed = sw.run(settings, runs=runs / "a").trajectory
    monkeypatch.setattr(engine, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        sw.run(settings, runs=runs / "b", progress=StopsAfter(2))
    assert sw.run(settings, runs=runs / "b").trajectory.equals(undisturbed)


class StopsAfter(Progress):
    def __init__(self, chunks):
        self.left = chunks

    def advance(self, stage, steps, seconds):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def test_half_fallen_finds_the_middle_of_a_fall():
    import xarray as xr

    curve = xr.DataArray([[1.0] * 10 + [0.8, 0.4, 0.2] + [0.2] * 7], dims=("seed", "record"))
    run = xr.Dataset({"x": curve}, {"step": ("record", np.arange(20))}, {"settings": '{"batch": 2}'})
    assert half_fallen(run, curve).item() == 22


@pytest.mark.parametrize(
    "wrong, says",
    [
        (lambda: tiny(samples=16), "smaller than one batch"),
        (lambda: tiny(training_set=16), "do not fill a batch"),
        (lambda: tiny(training_set=300), "too few"),
        (lambda: tiny(dropout=1.0), "dropout"),
        (lambda: tiny(learning_rate=0.0), "learning_rate"),
        (lambda: replace(tiny(), gpt=Shape(heads=3, width=16)), "do not divide"),
        (lambda: tiny(secret_size=9), "between 1 and the 8 bits"),
        (lambda: tiny(goal=0.2), "goal"),
        (lambda: tiny(evaluate_every=0), "evaluate_every"),
    ],
)
def test_bad_settings_are_refused(wrong, says):
    with pytest.raises(Refused, match=says):
        wrong()
