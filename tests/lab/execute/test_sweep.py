"""Sweeps: plans, groups, failures, kills."""

import json

import numpy as np
import pytest
import xarray as xr

import stagewise as sw
from stagewise.commands.main import main
from stagewise.lab.execute import estimate as estimates
from stagewise.lab.execute import sweep
from stagewise.lab.execute.engines import InProcess
from stagewise.papers.mixture.experiments import JointTraining
from tests.lab.sharing import Notes, same

OVER = {"learning_rate": (0.02, 0.05), "width": (4, 8)}
SMALL = dict(steps=40, seeds=2)


def test_a_sweep_does_only_what_is_missing_and_keeps_its_groups(runs):
    first = Notes()
    dataset = sw.sweep("mixture.joint", OVER, runs=runs, progress=first, **SMALL)
    assert first.begun == ["mixture.joint (8 seeds)"]  # one program for all: widths and rates are numbers
    assert (
        dict(dataset.sizes) | {"learning_rate": 2, "width": 2, "seed": 2} == dict(dataset.sizes)
        and not dataset.missing.any()
    )
    again, more = Notes(), Notes()
    xr.testing.assert_identical(sw.sweep("mixture.joint", OVER, runs=runs, progress=again, **SMALL), dataset)
    wider = sw.sweep("mixture.joint", OVER | {"width": (4, 8, 16)}, runs=runs, progress=more, **SMALL)
    assert not again.begun and more.begun == ["mixture.joint (4 seeds)"]
    xr.testing.assert_identical(wider.loss.sel(width=[4, 8]), dataset.loss)
    alone = sw.run(
        "mixture.joint", runs=runs.parent / "alone", learning_rate=0.05, width=8, **SMALL
    ).trajectory
    np.testing.assert_allclose(dataset.loss.sel(learning_rate=0.05, width=8), alone.loss, rtol=1e-9)


def test_a_study_is_a_sweep(runs):
    study = sw.Study("x", "", JointTraining.plan(**SMALL), over={"width": (4, 8)})
    chosen = sw.Sweep.of(study, "quick")
    assert [cell for _, cell in chosen.grid.cells()] == [cell for _, cell in study.at("quick").cells()]
    assert sweep.Sweep.from_spec(chosen.spec) == chosen


def test_a_failed_job_is_a_result_and_the_others_go_on(runs, broken):
    notes = Notes()
    dataset = sw.sweep("mixture.joint", OVER, runs=runs, progress=notes, **SMALL)
    assert dataset.missing.sel(width=8).all() and not dataset.missing.sel(width=4).any()
    assert np.isnan(dataset.loss.sel(width=8)).all() and np.isfinite(dataset.loss.sel(width=4)).all()
    assert sum("width 8 is broken" in line for line in notes.said) == 2
    with pytest.raises(AssertionError):
        assert np.isfinite(dataset.loss.median("width", skipna=False)).all()
    again = Notes()
    sw.sweep("mixture.joint", OVER, runs=runs, progress=again, **SMALL)
    assert not again.begun  # a failure is a result, too
    broken()
    assert not sw.sweep("mixture.joint", OVER, runs=runs, retry=True, **SMALL).missing.any()


def test_a_job_that_refuses_or_has_no_program_is_a_failure_of_its_own(runs, monkeypatch):
    start, program = JointTraining.start, JointTraining.program

    def refuses(self, seeds):
        if self.width == 8:
            raise sw.Refused("not this one")
        return start(self, seeds)

    def breaks(self):
        if self.width == 16:
            raise ZeroDivisionError("no program")
        return program(self)

    monkeypatch.setattr(JointTraining, "start", refuses)
    monkeypatch.setattr(JointTraining, "program", breaks)
    assert sw.sweep("mixture.joint", {"width": (4, 8, 16)}, runs=runs, **SMALL).missing.values.tolist() == [
        False,
        True,
        True,
    ]


def test_an_old_failure_is_no_reason_to_stop_fast(runs, broken):
    sw.sweep("mixture.joint", {"width": (4, 8), "learning_rate": (0.02, 0.05)}, runs=runs, **SMALL)
    assert (
        sw.sweep(
            "mixture.joint",
            {"width": (4, 8), "learning_rate": (0.02, 0.05)},
            runs=runs,
            fail_fast=True,
            **SMALL,
        )
        .missing.sel(width=8)
        .all()
    )


def test_a_group_that_broke_stays_apart_after_an_interruption(runs, broken):
    class Stopped(Notes):
        def begin(self, what, chunks):
            super().begin(what, chunks)
            if len(self.begun) == 3:  # the group, one job alone, and then
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sw.sweep("mixture.joint", OVER, runs=runs, progress=Stopped(), **SMALL)
    again = Notes()
    sw.sweep("mixture.joint", OVER, runs=runs, progress=again, **SMALL)
    assert again.begun and set(again.begun) == {"mixture.joint (2 seeds)"}
    sw.sweep("mixture.joint", OVER, runs=runs.parent / "undisturbed", **SMALL)
    assert same(runs, runs.parent / "undisturbed")


