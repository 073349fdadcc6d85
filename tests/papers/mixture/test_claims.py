"""Every claim at preset quick: judged, and not fooled by its control."""

from pathlib import Path

import pytest

from stagewise.lab import catalogue
from tests.papers.judged import check_claim, check_ids, check_ledger


@pytest.mark.parametrize("id", list(catalogue.papers()["mixture"].claims))
def test_claim_is_judged_and_fails_its_control(quick_mixture, id):
    check_claim(quick_mixture, id, ("holds", "fails"))


def test_every_id_of_our_reading_has_a_claim():
    check_ids("mixture", Path(__file__).parent / "ids.txt")


def test_committed_ledger_has_the_same_claims():
    check_ledger("mixture")
