"""The front page: the papers, their verdicts, what it took, and on what machine."""

from __future__ import annotations

from collections.abc import Sequence

from stagewise.lab.catalogue import Paper
from stagewise.lab.execute.progress import duration
from stagewise.lab.judge.ledger import Entry
from stagewise.lab.judge.statistics import OUTCOMES
from stagewise.lab.report.markup import definitions, text, verdict
from stagewise.lab.spec.settings import by_path
from stagewise.lab.store.provenance import environment
from stagewise.lab.store.run import Runs

LEGEND = (
    "In brackets: 95 % intervals over seeds; exact where nothing is random. A control is a case on which the "
    "claim must not hold. "
    "Lines in figures are medians over seeds, bands the middle 80 %."
)


def front(papers: Sequence[Paper], entries: Sequence[Entry], preset: str, runs: Runs) -> str:
    cards = "".join(
        _card(paper, [entry for entry in entries if entry.claim.paper == paper.name], runs)
        for paper in papers
    )
    seconds = sum({run.folders: run.seconds for run in runs.values()}.values())
    took = f"{len({run.folders for run in runs.values()})} runs, {duration(seconds)} of computing"
    return (
        f"<p>{len(entries)} claims at preset <b>{text(preset)}</b>: {_counts(entries)}. {took}, on "
        f"{text(_here())}.</p>"
        f'<div class="cards">{cards}</div><p class="soft">{text(LEGEND)}</p>'
    )


def _here() -> str:
    found = environment()
    return f"{found['cores']} cores ({found['processor']})"


def machine() -> str:
    """Where the report was made."""
    return definitions([(name, text(value)) for name, value in by_path(environment(), " ").items()])


def _card(paper: Paper, entries: Sequence[Entry], runs: Runs) -> str:
    mine = {
        run.folders: run.seconds
        for experiment, run in runs.items()
        if experiment.name.partition(".")[0] == paper.name
    }
    return (
        '<a class="card" '
        f'href="#{text(paper.name)}"><b>{text(paper.name)}</b><span>{text(paper.title)}</span>'
        f'<span>{_counts(entries)}</span><span class="soft">{len(mine)} runs, '
        f"{duration(sum(mine.values()))}</span></a>"
    )


def _counts(entries: Sequence[Entry]) -> str:
    counts = {name: sum(entry.verdict.outcome == name for entry in entries) for name in OUTCOMES}
    return " ".join(verdict(name, count) for name, count in counts.items() if count)
