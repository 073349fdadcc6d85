"""What every paper's claims must stand: judged at preset quick, not fooled by their controls, all there, and
in the ledger."""

from pathlib import Path

from stagewise.lab import catalogue
from stagewise.lab.store.files import read_json

LEDGER = Path(__file__).parents[2] / "ledger" / "quick.json"
LINES = read_json(LEDGER)["claims"]
COMMITTED = {line["id"]: line["verdict"] for line in LINES}


def check_claim(quick, id: str, outcomes: tuple[str, ...]) -> None:
    judged = next(e for e in quick.entries if e.claim.id == id)
    assert not judged.defect, judged.defect
    assert judged.verdict.outcome in outcomes, judged.verdict
    assert judged.control.outcome != "holds", judged.control
    sides = {judged.verdict.outcome, COMMITTED.get(id)}
    assert sides != {"holds", "fails"}, (
        f"{id} {judged.verdict.outcome}, and {COMMITTED[id]} in the committed ledger: mend it, or commit the "
        "new ledger and say why"
    )


def check_ids(paper: str, listed: Path) -> None:
    assert set(listed.read_text().split()) <= set(catalogue.papers()[paper].claims)


def check_ledger(paper: str) -> None:
    assert {id for id in COMMITTED if id.partition(".")[0] == paper} == set(catalogue.papers()[paper].claims)
