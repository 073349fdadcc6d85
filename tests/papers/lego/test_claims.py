"""Every claim at preset quick: judged, and not fooled by its control."""

from pathlib import Path

import pytest

from stagewise.lab import catalogue
from stagewise.lab.judge.ledger import missing
from tests.papers.judged import check_claim, check_ids, check_ledger

OPEN = {"fig2", "thm51.double", "s1.sparse", "eq17", "eq17e", "eq18", "eq18n", "s1.curric"}
"""What the seeds of preset quick need not decide."""

CLAIMS = catalogue.papers()["lego"].claims
LATER = {"lego.s2.gap_rate"} | {id for id, claim in CLAIMS.items() if missing(claim.needs_at("quick"))}


@pytest.mark.slow
@pytest.mark.parametrize("id", list(CLAIMS))
def test_claim_is_judged_and_fails_its_control(quick, id):
    if id in LATER:
        check_claim(quick, id, ("untested",))
    else:
        check_claim(
            quick, id, ("holds", "fails", *(("inconclusive",) if id.partition(".")[2] in OPEN else ()))
        )


def test_every_claim_is_run_at_preset_standard():
    assert not any(missing(claim.needs_at("standard")) for claim in CLAIMS.values())


def test_every_id_of_our_reading_has_a_claim():
    check_ids("lego", Path(__file__).parent / "ids.txt")


def test_committed_ledger_has_the_same_claims():
    check_ledger("lego")
