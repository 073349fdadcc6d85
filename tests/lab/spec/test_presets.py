"""Plans that differ by preset, and needs that wait for a larger one."""

import pytest

from stagewise.errors import Refused
from stagewise.lab.judge.claims import claim
from stagewise.lab.judge.ledger import experiments_for, judge_all
from stagewise.lab.judge.statistics import exactly
from stagewise.lab.spec.study import NOT_YET, BeyondQuick, Study
from stagewise.lab.store.run import Runs
from stagewise.papers.mixture.experiments import JointTraining

plan = JointTraining.plan(seeds=3).where(quick={"steps": 10}, standard={"steps": 20, "seeds": 5})


def test_a_plan_differs_by_preset_and_changes_on_top_win():
    quick, standard = plan.at("quick"), plan.at("standard")
    assert (quick.steps, quick.seeds, standard.steps, standard.seeds) == (10, 3, 20, 5)
    assert plan.but(steps=7).at("standard").steps == 7 and plan.but(steps=7).at("standard").seeds == 5
    with pytest.raises(Refused, match="unknown preset"):
        plan.where(quik={"steps": 1})


def test_what_is_for_later_is_neither_run_nor_judged_at_preset_quick(tmp_path):
    @claim(
        "mixture.later", source="", predicted="", needs={"run": BeyondQuick(plan)}, control={}, control_is=""
    )
    def later(run):
        """A statement.

        Threshold: none, because nothing is judged."""
        return exactly("x", 1)

    assert experiments_for([later], "quick") == [] and len(experiments_for([later], "standard")) == 2
    (entry,) = judge_all([later], "quick", tmp_path, Runs({}))
    assert (
        entry.verdict.outcome == entry.control.outcome == "untested"
        and "--preset standard" in entry.verdict.why
        and not entry.defect
    )


def test_later_studies_keep_their_changes():
    study = BeyondQuick(Study("x.y", "", plan, over={"width": (2, 4)}))
    assert study.at("quick") is NOT_YET
    assert [cell.steps for _, cell in study.but(steps=9).at("standard").cells()] == [9, 9]
