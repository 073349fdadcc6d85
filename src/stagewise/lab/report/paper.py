"""A paper's part of the page: its story, each step beside what it speaks of, then the figures that the story
left out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from stagewise.lab.catalogue import Paper
from stagewise.lab.draw import dynamics, example
from stagewise.lab.draw.figures import Figure, Spec, styled
from stagewise.lab.judge.ledger import Entry, experiments_of, given, missing
from stagewise.lab.judge.statistics import BROKEN, FAILS, HOLDS, INCONCLUSIVE
from stagewise.lab.report.markup import chart, in_words, link, prose, text, verdict
from stagewise.lab.store.run import Runs


def part(
    paper: Paper, entries: Sequence[Entry], figures: Mapping[Figure, Spec], preset: str, runs: Runs
) -> str:
    """`figures` are those that could be drawn, with their charts."""
    drawn = {figure.id: _figure(figure, shown, preset) for figure, shown in figures.items()}
    known, told, parts = paper.figures(), set(), []
    for step in paper.told():
        told |= {shown for shown in step.shown if isinstance(shown, str)}
        inner = "".join(_shown(shown, drawn, known, preset, runs) for shown in step.shown)
        parts.append(f"<h3>{text(step.title)}</h3><p>{prose(step.text)}</p>{inner}")
    rest = "".join(html for id, html in drawn.items() if id not in told)
    more = f"<h3>More figures</h3>{rest}" if rest else ""
    mine = [entry for entry in entries if entry.claim.paper == paper.name]
    return (
        f'<section id="{text(paper.name)}"><h2>{text(paper.title)}</h2>'
        f"{''.join(parts)}{more}{_came_out(mine)}{_slips(paper)}"
        f'<p><a href="#ledger" data-paper="{text(paper.name)}">All claims of this paper</a></p></section>'
    )


def _shown(shown: Any, drawn: Mapping[str, str], known: Mapping[str, Figure], preset: str, runs: Runs) -> str:
    if isinstance(shown, str):
        return drawn.get(shown) or _not_drawn(known[shown], preset)
    if isinstance(shown, dynamics.Dynamics):
        return scrubbed(shown, preset, runs)
    sampled = shown()
    picture = chart(styled(example.draw(sampled)), sampled.says)
    return f"<figure>{picture}<figcaption><p>{text(sampled.says)}</p></figcaption></figure>"


def _not_drawn(figure: Figure, preset: str) -> str:
    later = missing(figure.needs_at(preset))
    why = f"takes more than preset {preset} has" if later else "was not drawn here"
    return (
        f'<p class="soft">The figure {text(figure.id)} ({text(figure.source)}) {text(why)}: '
        f"<code>{_command(figure.id, 'standard' if later else preset)}</code></p>"
    )


def scrubbed(shown: dynamics.Dynamics, preset: str, runs: Runs) -> str:
    """Charts with a slider, if what they need is there."""
    needs = shown.needs_at(preset)
    if missing(needs) or not all(experiment in runs for experiment in experiments_of(needs)):
        return ""
    frames = shown.frames(**{name: given(need, runs) for name, need in needs.items()})
    told = frames.labels()
    labels, last = "".join(f"<option>{text(label)}</option>" for label in told), len(told) - 1
    return (
        f'<figure class="dynamics" id="{text(shown.id)}"><div class="controls"><button type="button" '
        'class="play">Play</button>'
        f'<input type="range" min="0" max="{last}" value="{last}" aria-valuetext="{text(told[-1])}" '
        f'aria-label="training time, {text(shown.id)}"><output></output>'
        '<label><input type="checkbox" class="singles"> single '
        f"seeds</label><datalist>{labels}</datalist></div>"
        f"{chart(styled(dynamics.draw(frames)), shown.shows)}"
        f"<figcaption><p>{text(shown.shows)}</p></figcaption></figure>"
    )


def _figure(figure: Figure, drawn: Spec, preset: str) -> str:
    used = dict.fromkeys(in_words(experiment) for experiment in experiments_of(figure.needs_at(preset)))
    settings = "".join(f"<li>{text(line)}</li>" for line in list(used)[:12]) + (
        f"<li>and {len(used) - 12} more</li>" if len(used) > 12 else ""
    )
    return (
        f'<figure id="{text(figure.id)}"><h4>{text(figure.source)} '
        f"<small>{text(figure.id)}</small></h4>{chart(drawn, figure.shows)}"
        f"<figcaption><p><b>Here:</b> {text(figure.shows)}</p><p><b>In the paper:</b> "
        f"{text(figure.paper_shows)}</p>"
        f"<details><summary>Settings and command</summary><ul>{settings}</ul>"
        f"<p><code>{_command(figure.id, preset)}</code></p></details></figcaption></figure>"
    )


def _came_out(entries: Sequence[Entry]) -> str:
    """How many claims hold, and which do not."""
    lines = ""
    for outcome in (FAILS, INCONCLUSIVE, BROKEN):
        some = [entry for entry in entries if entry.verdict.outcome == outcome]
        told = "".join(
            f"<li>{link(entry.claim.id)} {text(entry.claim.statement)} <span "
            f"class=soft>{text(entry.verdict.why or entry.claim.note)}</span></li>"
            for entry in some
        )
        lines += (
            f"<details><summary>{verdict(outcome, len(some))}</summary><ul>{told}</ul></details>"
            if some
            else ""
        )
    held, tested = (
        sum(entry.verdict.outcome in outcomes for entry in entries)
        for outcomes in ((HOLDS,), (HOLDS, FAILS, INCONCLUSIVE))
    )
    return (
        f"<h3>What came out</h3><p>Of {len(entries)} claims {tested} were tested here, and {held} "
        f"hold.</p>{lines}"
    )


def _command(id: str, preset: str) -> str:
    return f"stagewise figure {text(id)} --preset {text(preset)} --out {text(id)}.svg"


def _slips(paper: Paper) -> str:
    _, _, rest = paper.story.partition("Read on:")
    listed = "".join(f"<li>{prose(slip)}</li>" for slip in re.findall(r"^- (.*(?:\n  .*)*)", rest, re.M))
    return (
        f"<details><summary>Where the paper's print is off</summary><ul>{listed}</ul></details>"
        if listed
        else ""
    )
