"""Turns of training: each takes over where the last left, with its own length, rate and teacher."""

import numpy as np
import pytest

from stagewise.papers.lego.experiments import DecoderTraining

pytestmark = pytest.mark.slow

SETTINGS = {
    "task.variables": 24,
    "decoder.width": 16,
    "decoder.embedding": 16,
    "decoder.inner": 16,
    "warm_up": 4,
    "steps": 6,
    "own_steps": 4,
    "answers": 40,
    "own_answers": 40,
    "tested": (5, 10),
    "test_sentences": 16,
    "evaluations": 2,
    "seeds": 2,
    "task.action.group": "C3",
    "lengths": (5, 10),
}


@pytest.fixture(scope="module")
def phases():
    """States and records after every chunk."""
    settings = DecoderTraining.at("quick", **SETTINGS)
    program, state, seen = settings.program(), settings.start(np.arange(2)), []
    for chunk in range(program.chunks):
        state, records = program.advance(state, chunk)
        seen.append((state, records))
    return program, seen


def test_steps_and_stages_count_through(phases):
    program, seen = phases
    labels = program.labels()
    assert labels["step"][1].tolist() == [4, 7, 10, 12, 14]
    assert labels["stage"][1].tolist() == [
        "warm-up",
        "length 5",
        "length 5",
        "length 10, own answers",
        "length 10, own answers",
    ]
    assert [int(state["step"][0]) for state, _ in seen] == [4, 7, 10, 12, 14]
    assert int(seen[-1][0]["weights"]["adam"]["count"][0]) == 14  # the optimiser goes on


def test_the_teacher_is_the_model_as_the_phase_began(phases):
    _, seen = phases
    before = seen[2][0]["weights"]["model"]["out"]  # the end of the second phase
    for state, _ in seen[3:]:
        np.testing.assert_array_equal(state["weights"]["teacher"]["out"], before)
        assert not np.array_equal(state["weights"]["model"]["out"], before)


def test_labels_are_true_only_where_answers_are_given(phases):
    _, seen = phases
    agreement = [records["label_agreement"][:, 0].tolist() for _, records in seen]
    assert agreement[:3] == [[1, 1]] * 3
    assert max(agreement[3]) < 1  # an untrained teacher errs


def test_a_phase_begun_again_gives_the_same_bits(phases):
    program, seen = phases
    state, records = program.advance(seen[2][0], 3)
    np.testing.assert_array_equal(records["loss"], seen[3][1]["loss"])


def test_the_control_stays_at_the_first_length():
    stayed = DecoderTraining.at("quick", **SETTINGS | {"stay": True})
    assert [(length, own) for _, length, _, _, own, _ in stayed.phases()] == [
        (1, False),
        (5, False),
        (5, False),
    ]
    assert sum(phase[3] for phase in stayed.phases()) == sum(
        phase[3] for phase in DecoderTraining.at("quick", **SETTINGS).phases()
    )
