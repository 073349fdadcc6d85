"""The ledger on the page: every claim opens to all that is known of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stagewise.lab.draw.charts import measured
from stagewise.lab.draw.figures import Figure
from stagewise.lab.judge.ledger import Entry, experiments_of
from stagewise.lab.report.markup import anchor, chart, definitions, in_words, link, number, text, verdict

MOST_SETTINGS = 6


Kept = Mapping[str, Mapping[str, Mapping[str, Any]]]  # preset -> claim -> its line in a kept ledger


def ledger(entries: Sequence[Entry], figures: Sequence[Figure], preset: str, kept: Kept) -> str:
    """Filters, then a line a claim: its verdict here, and a column for each other preset whose ledger is
    kept."""
    others = {name: lines for name, lines in kept.items() if name != preset}
    used = {figure: frozenset(experiments_of(figure.needs_at(preset))) for figure in figures}
    papers = dict.fromkeys(entry.claim.paper for entry in entries)
    outcomes = dict.fromkeys(entry.verdict.outcome for entry in entries)
    return (
        '<section id="ledger"><h2>The ledger</h2><form class="filters" role="search" onsubmit="return false">'
        f"{_choice('paper', 'every paper', papers)}{_choice('verdict', 'every verdict', outcomes)}"
        '<label>text <input type="search" name="text" placeholder="theorem, id, words"></label>'
        f'<output class="soft" aria-live="polite">{len(entries)} claims</output></form>'
        f"{_columns(preset, others)}{''.join(_claim(entry, used, others) for entry in entries)}</section>"
    )


def beyond(entries: Sequence[Entry]) -> str:
    """The claims that are ours, together."""
    ours = [entry for entry in entries if entry.claim.beyond_paper]
    if not ours:
        return ""
    lines = "".join(
        f"<li>{verdict(entry.verdict.outcome)} {link(entry.claim.id)} {text(entry.claim.statement)}</li>"
        for entry in ours
    )
    return (
        '<section id="beyond"><h2>Beyond the papers</h2><p>Claims that no paper makes: what its figures '
        "or proofs suggest, repaired forms of what fails as printed, and what we found on the way.</p><ul "
        f'class="plain">{lines}</ul></section>'
    )


def _columns(preset: str, others: Kept) -> str:
    """What stands over the columns, where there are several."""
    names = "".join(_column(text(name)) for name in (preset, *others))
    return f'<p class="presets soft">{names}</p>' if others else ""


def _verdicts(entry: Entry, others: Kept) -> str:
    """The verdict here, then those at other presets, each below its preset's name; a dash where a claim was
    not judged."""
    here = verdict(entry.verdict.outcome)
    found = (lines.get(entry.claim.id, {}).get("verdict", "") for lines in others.values())
    there = [verdict(outcome) if outcome else "–" for outcome in found]
    return "".join(map(_column, (here, *there))) if others else f"{here} "


def _column(inner: str) -> str:
    return f'<span class="column">{inner}</span>'


def _at_others(claim: str, others: Kept) -> list[tuple[str, str]]:
    return [(f"at preset {name}", _told(lines[claim])) for name, lines in others.items() if claim in lines]


def _told(line: Mapping[str, Any]) -> str:
    """A line of a kept ledger, in a few words."""
    made = line.get("made", {})
    parts = [f"{line['seeds']} seeds" if isinstance(line["seeds"], int) else line["seeds"]]
    parts += [f"margin {line['margin']:g}"] if line.get("margin") is not None else []
    parts += [made["date"], made["machine"]] if made else []
    return f"{verdict(line['verdict'])} <small>{text(', '.join(map(str, parts)))}</small>"


def _choice(name: str, every: str, values: Mapping[str, None]) -> str:
    options = "".join(f"<option>{text(value)}</option>" for value in values)
    return (
        f'<label>{text(name)} <select name="{text(name)}"><option '
        f'value="">{text(every)}</option>{options}</select></label>'
    )


def _measured(entry: Entry) -> str:
    """What was measured, drawn, for a claim that no figure shows."""
    drawn = measured(entry.claim.id, entry.verdict, entry.control)
    if not drawn:
        return ""
    says = f"measured values of {entry.claim.id} and of its control, with intervals"
    return f"<figure>{chart(drawn, says)}</figure>"


def _claim(entry: Entry, used: Mapping[Figure, frozenset], others: Kept) -> str:
    claim = entry.claim
    values = "<br>".join(
        f"{text(name)}: {text(number(value))}" for name, value in entry.verdict.measured.items()
    )
    fooled = "; ".join(f"{name}: {number(value)}" for name, value in entry.control.measured.items())
    runs = experiments_of(claim.needs_at(entry.preset))
    settings = list(dict.fromkeys(in_words(experiment) for experiment in runs))
    listed = "<br>".join(map(text, settings[:MOST_SETTINGS])) + (
        f"<br>and {len(settings) - MOST_SETTINGS} more" if len(settings) > MOST_SETTINGS else ""
    )
    related = [
        figure
        for figure, experiments in used.items()
        if figure.paper == claim.paper and experiments & set(runs)
    ]
    more = definitions(
        [
            ("source", text(claim.source)),
            ("the paper predicts", text(claim.predicted)),
            ("measured", values),
            ("margin", text(_margin(entry))),
            ("why", text(entry.verdict.why)),
            ("would decide it", text(entry.verdict.decides)),
            ("fragile", "starts off by rounding errors give another verdict" if entry.fragile else ""),
            *_at_others(claim.id, others),
            ("threshold", text(claim.threshold)),
            ("because", text(claim.reason)),
            (
                "control",
                f"{text(claim.control_is)}: {verdict(entry.control.outcome)} <small>{text(fooled)}</small>",
            ),
            ("null", text(_null(entry))),
            ("rests on", " ".join(link(used_claim) for used_claim in claim.uses)),
            ("seeds", text(entry.verdict.seeds or "")),
            ("restated", text(claim.restated)),
            ("note", text(claim.note)),
            (
                "figure",
                " ".join(f'<a href="#{text(figure.id)}">{text(figure.id)}</a>' for figure in related[:4])
                or _measured(entry),
            ),
            ("settings", listed),
            ("command", f"<code>stagewise reproduce {text(claim.id)} --preset {text(entry.preset)}</code>"),
        ]
    )
    ours = ' <small class="ours">beyond the paper</small>' if claim.beyond_paper else ""
    return (
        f'<details class="claim" id="{text(anchor(claim.id))}" data-paper="{text(claim.paper)}" '
        f'data-verdict="{text(entry.verdict.outcome)}">'
        f"<summary>{_verdicts(entry, others)}"
        f"<b>{text(claim.id)}</b>{ours} "
        f"<span>{text(claim.statement)}</span></summary>{more}</details>"
    )


def _margin(entry: Entry) -> str:
    margin = entry.verdict.margin
    if margin is None:
        return ""
    unit = "decades" if entry.verdict.seeds == "exact" else "half widths of the interval"
    return f"{margin:+.3g} {unit} from the threshold, on the claim's side if positive"


def _null(entry: Entry) -> str:
    found = entry.null
    return f"{found.what}: {found.holds} of {found.trials} times `holds`" if found else ""
