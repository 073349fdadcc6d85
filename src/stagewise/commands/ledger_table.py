"""The ledger as a table in the terminal."""

from __future__ import annotations

import sys
from collections import Counter


def print_ledger(entries) -> None:
    """The ledger as a table."""
    from rich.console import Console
    from rich.table import Table

    from stagewise.lab.judge.ledger import missing
    from stagewise.lab.judge.statistics import BROKEN, OUTCOMES
    from stagewise.lab.report.markup import number

    colours = dict(zip(OUTCOMES, ("green", "red", "yellow", "dim", "magenta")))
    table = Table(box=None, pad_edge=False)
    for column in ("claim", "source", "verdict", "margin", "measured", "seeds", "control"):
        table.add_column(column, overflow="fold")
    for entry in entries:
        outcome = entry.verdict.outcome
        measured = "\n".join(f"{name}: {number(value)}" for name, value in entry.verdict.measured.items())
        control = (
            f"{entry.control.outcome}, as it must"
            if entry.control.outcome == "fails"
            else entry.control.outcome
        )
        table.add_row(
            entry.claim.id,
            entry.claim.source,
            f"[{colours[outcome]}]{outcome}[/]",
            "" if entry.verdict.margin is None else f"{entry.verdict.margin:+.1f}",
            measured.replace("[", "\\["),
            str(entry.verdict.seeds),
            control,
        )
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(table)
    counts = Counter(entry.verdict.outcome for entry in entries)
    later = [entry.claim.id for entry in entries if missing(entry.claim.needs_at(entry.preset))]
    for entry in entries:
        if entry.verdict.outcome != "holds" and entry.claim.id not in later:
            why = "; ".join(part for part in (entry.verdict.why, entry.claim.note) if part)
            told = f"{entry.claim.id} {entry.verdict.outcome}: {entry.claim.statement} {why}"
            if entry.verdict.decides:
                told += f" It would take {entry.verdict.decides}."
            console.print(told, markup=False)
    if fragile := [entry.claim.id for entry in entries if entry.fragile]:
        console.print(f"Fragile, another start gives another verdict: {', '.join(fragile)}", markup=False)
    if later:
        console.print(f"For preset standard: {', '.join(later)}", markup=False)
    console.print(
        "In brackets: 95 % intervals over seeds; `exact` where nothing is random. Margin: how far from the "
        "threshold, in half widths of the interval, exact ones in decades. A control is a case on which the "
        "claim must not hold.",
        markup=False,
    )
    told = [f"{counts[name]} {name}" for name in OUTCOMES if counts[name] or name != BROKEN]
    console.print(f"{len(entries)} claims: " + ", ".join(told))
