"""Every claim at preset quick: judged, and not fooled by its control."""

from pathlib import Path

import pytest

from stagewise.lab import catalogue
from tests.papers.judged import check_claim, check_ids, check_ledger

OPEN = {
    "fig1b.natural",
    "fig1b.torch_linear",
    "fig1b.kaiming_normal",
    "lem44.natural",
    "attn_share.experiment",
    "thm33.C.width",
    "assumption23.T1",
    "defE2",
}
"""What the seeds of preset quick do not decide: seeds differ there, or the slope lies at the edge."""


@pytest.mark.slow
@pytest.mark.parametrize("id", list(catalogue.papers()["cooccurrence"].claims))
def test_claim_is_judged_and_fails_its_control(quick, id):
    open_too = ("inconclusive",) if id.partition(".")[2] in OPEN else ()
    check_claim(quick, id, ("holds", "fails", *open_too))


def test_every_id_of_our_reading_has_a_claim():
    check_ids("cooccurrence", Path(__file__).parent / "ids.txt")


def test_committed_ledger_has_the_same_claims():
    check_ledger("cooccurrence")
