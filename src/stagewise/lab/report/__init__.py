"""The page: one self-contained file with the ledger, the figures beside what the paper shows, and where it was made."""

from __future__ import annotations

import html
import re
from pathlib import Path
from string import Template
from typing import Any, Sequence

from stagewise.lab.catalogue import Paper
from stagewise.lab.engine import Runs
from stagewise.lab.figures import Figure, styled
from stagewise.lab.files import make_folder
from stagewise.lab.files import write as write_file
from stagewise.lab.ledger import Entry, given, experiments_of
from stagewise.lab.provenance import environment
from stagewise.lab.settings import flatten

_HERE = Path(__file__).parent


def write(papers: Sequence[Paper], entries: Sequence[Entry], figures: Sequence[Figure], preset: str, runs: Runs, target: Path) -> Path:
    """Draw the figures (as PNG, SVG and in the page) and write `report.html` into `target`."""
    charts = [draw(figure, preset, runs) for figure in figures]
    save_pictures(figures, charts, target / "figures")
    sections = []
    for paper in papers:
        judged = [entry for entry in entries if entry.claim.paper == paper.name]
        drawn = [(figure, chart) for figure, chart in zip(figures, charts) if figure.paper == paper.name]
        sections.append(_paper(paper, judged, drawn, preset))
    page = Template((_HERE / "page.html").read_text()).substitute(
        style=(_HERE / "page.css").read_text(),
        scripts=_scripts(),
        sections="\n".join(sections),
        summary=_summary(entries, preset),
        environment=_environment(),
    )
    write_file(target / "report.html", page.encode())
    return target / "report.html"


def draw(figure: Figure, preset: str, runs: Runs) -> Any:
    """The chart of a figure, from finished runs."""
    return styled(figure.draw(**{name: given(need, runs) for name, need in figure.needs_at(preset).items()}))


def save_pictures(figures: Sequence[Figure], charts: Sequence[Any], folder: Path) -> None:
    import vl_convert

    make_folder(folder)
    for figure, chart in zip(figures, charts):
        picture = vl_convert.vegalite_to_svg(chart.to_json())
        write_file(folder / f"{figure.id}.svg", picture.encode())
        write_file(folder / f"{figure.id}.png", vl_convert.svg_to_png(picture, scale=2))


def _paper(paper: Paper, entries: Sequence[Entry], figures, preset: str) -> str:
    story, _, rest = paper.story.partition("\n\n")[2].partition("Read on:")
    told = "".join(f"<p>{_prose(part)}</p>" for part in story.strip().split("\n\n"))
    slips = re.findall(r"^- (.*(?:\n  .*)*)", rest, re.M)
    listed = "".join(f"<li>{_prose(slip)}</li>" for slip in slips)
    off = f"<details><summary>Where the paper's print is off</summary><ul>{listed}</ul></details>" if slips else ""
    drawn = "".join(_figure(figure, chart, preset) for figure, chart in figures)
    rows = "".join(_row(entry) for entry in entries)
    heading = "<tr><th>claim</th><th>verdict</th><th>measured</th><th>threshold</th><th>seeds</th><th>control</th></tr>"
    return (
        f'<section id="{_text(paper.name)}"><h2>{_text(paper.title)}</h2>{told}{off}'
        f"<h3>Figures</h3>{drawn}<h3>Ledger</h3>"
        f'<table class="ledger"><thead>{heading}</thead><tbody>{rows}</tbody></table></section>'
    )


def _figure(figure: Figure, chart: Any, preset: str) -> str:
    settings = "".join(
        f"<li>{_text(name)}: {_text(need.name)} with {_text(_settings(need))}</li>"
        for name, need in ((n, e) for n, v in figure.needs_at(preset).items() for e in experiments_of({n: v})[:1])
    )
    spec = chart.to_json(indent=None).replace("</", "<\\/")
    return (
        f'<figure id="{_text(figure.id)}"><h4>{_text(figure.source)} <small>{_text(figure.id)}</small></h4>'
        f'<div class="chart" role="img" aria-label="{_text(figure.shows)}"></div>'
        f'<script type="application/json" class="spec">{spec}</script>'
        f"<figcaption><p><b>Here:</b> {_text(figure.shows)}</p><p><b>In the paper:</b> {_text(figure.paper_shows)}</p>"
        f"<details><summary>Settings</summary><ul>{settings}</ul></details></figcaption></figure>"
    )


