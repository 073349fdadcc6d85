"""Sequences and labels against the definition, train and validation apart, bad settings."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stagewise.errors import Refused
from stagewise.tasks.parity import Parity


@given(
    bits=st.integers(1, 12),
    data=st.data(),
    seed=st.integers(0, 99),
    cot=st.booleans(),
    format=st.sampled_from(["paper", "code"]),
)
@settings(max_examples=40, deadline=None)
def test_sequences_obey_the_definition(bits, data, seed, cot, format):
    k = data.draw(st.integers(1, bits))
    task, rng = Parity(bits, k, cot, format, "random" if cot else "ascending"), np.random.default_rng(seed)
    if k < bits or bits == 1:
        secret = task.draw_secret(rng)
        task.check_secret(secret)
        inputs = rng.integers(0, 2, (5, bits))
        tokens, labels = (np.asarray(part) for part in task.spell(inputs, secret))
        assert (
            tokens.shape == (5, task.length)
            and labels.shape == (5, len(task.asked))
            and (tokens[:, :bits] == inputs).all()
        )
        whole = np.concatenate([tokens, labels[:, -1:]], 1)
        for row, label in zip(whole, labels):
            assert (row[task.asked + 1] == label).all()  # labels are the next tokens
            assert row[-1] == row[secret].sum() % 2
            if cot:
                b = row[bits:]
                assert b[0] == 0 and all(b[i + 1] == b[i] ^ row[s] for i, s in enumerate(secret))
        looks = task.depends_on(secret)
        looks = looks[:, 1:] if cot and format == "code" else looks
        assert [set(np.flatnonzero(column)) for column in looks.T] == (
            [{s} for s in secret] if cot else [set(secret)]
        )


@pytest.mark.parametrize("bits", [6, 30])
def test_training_and_validation_have_no_input_in_common(bits):
    training, validation = Parity(bits, 3).inputs(np.random.default_rng(0), 40, 20)
    assert training.shape == (40, bits) and validation.shape == (20, bits)
    assert not {row.tobytes() for row in training} & {row.tobytes() for row in validation}


def test_the_whole_cube_is_divided():
    training, validation = Parity(8, 3).inputs(np.random.default_rng(0), 200, 56)
    assert len({row.tobytes() for row in np.concatenate([training, validation])}) == 256


def test_a_given_secret_is_taken():
    assert Parity(9, 3, secret=(5, 1, 2)).draw_secret(np.random.default_rng(0)).tolist() == [5, 1, 2]
    with pytest.raises(Refused, match="must have 3 places"):
        Parity(9, 3, secret=(5, 1))


def test_order_and_range_of_secrets():
    drawn = [Parity(9, 4).draw_secret(np.random.default_rng(seed)) for seed in range(50)]
    assert all((np.diff(secret) > 0).all() and secret.max() < 8 for secret in drawn)
    assert sorted(Parity(4, 4, order="random").draw_secret(np.random.default_rng(0)).tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "wrong, says",
    [
        (lambda: Parity(5, 6), "between 1 and the 5 bits"),
        (lambda: Parity(0, 1), "bits must lie"),
        (lambda: Parity(8, 2).check_secret(np.array([1, 8])), "between 0 and 7"),
        (lambda: Parity(8, 2).check_secret(np.array([1, 1])), "twice"),
        (lambda: Parity(8, 2).check_secret(np.array([1])), "must have 2"),
        (lambda: Parity(8, 2).inputs(np.random.default_rng(0), 250, 20), "more than the 256"),
    ],
)
def test_bad_settings_are_refused(wrong, says):
    with pytest.raises(Refused, match=says):
        wrong()
