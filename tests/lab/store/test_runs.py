"""Run folders: cache, blocks, kills, damage, staleness, and two processes that want the same run."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import stagewise as sw
from stagewise.lab import catalogue
from stagewise.lab.store.block import Block
from stagewise.lab.store.files import header
from stagewise.lab.store.runs import listing
from stagewise.papers.mixture.experiments import JointTraining, ThreeStages
from tests.lab.sharing import Notes

small = JointTraining(width=4, steps=100, seeds=3)


def test_a_finished_run_is_not_run_again(runs):
    first, second = Notes(), Notes()
    a, b = (sw.run(small, runs=runs, progress=notes).trajectory for notes in (first, second))
    assert len(first.begun) == 1 and not second.begun
    xr.testing.assert_identical(a, b)


def test_more_seeds_compute_only_the_missing_ones(runs):
    sw.run(small, runs=runs)
    notes = Notes()
    more = sw.run(JointTraining(width=4, steps=100, seeds=5), runs=runs, progress=notes)
    assert notes.begun == ["mixture.joint (2 seeds)"]
    assert more.trajectory.seed.values.tolist() == [0, 1, 2, 3, 4] and len(more.folders) == 2
    at_once = sw.run(JointTraining(width=4, steps=100, seeds=5), runs=runs.parent / "at_once").trajectory
    np.testing.assert_allclose(more.trajectory.scores, at_once.scores, rtol=1e-9, atol=1e-14)
    assert sw.run(small, runs=runs).trajectory.sizes["seed"] == 3
    assert more.model(seed=4) is not None
    with pytest.raises(sw.Refused, match="seed 7 was not run"):
        more.model(seed=7)


def test_seeds_that_stop_early_do_not_depend_on_their_company(runs):
    settings = dict(width=16, initial_scale=0.3, steps=4000, stop_at_loss=0.1)
    one = sw.run(JointTraining(**settings, seeds=1), runs=runs).trajectory
    more = sw.run(JointTraining(**settings, seeds=6), runs=runs).trajectory
    assert more.step.dims == ("record",) and np.isfinite(more.loss).all()
    np.testing.assert_allclose(more.loss.isel(seed=0), one.loss.isel(seed=0), rtol=1e-6)
    assert (more.done_at > 0).all() and (more.loss.sel(kind="all").isel(record=-1) < 0.1).all()


@pytest.mark.slow
def test_an_interrupted_block_goes_on_beside_fresh_ones(runs):
    killed(runs, after=1)
    chunk = max(int(header(path)["chunk"]) for path in runs.glob("*/*/*/checkpoint.safetensors"))
    notes = Notes()
    sw.run(eval(LONG.replace("seeds=4", "seeds=6")), runs=runs, progress=notes)
    chunks = notes.chunks
    assert len(notes.begun) == 2 and sorted(chunks)[0] <= 12 - chunk and sorted(chunks)[1] == 12


def test_groups_are_bounded(runs, monkeypatch):
    from stagewise.lab.execute import jobs

    monkeypatch.setattr(jobs, "MOST_LANES", 4)
    notes = Notes()
    study = sw.Study(
        "x", "", JointTraining.plan(width=4, steps=20, seeds=2), over={"learning_rate": (0.1, 0.2, 0.3)}
    )
    sw.run(study.at("quick"), runs=runs, progress=notes)
    assert notes.begun == ["mixture.joint (4 seeds)", "mixture.joint (2 seeds)"]


def test_run_takes_a_thing_or_its_name(runs):
    assert sw.run(small, runs=runs, steps=50).experiment.steps == 50
    study = sw.Study("x", "", JointTraining.plan(width=4, seeds=2), over={"learning_rate": (0.1, 0.2)})
    assert sw.run(study, runs=runs, steps=20).sizes["learning_rate"] == 2
    for wrong, says in ((123, "run takes an experiment"), (sw.Study, "run takes an experiment")):
        with pytest.raises(sw.Refused, match=says):
            sw.run(wrong, runs=runs)
    with pytest.raises(sw.Refused, match="a preset goes with a name"):
        sw.run(small, "quick", runs=runs)
    with pytest.raises(sw.Refused, match="needs a list of values"):
        sw.Study("x", "", JointTraining.plan(), over={"learning_rate": ()})


def test_load_gives_the_run_of_a_folder(runs):
    run = sw.run(small, runs=runs)
    xr.testing.assert_identical(sw.load(run.folders[0]).trajectory, run.trajectory)
    with pytest.raises(sw.Refused, match="not a run folder"):
        sw.load(runs)


LONG = "JointTraining(width=4, steps=60000, seeds=4)"
SCRIPT = f"""
import os, signal, sys, stagewise as sw
from stagewise.lab.execute import compute as engine
from stagewise.lab.store import runs
from stagewise.papers.mixture.experiments import JointTraining
engine.SECONDS_BETWEEN_CHECKPOINTS = 0.0
path, saves = sys.argv[1], int(sys.argv[2])
save = runs.Block.save_checkpoint
def save_and_count(*arguments, **about):
    global saves
    save(*arguments, **about)
    saves -= 1
    if saves == 0:
        os.kill(os.getpid(), signal.SIGKILL)
