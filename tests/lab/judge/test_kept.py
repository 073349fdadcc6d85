"""Kept ledgers: lines of several machines add up, and say when they are stale."""

import json

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import stagewise as sw
from stagewise.commands.main import main
from stagewise.errors import Refused
from stagewise.lab import catalogue
from stagewise.lab.judge import kept
from stagewise.lab.judge.bounds import censored
from stagewise.lab.judge.evidence import judged_again, united
from stagewise.lab.judge.statistics import (
    all_of,
    difference_of_shares,
    every_seed,
    exactly,
    median_over_seeds,
    share_of_seeds,
    slope,
)


def of(values, first):
    """Values by seed, counted from `first`."""
    values = np.asarray(values, float)
    return xr.DataArray(
        values, dims=["seed", "x"][: values.ndim], coords={"seed": first + np.arange(len(values))}
    )


RULES = {
    "median": lambda v: median_over_seeds("x", v, at_least=0.1),
    "censored": lambda v: median_over_seeds("x", censored(v, above=1.0), at_least=0.1),
    "share": lambda v: share_of_seeds("x", v > 0, more_than=0.3),
    "few": lambda v: share_of_seeds("x", v > 0, less_than=0.9),
    "every": lambda v: every_seed("x", v > -9),
    "difference": lambda v: difference_of_shares("x", v > 0.2, v > 0.9),
    "several": lambda v: all_of(median_over_seeds("a", v, at_most=2), exactly("b", 1e-9, at_most=1e-6)),
}


@pytest.mark.parametrize("rule", RULES)
@given(drawn=st.lists(st.floats(-2, 2, width=16), min_size=14, max_size=24))
@settings(max_examples=15, deadline=None)
def test_figures_of_two_machines_are_those_of_one(rule, drawn):
    """Through a file, and back."""
    judge, cut = RULES[rule], 7
    whole, one, other = judge(of(drawn, 0)), judge(of(drawn[:cut], 0)), judge(of(drawn[cut:], cut))
    stored, new = (json.loads(json.dumps(v.figures)) for v in (one, other))
    again = judged_again(united(stored, new))
    assert (again.outcome, again.seeds) == (whole.outcome, whole.seeds)
    for name, interval in whole.measured.items():
        found = again.measured[name]
        assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=1e-4, abs=1e-5)


def test_slopes_add_up_seed_by_seed():
    x = np.arange(5.0)
    rows = np.random.default_rng(0).normal(2 * x, 1, (12, 5))

    def judge(part):
        return slope("b", x, part, at_least=1.5)

    both = united(judge(of(rows[:6], 0)).figures, judge(of(rows[6:], 6)).figures)
    assert judged_again(both).measured["b"].low == pytest.approx(
        judge(of(rows, 0)).measured["b"].low, rel=1e-3
    )


def test_what_does_not_add_up_is_not_added():
    one, other = (
        median_over_seeds("x", of([1.0] * 8, 0), at_least=0),
        median_over_seeds("x", of([1.0] * 8, 8), at_least=0.5),
    )
    assert united(one.figures, other.figures) is None  # another threshold
    assert (
        united(one.figures, median_over_seeds("x", [1.0] * 8, at_least=0).figures) is None
    )  # no seeds named
    assert united(one.figures, {}) is None and united({}, one.figures) is None


def line_of(path, id):
    return next(line for line in kept.read(path)["claims"] if line["id"] == id)


def test_another_machine_adds_seeds(runs, tmp_path):
    path = tmp_path / "ledger" / "quick.json"
    for first in (1000, 1016):
        sw.reproduce("mixture.fig1c", runs=runs, first_seed=first, into=path)
    line = line_of(path, "mixture.fig1c")
    assert line["seeds"] == 32 and line["verdict"] == "holds"
    assert {"date", "machine", "commit"} <= set(line["made"]) and line["code"]
    assert line["figures"]
    for figure in line["figures"].values():
        assert figure["rule"] == "exactly" or figure["seeds"] == list(range(1000, 1032))
    sw.reproduce("mixture.width1", runs=runs, into=path)
    assert line_of(path, "mixture.fig1c") == line and line_of(path, "mixture.width1")["seeds"] == 16


def test_a_line_is_stale_when_its_code_changes_and_quick_gives_other_numbers(runs, tmp_path, monkeypatch):
    quick, standard = tmp_path / "quick.json", tmp_path / "standard.json"
    sw.reproduce("mixture.fig1c", runs=runs, into=quick)
    sw.reproduce("mixture.fig1c", "standard", runs=runs, into=standard)
    experiments, now = catalogue.experiments(), kept.numbers(kept.read(quick))
    measured = {id: found for id, (_, found) in now.items()}
    assert not kept.stale(kept.read(standard), experiments, measured)
    monkeypatch.setattr(kept, "code_of", lambda cls: "other")
    assert not kept.stale(kept.read(standard), experiments, measured)  # the same numbers at quick
    assert kept.stale(kept.read(standard), experiments, {"mixture.fig1c": "others"})


def test_bad_ledgers_are_refused_before_anything_is_run(runs, tmp_path, capsys):
    torn, other = tmp_path / "torn.json", tmp_path / "quick.json"
    torn.write_text('{"claims": [')
    sw.reproduce("mixture.width1", runs=runs, into=other)
    words = ["--runs", str(runs), "--engine", "process"]
    assert main(["reproduce", "mixture.fig1c", "--into", str(torn), *words]) == 2
    assert "is not a ledger" in capsys.readouterr().err
    assert main(["reproduce", "mixture.fig1c", "--preset", "standard", "--into", str(other), *words]) == 2
    assert "is a ledger of preset quick" in capsys.readouterr().err
    assert main(["reproduce", "mixture.fig1c", "--ledgers", str(tmp_path), *words]) == 2
    assert "torn.json is not a ledger" in capsys.readouterr().err
    assert main(["reproduce", "mixture.fig1c", "--nulls", "-5", *words]) == 2
    assert "nulls must lie between 0 and 10000" in capsys.readouterr().err
    assert main(["reproduce", "mixture.fig1c", "--first_seed", "-5", *words]) == 2
    assert "first_seed must lie between" in capsys.readouterr().err
    with pytest.raises(Refused):
        kept.read(tmp_path / "nothing.json")


def test_verdicts_that_hang_on_the_last_digit_are_marked(runs, monkeypatch):
    claim = catalogue.claims()["mixture.fig1c"]
    plain = sw.run(claim.needs["joint"].at("quick"), runs=runs).trajectory
    assert not sw.reproduce("mixture.fig1c", runs=runs, fragile=True).entries[0].fragile
    nudged = sw.run(claim.needs["joint"].but(perturbed=1).at("quick"), runs=runs).trajectory
    assert 0 < abs(nudged.loss - plain.loss).max() < 1e-6

    def judge(joint):
        return exactly("the very same bits", float((joint.loss == plain.loss).all()), at_least=1)

    monkeypatch.setitem(vars(claim), "judge", judge)
    [entry] = sw.reproduce("mixture.fig1c", runs=runs, fragile=True).entries
    assert entry.fragile and entry.to_json()["fragile"]