def test_fail_fast_stops_within_a_group_too(runs, broken, capsys):
    with pytest.raises(sw.Refused, match="width 8 is broken"):
        sw.sweep("mixture.joint", {"width": (8, 4)}, runs=runs, fail_fast=True, lanes=2, **SMALL)
    words = [
        "sweep",
        "mixture.joint",
        "--over",
        "width=8,4,16,32",
        "--set",
        "steps=40",
        "--seeds",
        "2",
        "--runs",
        str(runs.parent / "other"),
        "--fail-fast",
    ]
    assert main(words) == 1
    said = capsys.readouterr().out
    assert "width 8 is broken" in said and "missing: " in said and "done 4" not in said


def test_a_plan_is_shown_without_touching_what_is_there(runs, broken, capsys):
    words = [
        "sweep",
        "mixture.joint",
        "--over",
        "width=4,8",
        "--set",
        "steps=40",
        "--seeds",
        "2",
        "--runs",
        str(runs),
    ]
    assert main(words) == 1
    damaged = next(runs.glob("*/*/*/trajectory.nc"))
    damaged.write_bytes(damaged.read_bytes()[:-5])
    before = sorted(runs.rglob("*"))
    capsys.readouterr()
    assert main([*words, "--dry-run", "--retry"]) == 0 and sorted(runs.rglob("*")) == before
    # Its only job breaks.
    assert main([*words[:3], "width=8", *words[4:-1], str(runs.parent / "new"), "--dry-run"]) == 0
    assert "no estimate" in capsys.readouterr().out


def test_estimates_grow_with_the_work_and_count_compilation(runs, monkeypatch):
    def of(steps, seeds=2, width=(4, 8)):
        shared = {"steps": steps, "seeds": seeds}
        return estimates.estimate(
            sweep.plan(sw.Sweep("mixture.joint", {"width": width}, "quick", shared), runs).jobs.to_run
        )

    found = of(200, seeds=7)  # timed: no other test has compiled it for so many lanes
    assert found.beginning > found.computing > 0 and found.total < 600
    monkeypatch.setattr(estimates, "_timed", lambda program, group: estimates.Timed(5.0, 1e-3))
    assert of(2000).beginning == of(200_000).beginning == 5.0
    assert (
        of(2000).computing == pytest.approx(1e-3 * 2 * 2 * 2000)
        and of(200_000).computing == pytest.approx(100 * of(2000).computing)
        and of(2000, 6).computing == pytest.approx(3 * of(2000).computing)
    )


class Killed(BaseException):
    pass


def test_two_kills_in_the_middle_of_a_save_cost_a_chunk_each(runs, monkeypatch):
    from stagewise.lab.execute import compute as engine
    from stagewise.lab.store import runs as stored

    monkeypatch.setattr(engine, "SECONDS_BETWEEN_CHECKPOINTS", 0)
    monkeypatch.setattr(engine, "SHARE_OF_TIME", 1e9)
    save, settings, begun = stored.Block.save_checkpoint, dict(steps=3000, seeds=2), []

    class From(Notes):
        def resume(self, chunk):
            begun.append(chunk)

    def kill_at(n):
        calls = iter(range(10**6))

        def saved(self, *given, **more):
            if next(calls) + 1 == n:
                raise Killed
            return save(self, *given, **more)

        monkeypatch.setattr(stored.Block, "save_checkpoint", saved)

    for n in (2 * 4, 2, 10**6):  # after the first block's fourth, after the first block's next, never
        kill_at(n)
        try:
            sw.sweep("mixture.joint", {"width": (8, 16)}, runs=runs, progress=From(), **settings)
        except Killed:
            pass
    assert begun == [0, 3, 3]
    sw.sweep("mixture.joint", {"width": (8, 16)}, runs=runs.parent / "undisturbed", **settings)
    assert same(runs, runs.parent / "undisturbed")


@pytest.mark.parametrize("second", ["later save", "answer to a request to stop"])
def test_two_kills_in_a_groups_first_saves_do_not_part_it(runs, monkeypatch, second):
    from stagewise.lab.execute import compute as engine
    from stagewise.lab.store import runs as stored

    monkeypatch.setattr(engine, "SECONDS_BETWEEN_CHECKPOINTS", 0)
    monkeypatch.setattr(engine, "SHARE_OF_TIME", 1e9)
    save, over, settings = stored.Block.save_checkpoint, {"width": (8, 16, 33)}, dict(steps=3000, seeds=2)

    def go(skip, kills):
        """Run with no save due before chunk `skip`, and an exception instead of some saves."""
        calls = iter(range(10**6))

        def saved(self, arrays, chunk, *given, **more):
            if not (isinstance(chunk, int) and chunk <= skip):
                if error := kills.get(next(calls)):
                    raise error
                save(self, arrays, chunk, *given, **more)

        monkeypatch.setattr(stored.Block, "save_checkpoint", saved)
        notes = Notes()
        try:
            sw.sweep("mixture.joint", over, runs=runs, progress=notes, **settings)
        except Killed:
            pass
        return notes

    if second == "later save":
        go(0, {1: Killed})
        go(1, {1: Killed})
    else:
        go(0, {7: KeyboardInterrupt, 9: Killed})
    assert go(0, {}).begun == ["mixture.joint (6 seeds)"]
    sw.sweep("mixture.joint", over, runs=runs.parent / "undisturbed", **settings)
    assert same(runs, runs.parent / "undisturbed") and not list(runs.rglob(".*.part"))


