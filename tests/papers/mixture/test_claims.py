"""Every claim at preset quick: judged, and not fooled by its control."""

from pathlib import Path

import pytest

from stagewise.lab import catalogue



def entry(quick, id):
    return next(e for e in quick.entries if e.claim.id == id)


@pytest.mark.parametrize("id", list(catalogue.papers()["mixture"].claims))
def test_claim_is_judged_and_fails_its_control(quick, id):
    judged = entry(quick, id)
    assert not judged.broken, judged.broken
    assert judged.verdict.outcome in ("holds", "fails"), judged.verdict
    assert judged.control.outcome != "holds", judged.control


def test_every_id_of_our_reading_has_a_claim():
    listed = (Path(__file__).parent / "ids.txt").read_text().split()
    assert set(listed) <= set(catalogue.papers()["mixture"].claims)


def test_committed_ledger_has_the_same_claims():
    from stagewise.lab.files import read_json

    committed = read_json(Path(__file__).parents[3] / "ledger" / "quick.json")
    listed = {c["id"] for c in committed["claims"] if c["paper"] == "mixture"}
    assert listed == set(catalogue.papers()["mixture"].claims)
