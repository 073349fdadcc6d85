"""Every claim at preset quick: judged, and not fooled by its control."""

from pathlib import Path

import pytest

from stagewise.lab import catalogue
from stagewise.lab.judge.ledger import missing
from tests.papers.judged import check_claim, check_ids, check_ledger

CLAIMS = catalogue.papers()["composition"].claims
LATER = {"composition.thm5"} | {id for id, claim in CLAIMS.items() if missing(claim.needs_at("quick"))}


@pytest.mark.slow
@pytest.mark.parametrize("id", list(CLAIMS))
def test_claim_is_judged_and_fails_its_control(quick, id):
    check_claim(quick, id, ("untested",) if id in LATER else ("holds", "fails"))


def test_every_claim_is_run_at_preset_standard():
    assert not any(missing(claim.needs_at("standard")) for claim in CLAIMS.values())


@pytest.mark.parametrize("preset", ["standard", "paper"])
def test_widths_that_are_compared_are_in_the_study(preset):
    assert {32, 128} <= set(CLAIMS["composition.width"].needs_at(preset)["runs"].over["encoder.width"])


def test_every_id_of_our_reading_has_a_claim():
    check_ids("composition", Path(__file__).parent / "ids.txt")


def test_committed_ledger_has_the_same_claims():
    check_ledger("composition")
