"""Every control changes what is run or read. Those that do not yet are listed here; the list only shrinks."""

import pytest

from stagewise.lab import catalogue
from tests.papers.controls import by_its_figures, by_its_needs
from tests.papers.judged import LINES

BY_THEIR_NEEDS = """
composition.fig3right composition.fig3right.readouts composition.perturb composition.appE
composition.thm7.M.k composition.thm7.M.N
cooccurrence.D1 cooccurrence.D1.D5 cooccurrence.softmax_rate cooccurrence.attn_share
cooccurrence.attn_share.experiment cooccurrence.attn_share.size cooccurrence.lem45 cooccurrence.thm32.sums
lego.slot4 lego.slot4.symmetric lego.pred_cause lego.nope lego.init lego.thm41.learned lego.thm51.const
lego.thm51.contrast lego.thm51.window lego.s1.phase lego.eps_order lego.s2.1 lego.s2.1.early lego.s2.2
lego.s2.sym lego.s2.feedback lego.rates lego.fig1a lego.fig1b lego.fig6 lego.fig7
mixture.fig1a mixture.fig1b mixture.fig3 mixture.fig5 mixture.fig6 mixture.fig7 mixture.lemE1 mixture.lemE4
mixture.alg1_vs_joint mixture.thm41_sym mixture.lemG1 mixture.bias
parity.fig4.chain parity.fig9 parity.fig1b parity.fig1b.plain parity.thm1.precision parity.lem7
parity.lem30_31 parity.fig1a parity.fig2b parity.fig2a parity.fig3a parity.thm3.precision parity.thm2.grad
""".split()
BY_THEIR_FIGURES = ["cooccurrence.balance.limit", "parity.fig2b"]
"""What the control measures is a straight line of what the claim does."""


def test_controls_change_what_is_run_or_read():
    exact = {line["id"] for line in LINES if line["seeds"] == "exact"}
    found = {id: by_its_needs(claim, id in exact) for id, claim in catalogue.claims().items()}
    offenders = {id: what for id, what in found.items() if what}
    new = {id: what for id, what in offenders.items() if id not in BY_THEIR_NEEDS}
    assert not new, f"controls that are arithmetic on what their claim measures: {new}"
    mended = set(BY_THEIR_NEEDS) - set(offenders)
    assert not mended, f"take these off the list: {sorted(mended)}"


@pytest.mark.slow
def test_controls_measure_something_else(quick):
    found = {entry.claim.id: by_its_figures(entry) for entry in quick.entries}
    offenders = {id: what for id, what in found.items() if what}
    assert set(offenders) == set(BY_THEIR_FIGURES), offenders


def test_what_a_claim_uses_exists():
    claims = catalogue.claims()
    for id, claim in claims.items():
        assert set(claim.uses) <= set(claims) - {id}, id


def test_every_claim_of_mixture_names_its_null():
    assert not [id for id, claim in catalogue.papers()["mixture"].claims.items() if claim.null is None]


@pytest.mark.slow
def test_open_lines_say_what_would_decide_them_and_judged_ones_how_far_they_are(quick):
    for entry in quick.entries:
        verdict = entry.verdict
        if verdict.outcome in ("inconclusive", "untested"):
            assert verdict.decides, entry.claim.id
        if verdict.measured:
            assert verdict.margin is not None, entry.claim.id
        if verdict.outcome == "holds":
            assert verdict.margin >= 0, (entry.claim.id, verdict.margin)
        if verdict.outcome == "fails":
            assert verdict.margin < 0, (entry.claim.id, verdict.margin)
