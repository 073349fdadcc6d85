"""Engines: a pool of processes gives what one process gives, and finds the job that kills its worker."""

import subprocess
import sys

import pytest

import stagewise as sw
from tests.lab.sharing import same


@pytest.mark.slow
def test_a_pool_whose_workers_cannot_begin_says_why(runs, tmp_path):
    script = tmp_path / "unguarded.py"
    script.write_text(
        f"import stagewise as sw\nsw.sweep('mixture.joint', {{'width': (4, 8)}}, engine='pool', steps=40, "
        f"seeds=2, runs={str(runs)!r})\n"
    )
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=240)
    assert ended.returncode != 0 and "__main__" in ended.stderr.splitlines()[-1]


@pytest.mark.slow
def test_a_job_that_kills_its_worker_fails_alone(runs, tmp_path):
    script = tmp_path / "kills.py"
    script.write_text(f"""
import os
import stagewise as sw
from stagewise.papers.mixture.experiments import JointTraining
real = JointTraining.start
JointTraining.start = lambda self, seeds: os._exit(9) if self.width == 8 else real(self, seeds)
if __name__ == "__main__":
    how = dict(engine="pool", lanes=6, workers=1, runs={str(runs)!r})
    found = sw.sweep("mixture.joint", {{"width": (4, 8, 16)}}, steps=40, seeds=2, **how)
    print(found.missing.values.tolist())
""")
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=240)
    assert ended.returncode == 0 and ended.stdout.strip() == "[False, True, False]", ended.stderr
    assert ["its worker died" in path.read_text() for path in runs.glob("*/*/*/failed.json")] == [True]


@pytest.mark.slow
def test_a_pool_gives_the_same_bits(runs, tmp_path):
    words = [
        sys.executable,
        "-m",
        "stagewise",
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
        "--lanes",
        "4",
    ]
    subprocess.run([*words, "--runs", tmp_path / "plain"], check=True, capture_output=True)
    subprocess.run(
        [*words, "--runs", runs, "--engine", "pool", "--workers", "2"], check=True, capture_output=True
    )
    assert same(runs, tmp_path / "plain")


@pytest.mark.slow
def test_claims_are_reproduced_by_a_pool_as_in_process(runs, tmp_path):
    here, there = (
        sw.reproduce("mixture.fig1a", runs=runs / where, engine=engine)
        for where, engine in (("here", "process"), ("there", "pool"))
    )
    assert [entry.verdict.outcome for entry in here.entries] == [
        entry.verdict.outcome for entry in there.entries
    ]
    assert {path.parent.name for path in (runs / "here").glob("*/*/*/result.json")} == {
        path.parent.name for path in (runs / "there").glob("*/*/*/result.json")
    }
    with pytest.raises(sw.Refused, match="workers are those of the pool"):
        sw.reproduce("mixture.fig1a", runs=runs, workers=2)


def test_a_claim_whose_run_fails_in_a_pool_is_not_judged(runs, monkeypatch):
    class Breaks:
        def run(self, groups, root, progress, fail_fast):
            groups[0][0].fail("ValueError: no such thing\n\nand more")

    monkeypatch.setattr("stagewise.lab.execute.engines.engine", lambda *_: Breaks())
    [entry] = sw.reproduce("mixture.fig1a", runs=runs, engine="pool").entries
    assert entry.verdict.outcome == "broken" and "ValueError: no such thing (set --retry" in entry.defect