def test_neither_fewer_seeds_nor_another_sweep_costs_what_is_saved(runs, monkeypatch):
    from stagewise.lab.execute import compute as engine

    monkeypatch.setattr(engine, "SECONDS_BETWEEN_CHECKPOINTS", 0)
    monkeypatch.setattr(engine, "SHARE_OF_TIME", 1e9)

    class Stopped(Notes):
        def __init__(self, after):
            super().__init__()
            self.after, self.begun_at = after, []

        def resume(self, chunk):
            self.begun_at.append(chunk)

        def advance(self, *about):
            super().advance(*about)
            if self.after and self.chunks[-1] == self.after:
                raise KeyboardInterrupt

    def go(over, after=0, **more):
        notes = Stopped(after)
        try:
            sw.sweep("mixture.joint", over, runs=runs, progress=notes, **dict(steps=3000) | more)
        except KeyboardInterrupt:
            pass
        return notes.begun_at

    assert go({"width": (8,)}, after=5, seeds=4) == [0]
    assert go({"width": (8,)}, seeds=2) == [0]
    assert go({"width": (8,)}, seeds=4)[0] >= 4  # on from what was saved
    go({"width": (32, 64)}, after=2, seeds=2)
    assert go({"width": (32,)}, after=3, seeds=2)[0] >= 1
    resumed = go({"width": (32, 64)}, seeds=2)
    assert sorted(resumed)[-1] >= 3 and min(resumed) >= 1


def test_failures_are_told_listed_and_drawn(runs, broken, capsys, tmp_path):
    words = [
        "sweep",
        "mixture.joint",
        "--over",
        "width=4,8",
        "--over",
        "learning_rate=0.02,0.05",
        "--set",
        "steps=40",
        "--seeds",
        "2",
        "--runs",
        str(runs),
    ]
    assert main([*words, "--out", str(tmp_path / "all.csv")]) == 1
    said = capsys.readouterr().out
    assert (
        "done 2 of 4 jobs" in said
        and said.count("ZeroDivisionError: width 8 is broken") == 2
        and "--retry" in said
    )
    assert main(["runs", "--runs", str(runs)]) == 0 and "failed" in capsys.readouterr().out
    name = next((runs / "sweeps").glob("*.json")).stem
    drawn = sw.figure(name, tmp_path / "heat.svg", of="loss[conflicting]", runs=runs).read_text()
    assert drawn.count(">missing<") == 2
    with pytest.raises(sw.Refused, match="has no 'los'"):
        sw.figure(name, tmp_path / "heat.svg", of="los", runs=runs)


def test_a_plan_is_data_and_damage_to_it_loses_nothing(runs):
    chosen = sw.Sweep("mixture.joint", OVER, "quick", SMALL)
    runs.mkdir()
    planned = sweep.plan(chosen, runs, most_lanes=4)
    assert [len(group) for group in planned.jobs.to_run] == [2, 2]
    sweep.keep(planned)
    # kept, whatever is asked for now
    assert [len(group) for group in sweep.plan(chosen, runs, most_lanes=256).jobs.to_run] == [2, 2]
    assert "pickle" not in planned.path.read_text() and sweep.read(planned.path) == chosen
    stored = json.loads(planned.path.read_text())
    stored["groups"] = [[name[:-1] + "x" for name in group] for group in stored["groups"]]
    planned.path.write_text(json.dumps(stored))
    # names that were changed: made again
    assert [len(group) for group in sweep.plan(chosen, runs, most_lanes=256).jobs.to_run] == [4]
    planned.path.write_bytes(planned.path.read_bytes()[:50])
    done = sweep.run(sweep.plan(chosen, runs), runs, InProcess())
    assert not done.jobs.missing and sweep.read(planned.path) == chosen


def test_a_plan_whose_groups_do_not_go_together_is_split(runs):
    from stagewise.lab.spec.settings import digest

    chosen = sw.Sweep("mixture.joint", {"steps": (40, 80)}, "quick", {"seeds": 2, "width": 4})
    runs.mkdir()
    planned = sweep.plan(chosen, runs)
    sweep.keep(planned)
    stored = json.loads(planned.path.read_text())
    stored["groups"] = [sum(stored["groups"], [])]
    planned.path.write_text(json.dumps(stored | {"digest": digest(stored["groups"])}))
    found = sweep.gather(sweep.run(sweep.plan(chosen, runs), runs, InProcess()))
    assert found.step.max("record").values.tolist() == [40, 80]
