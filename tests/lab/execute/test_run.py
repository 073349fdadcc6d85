"""One way to run: what breaks is a stored result with its reason, the others go on, and what needed it says
so; nobody sees a traceback unless they ask."""

import subprocess
import sys

import pytest

import stagewise as sw
from stagewise.commands.main import main
from stagewise.lab import catalogue
from stagewise.lab.judge.statistics import BROKEN
from stagewise.lab.spec.experiment import Experiment
from stagewise.papers.mixture.experiments import JointTraining
from tests.lab.sharing import Notes


@pytest.fixture
def frozen_attention_breaks(monkeypatch):
    """Jobs that train neurons alone break: the control of Figure 1c."""
    real = JointTraining.start

    def start(self, seeds):
        if self.trains == "neurons":
            raise ZeroDivisionError("no attention\nand a second line")
        return real(self, seeds)

    monkeypatch.setattr(JointTraining, "start", start)
    return lambda: monkeypatch.setattr(JointTraining, "start", real)


def test_a_claim_whose_run_fails_is_broken_with_its_reason(runs, frozen_attention_breaks):
    done = sw.reproduce("mixture.fig1c", runs=runs)
    [entry] = done.entries
    assert entry.verdict.outcome == BROKEN and "ZeroDivisionError: no attention" in entry.verdict.why
    assert done.defects and "ZeroDivisionError" in entry.trace
    assert len(list(runs.glob("*/*/*/failed.json"))) == 1
    frozen_attention_breaks()
    again = sw.reproduce("mixture.fig1c", runs=runs)
    assert again.entries[0].verdict.outcome == BROKEN  # a failure is a result, until one asks again
    assert sw.reproduce("mixture.fig1c", runs=runs, retry=True).entries[0].verdict.outcome == "holds"


def test_the_claims_beside_it_are_judged(runs, monkeypatch):
    def judge(**needs):
        raise ZeroDivisionError("of this claim alone")

    known = catalogue.claims()
    monkeypatch.setitem(vars(known["mixture.fig1c"]), "judge", judge)
    entries = sw.reproduce("mixture.fig1c", runs=runs).entries
    assert entries[0].verdict.outcome == BROKEN and "of this claim alone" in entries[0].verdict.why


COMMANDS = {
    "run": ["run", "mixture.joint", "--trains", "neurons", "--steps", "20", "--seeds", "2"],
    "reproduce": ["reproduce", "mixture.fig1c"],
    "figure": ["figure", "mixture.fig1c", "--out", "FIGURE"],
    "sweep": ["sweep", "mixture.joint", "--over", "trains=neurons,both", "--set", "steps=20", "--seeds", "2"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_in_a_sentence_what_broke(
    command, runs, frozen_attention_breaks, monkeypatch, capsys
):
    if command == "figure":  # the figure of that claim has no control: here all of its runs break
        monkeypatch.setattr(JointTraining, "start", lambda self, seeds: 1 / 0)
    words = [str(runs.parent / "x.svg") if word == "FIGURE" else word for word in COMMANDS[command]]
    where = ["--engine", "process", "--runs", str(runs)]
    assert main([*words, *where]) == 1
    said = capsys.readouterr()
    assert "ZeroDivisionError" in said.out + said.err and "Traceback" not in said.out + said.err
    assert main([*words, *where, "--retry", "--debug"]) == 1
    told = capsys.readouterr()
    assert "Traceback" in told.err and "ZeroDivisionError" in told.err


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["process", "pool"])
def test_failures_are_the_same_on_every_engine(engine, runs, tmp_path):
    script = tmp_path / "breaks.py"
    script.write_text(f"""
import stagewise as sw
from stagewise.papers.mixture.experiments import JointTraining
real = JointTraining.start
JointTraining.start = lambda self, seeds: 1 / 0 if self.trains == "neurons" else real(self, seeds)
if __name__ == "__main__":
    how = dict(engine={engine!r}, runs={str(runs)!r})
    [entry] = sw.reproduce("mixture.fig1c", **how).entries
    print(entry.verdict.outcome, "ZeroDivisionError" in entry.verdict.why)
    try:
        sw.run("mixture.joint", trains="neurons", steps=20, seeds=2, **how)
    except sw.Failed as failed:
        print("ZeroDivisionError" in str(failed), "Traceback" in failed.trace)
""")
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=240)
    assert ended.stdout.splitlines() == ["broken True", "True True"], ended.stderr


def test_a_plan_is_made_once(runs, monkeypatch):
    """One claim makes its experiment, its control, and those of the figures that may be drawn from them;
    not those of the whole paper."""
    made: list[Experiment] = []
    check = Experiment.__post_init__

    def counted(self):
        made.append(self)
        check(self)

    things = [*catalogue.claims().values(), *catalogue.figures().values()]
    plans = [plan for thing in things for plan in {**thing.needs, **getattr(thing, "control", {})}.values()]
    for plan in plans:
        getattr(plan, "_made", {}).clear()
    monkeypatch.setattr(Experiment, "__post_init__", counted)
    sw.reproduce("mixture.fig1c", runs=runs)
    assert len(made) <= 30, len(made)


def test_files_are_digested_once_before_a_sweep_and_only_what_was_missing_after(runs, monkeypatch):
    from stagewise.lab.store import block

    sw.sweep("mixture.joint", {"width": (4, 8)}, steps=20, seeds=2, runs=runs)
    read, real = [], block.digest_of

    def counted(path):
        read.append(path)
        return real(path)

    monkeypatch.setattr(block.check_files, "__defaults__", (counted,))
    sw.sweep("mixture.joint", {"width": (4, 8, 16)}, steps=20, seeds=2, runs=runs)
    assert len(read) == len(set(read)) and len({path.parent for path in read}) == 2


@pytest.mark.slow
def test_threads_are_recorded_and_no_engine_changes_them(runs, tmp_path):
    import json
    import os

    words = [
        sys.executable,
        "-m",
        "stagewise",
        "sweep",
        "mixture.joint",
        "--over",
        "width=4,8",
        "--seeds",
        "2",
    ]
    words += ["--set", "steps=20", "--lanes", "2"]
    for given, engine in (("", "process"), ("", "pool"), ("2", "process"), ("2", "pool")):
        there = runs / f"{engine}{given}"
        chosen = {name: value for name, value in os.environ.items() if name != "PJRT_NPROC"}
        chosen |= {"PJRT_NPROC": given} if given else {}
        command = [*words, "--runs", there, "--engine", engine]
        subprocess.run(command, check=True, capture_output=True, env=chosen)
        recorded = [json.loads(path.read_text()) for path in there.glob("*/*/*/environment.json")]
        assert [one["threads"] for one in recorded] == [given or "1"] * 2


def test_what_is_stored_is_not_run_again(runs):
    first, again = Notes(), Notes()
    for notes in (first, again):
        sw.run("mixture.joint", steps=20, seeds=2, runs=runs, progress=notes)
    assert first.begun and not again.begun