runs.Block.save_checkpoint = save_and_count
sw.run({LONG}, runs=path)
"""


def start(runs, killed_after=0):
    """Begin the long run in another process, killed after so many saved checkpoints if any."""
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(runs), str(killed_after)], stderr=subprocess.PIPE
    )


def killed(runs, after):
    process = start(runs, after)
    assert process.wait() == -signal.SIGKILL, process.stderr.read().decode()
    assert not list(runs.glob("*/*/*/result.json"))


def test_killed_and_resumed_equals_undisturbed_bit_for_bit(runs):
    killed(runs, after=3)
    second = start(runs)
    assert second.wait() == 0, second.stderr.read().decode()
    undisturbed = start(runs.parent / "undisturbed")
    assert undisturbed.wait() == 0
    resumed, whole = (sw.run(eval(LONG), runs=r).trajectory for r in (runs, runs.parent / "undisturbed"))
    xr.testing.assert_identical(resumed, whole)


@pytest.mark.parametrize("step, again", [("store", True), ("finish", False)])
def test_killed_while_a_group_is_stored_its_blocks_stay_in_company(runs, monkeypatch, step, again):
    grid = sw.Study("x", "", small.plan(width=4, steps=100, seeds=3), {"learning_rate": (0.01, 0.02, 0.03)})
    undisturbed, whole, calls = sw.run(grid, runs=runs.parent / "undisturbed"), getattr(Block, step), []

    def second_kills(*arguments):
        calls.append(step)
        if len(calls) == 2:
            raise SystemExit("killed")
        return whole(*arguments)

    monkeypatch.setattr(Block, step, second_kills)
    with pytest.raises(SystemExit):
        sw.run(grid, runs=runs)
    monkeypatch.setattr(Block, step, whole)
    notes = Notes()
    xr.testing.assert_identical(sw.run(grid, runs=runs, progress=notes), undisturbed)
    assert bool(sum(notes.chunks)) == again and notes.begun == [f"mixture.joint ({9 if again else 6} seeds)"]


def test_killed_between_two_results_what_is_stored_is_not_run_again_with_others(runs, monkeypatch):
    from stagewise.lab.execute import jobs

    monkeypatch.setattr(jobs, "MOST_LANES", 6)
    grid = sw.Study(
        "x", "", small.plan(width=33, steps=300, seeds=2), {"learning_rate": (0.1, 0.15, 0.2, 0.25, 0.3)}
    )
    undisturbed, whole, calls = sw.run(grid, runs=runs.parent / "undisturbed"), Block.finish, []

    def second_kills(*arguments):
        calls.append(1)
        if len(calls) == 2:
            raise SystemExit("killed")
        return whole(*arguments)

    monkeypatch.setattr(Block, "finish", second_kills)
    with pytest.raises(SystemExit):
        sw.run(grid, runs=runs)
    monkeypatch.setattr(Block, "finish", whole)
    notes = Notes()
    xr.testing.assert_identical(sw.run(grid, runs=runs, progress=notes), undisturbed)
    # Two of the first group, finished; the second.
    assert sorted(zip(notes.begun, map(bool, notes.chunks))) == [
        ("mixture.joint (4 seeds)", False),
        ("mixture.joint (4 seeds)", True),
    ]


def test_what_is_stored_but_not_finished_counts_when_seeds_are_looked_for(runs, monkeypatch):
    whole = Block.finish
    monkeypatch.setattr(Block, "finish", lambda *_: (_ for _ in ()).throw(SystemExit))
    with pytest.raises(SystemExit):
        sw.run(small, runs=runs, seeds=4)
    monkeypatch.setattr(Block, "finish", whole)
    sw.run(small, runs=runs, seeds=2)
    assert [folder.name.partition(".")[0] for folder in sw.run(small, runs=runs, seeds=4).folders] == [
        "seeds-0-4"
    ]


@pytest.mark.slow
def test_two_processes_share_the_work(runs):
    one, two = start(runs), start(runs)
    assert one.wait() == 0 and two.wait() == 0
    assert len(list(runs.glob("*/*/*/result.json"))) == 1
    assert not list(runs.glob("*/*/damaged-*"))


@pytest.mark.parametrize(
    "name", ["trajectory.nc", "checkpoint.safetensors", "result.json", "config.json", "environment.json"]
)
@pytest.mark.parametrize("damage", ["truncated", "flipped", "gone"])
def test_damage_is_noticed_named_and_mended(runs, name, damage):
    run = sw.run(small, runs=runs)
    path = run.folders[0] / name
    content = bytearray(path.read_bytes())
    if damage == "gone":
        path.unlink()
    else:
        content[len(content) // 2] ^= 1
        path.write_bytes(content[: len(content) // 2] if damage == "truncated" else content)
    notes = Notes()
    again = sw.run(small, runs=runs, progress=notes)
    xr.testing.assert_identical(run.trajectory, again.trajectory)
    if not (name == "result.json" and damage == "gone"):
        assert (
            notes.begun
            and len(list(runs.glob("*/*/damaged-*"))) == 1
            and path.parent.name in " ".join(notes.said)
        )


def test_a_damaged_checkpoint_is_set_aside_and_the_run_goes_on(runs):
    killed(runs, after=2)
    checkpoint = next(runs.glob("*/*/*/checkpoint.safetensors"))
    content = bytearray(checkpoint.read_bytes())
    content[-5] ^= 4
    checkpoint.write_bytes(content)
    notes = Notes()
    sw.run(eval(LONG), runs=runs, progress=notes)
    assert any("does not match its digest" in text for text in notes.said)
    assert list(runs.glob("*/*/*/damaged-*"))


def test_other_code_is_stale_kept_and_run_beside(runs, monkeypatch):
    old = sw.run(small, runs=runs).folders[0]
    from stagewise.lab.store import block as one
    from stagewise.lab.store import runs as all_of_them

    for room in (one, all_of_them):
        monkeypatch.setattr(room, "code_of", lambda experiment: "0123abcd")
    new = sw.run(small, runs=runs).folders[0]
    assert new != old and old.exists()
    states = {run.folder: run.state for run in listing(runs, catalogue.experiments())}
    assert states == {old: "stale", new: "finished"}


def test_a_newer_format_is_listed_and_no_obstacle_unless_named(runs):
    folder = sw.run(small, runs=runs).folders[0]
    config = json.loads((folder / "config.json").read_text())
    foreign = folder.parent / "seeds-0-9.ffffffff"
    foreign.mkdir()
    (foreign / "config.json").write_text(json.dumps(config | {"format": 99}))
    (runs / "mixture.joint" / "junk").mkdir()
    states = {run.folder: run.state for run in listing(runs, catalogue.experiments())}
    assert states[foreign] == "unreadable (format 99)" and states[folder] == "finished"
    sw.run(small, runs=runs)
    with pytest.raises(sw.Refused, match="newer stagewise"):
        sw.load(foreign)


def test_a_folder_that_cannot_be_written_is_refused_before_work(tmp_path):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    for place in (in_the_way / "runs", Path("/proc/stagewise")):
        with pytest.raises(sw.Refused, match="cannot create the folder|is a file"):
            sw.run(small, runs=place)


def test_a_full_disk_is_one_sentence(runs, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(sw.Refused, match="No space left on device"):
        sw.run(small, runs=runs)


def test_settings_round_trip(runs):
    from stagewise.lab.spec.settings import from_json, to_json

    for experiment in (small, ThreeStages(width="infinite"), JointTraining.at("quick", **{"task.groups": 3})):
        assert from_json(type(experiment), to_json(experiment)) == experiment
    with pytest.raises(sw.Refused, match="did you mean learning_rate"):
        JointTraining.at("quick", learning_rat=1)
    for wrong in (
        dict(steps="10"),
        dict(steps=1.5),
        dict(seeds=True),
        dict(task=3),
        dict(learning_rate=None),
    ):
        with pytest.raises(sw.Refused, match="must be"):
            JointTraining(**wrong)
    with pytest.raises(sw.Refused, match="trains must be one of both, neurons, attention, not 'neuron'"):
        JointTraining(trains="neuron")
    with pytest.raises(sw.Refused, match="must be a finite number"):
        JointTraining(learning_rate=float("inf"))
