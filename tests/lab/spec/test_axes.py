"""Sweeps from words, from Python and from files: the same values, typed and checked."""

import numpy as np
import pytest

import stagewise as sw
from stagewise.commands.main import main
from stagewise.lab.execute import sweep
from stagewise.lab.spec import axes
from stagewise.papers.mixture.experiments import JointTraining

OVER = {"learning_rate": (0.02, 0.05), "width": (4, 8)}
SMALL = dict(steps=40, seeds=2)


@pytest.mark.parametrize(
    "words, values",
    [
        ("1,2,4", (1, 2, 4)),
        ("2..5", (2, 3, 4, 5)),
        ("10..40/4", (10, 20, 30, 40)),
        ("1..1000/4log", (1, 10, 100, 1000)),
        ("7", (7,)),
    ],
)
def test_axes_are_lists_ranges_and_log_ranges(words, values):
    assert axes.parse("width", words, JointTraining) == values


def test_axes_are_typed_by_the_setting():
    from stagewise.papers.composition.experiments import EncoderTraining
    from stagewise.papers.parity.experiments import GPTTraining

    assert axes.parse("learning_rate", "1e-4..1e-2/3log", JointTraining) == (1e-4, 1e-3, 1e-2)
    assert axes.parse("learning_rate", "1e+1,2", JointTraining) == (10.0, 2.0)
    assert axes.parse("form", "token,readouts", EncoderTraining) == ("token", "readouts")
    assert axes.parse("asked_hops", "1+2+4,2+4", EncoderTraining) == ((1, 2, 4), (2, 4))
    assert axes.parse("task.chain_of_thought", "True,False", GPTTraining) == (True, False)


def test_the_same_sweep_from_words_from_python_and_from_a_file_is_the_same(tmp_path):
    from_python = sw.Sweep("mixture.joint", {"learning_rate": [1, 2]}, "quick", {"seeds": 2})
    from_file = sweep.from_table(
        {
            "experiment": "mixture.joint",
            "seeds": 2,
            "over": {"learning_rate": {"from": 1, "to": 2, "count": 2}},
        }
    )
    from_words = sw.Sweep(
        "mixture.joint",
        {"learning_rate": axes.parse("learning_rate", "1,2", JointTraining)},
        "quick",
        {"seeds": 2},
    )
    from_numpy = sw.Sweep(
        "mixture.joint", {"learning_rate": np.arange(1, 3)}, "quick", {"seeds": np.int64(2)}
    )
    assert from_python == from_file == from_words == from_numpy


def test_settings_are_checked_together_and_every_study_is_a_sweep(tmp_path):
    from stagewise.lab import catalogue

    chosen = sw.Sweep(
        "parity.training", {"learning_rate": (0.001,)}, "quick", {"task.bits": 30, "task.secret_size": 20}
    )
    assert chosen.grid.cells()[0][1].task.secret_size == 20
    for study in catalogue.studies().values():
        grid = study.at("quick")
        assert [cell for _, cell in sw.Sweep.of(study, "quick").grid.cells()] == [
            cell for _, cell in grid.cells()
        ], study.name
        assert (
            sweep.Sweep.from_spec(sw.Sweep.of(study, "quick").spec).name == sw.Sweep.of(study, "quick").name
        )


@pytest.mark.parametrize(
    "words, said",
    [
        (["--over", "widht=1,2"], "did you mean"),
        (["--over", "width="], "no values"),
        (["--over", "width=4..2"], "empty"),
        (["--over", "width=0.5..2"], "how many values"),
        (["--over", "width=a,b"], "whole number"),
        (["--over", "width=1..2..3"], "not a"),
        (["--over", "width=4,4"], "comes twice"),
        (["--over", "learning_rate=0..1/3log"], "positive"),
        (["--over", "width"], "name=values"),
        ([], "at least one setting"),
        (["--over", "seeds=1,2"], "--seeds"),
        (["--over", "width=4,-1"], "width"),
        (["--over", "width=1..2000", "--over", "steps=1..2000"], "4,000,000 jobs"),
        (["--over", "width=4", "--engine", "pol"], "did you mean"),
        (["--over", "width=4", "--out", "x.xls"], ".parquet"),
        (["--over", "width=4", "--engine", "ray", "--address", "127.0.0.1:9"], "nobody answers"),
        (["--over", "width=4", "--workers", "3"], "--engine pool"),
        (["--file", "none.toml"], "cannot read"),
        (["--over", "width=4", "--set", "steps=1,2"], "one value"),
        (["--over", "width=4", "--over", "width=5"], "twice"),
        (["--over", "width=4", "--set", "width=8"], "swept over and set"),
        (["--over", "width=4", "--set", "bias=0.5", "--set", "bias=0.6"], "twice"),
        (["--over", "width=4", "--out", "/proc/none/x.csv"], "cannot create"),
        (["--over", "learning_rate=0..inf/3"], "finite"),
        (["--over", f"learning_rate=1..1{'0' * 400}/3"], "finite"),
        (["--over", "width=4", "--preset", "nope"], "unknown preset"),
    ],
)
def test_bad_input_is_refused_in_one_sentence_before_anything_runs(runs, capsys, words, said):
    if "ray" in words:
        pytest.importorskip("ray")
    name = [] if "--file" in words else ["mixture.joint"]
    assert main(["sweep", *name, *words, "--runs", str(runs)]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1 and not list(runs.glob("*/*/*"))


def test_a_toml_file_is_the_same_sweep(runs, tmp_path, capsys):
    path = tmp_path / "sweep.toml"
    path.write_text(
        'experiment = "mixture.joint"\nseeds = 2\n[over]\nwidth = [4, 8]\nlearning_rate = {from = 0.01, to = '
        "0.1, count = 3, log = true}\n[set]\nsteps = 40\ntask.groups = 2\n"
    )
    assert main(["sweep", "--file", str(path), "--runs", str(runs), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "jobs: 6, done 0" in said and "on one core" in said and not list(runs.glob("mixture*"))
    for axis, said in (
        ('{from = 1, to = 2, count = 2, log = "no"}', "true or false"),
        (f"[1{'0' * 400}]", "finite"),
    ):
        path.write_text(f'experiment = "mixture.joint"\n[over]\nlearning_rate = {axis}\n')
        assert (
            main(["sweep", "--file", str(path), "--runs", str(runs)]) == 2 and said in capsys.readouterr().err
        )
    path.write_text('experiment = "mixture.joint"\n[ovr]\nwidth = [4]\n')
    assert (
        main(["sweep", "--file", str(path), "--runs", str(runs)]) == 2
        and "did you mean" in capsys.readouterr().err
    )