def _settings(experiment) -> str:
    return ", ".join(f"{path} = {value}" for path, value in flatten(experiment).items() if value is not None)


def _row(entry: Entry) -> str:
    data, claim = entry.to_json(), entry.claim
    measured = "<br>".join(f"{_text(name)}: {_text(number(value))}" for name, value in entry.verdict.measured.items()) or _text(entry.verdict.why)
    ours = ' <small class="ours">beyond the paper</small>' if claim.beyond_paper else ""
    more = "".join(
        f"<dt>{label}</dt><dd>{_text(str(value))}</dd>"
        for label, value in [
            ("The paper predicts", claim.predicted), ("Threshold", claim.threshold), ("Because", claim.reason),
            ("Restated", claim.restated), ("Note", claim.note), ("Why", entry.verdict.why),
            ("Command", f"stagewise reproduce {claim.id} --preset {entry.preset}"), ("Runs", ", ".join(data["runs"])),
        ]
        if value
    )  # fmt: skip
    return (
        f'<tr id="{_text(claim.id)}"><td><b>{_text(claim.id)}</b>{ours}<br><small>{_text(claim.source)}</small>'
        f"<details><summary>{_text(claim.statement)}</summary><dl>{more}</dl></details></td>"
        f'<td><span class="verdict {entry.verdict.outcome}">{entry.verdict.outcome}</span></td><td>{measured}</td>'
        f"<td>{_text(claim.threshold)}</td><td>{entry.verdict.seeds}</td>"
        f"<td>{_text(claim.control_is)}: <b>{entry.control.outcome}</b>{', as it must' if entry.control.outcome == 'fails' else ''}</td></tr>"
    )


def number(interval) -> str:
    """A value with its interval, to the digits that matter."""
    if interval.low == interval.high == interval.value:
        return f"{interval.value:.4g}"
    return f"{interval.value:.4g} [{interval.low:.4g}, {interval.high:.4g}]"


def _summary(entries: Sequence[Entry], preset: str) -> str:
    counts = {name: sum(e.verdict.outcome == name for e in entries) for name in ("holds", "fails", "inconclusive", "untested")}
    told = " ".join(f'<span class="verdict {name}">{count} {name}</span>' for name, count in counts.items() if count)
    legend = ("In brackets: 95 % intervals over seeds; exact where nothing is random. A control is a case on which the claim must not hold. "
              "Lines in figures are medians over seeds, bands the middle 80 %.")  # fmt: skip
    return f"<p>{len(entries)} claims at preset <b>{_text(preset)}</b>: {told}</p><p><small>{legend}</small></p>"


def _environment() -> str:
    rows = flatten_json(environment())
    return "".join(f"<dt>{_text(name)}</dt><dd>{_text(str(value))}</dd>" for name, value in rows.items())


def flatten_json(value: dict, prefix: str = "") -> dict[str, Any]:
    flat = {}
    for name, inner in value.items():
        flat |= flatten_json(inner, f"{prefix}{name} ") if isinstance(inner, dict) else {prefix + name: inner}
    return flat


def _scripts() -> str:
    """vega, vega-lite and vega-embed with the lines that draw every chart, as one bundle that needs no network."""
    import vl_convert

    return vl_convert.javascript_bundle((_HERE / "page.js").read_text()).replace("</script", "<\\/script")


def _prose(value: str) -> str:
    """Text with `names` in code type."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", _text(value))


def _text(value: str) -> str:
    return html.escape(value, quote=True)
