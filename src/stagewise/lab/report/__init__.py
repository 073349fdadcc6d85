"""The page: one self-contained file that tells each paper, shows its figures and dynamics, and holds the
ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from string import Template

from stagewise.errors import Failed, one_line
from stagewise.lab.catalogue import Paper
from stagewise.lab.draw.figures import Figure, Spec, styled
from stagewise.lab.draw.pictures import save
from stagewise.lab.judge.ledger import Entry, given
from stagewise.lab.report.claims import Kept, beyond, ledger
from stagewise.lab.report.front import front, machine
from stagewise.lab.report.markup import text
from stagewise.lab.report.paper import part
from stagewise.lab.store.files import make_folder
from stagewise.lab.store.files import write as write_file
from stagewise.lab.store.run import Runs
from stagewise.precision import in_double

HERE = Path(__file__).parent
NOTHING_KEPT: Kept = {}


def write(
    papers: Sequence[Paper],
    entries: Sequence[Entry],
    charts: Mapping[Figure, Spec],
    preset: str,
    runs: Runs,
    target: Path,
    kept: Kept = NOTHING_KEPT,
) -> Path:
    """Write `report.html` into `target`."""
    write_file(target / "report.html", page(papers, entries, charts, preset, runs, kept).encode())
    return target / "report.html"


def save_all(charts: Mapping[Figure, Spec], target: Path) -> None:
    """Write the figures, as PNG and SVG, into a folder of `target`."""
    folder = make_folder(target / "figures")
    for figure, chart in charts.items():
        save(chart, folder / f"{figure.id}.svg", folder / f"{figure.id}.png")


@in_double
def page(
    papers: Sequence[Paper],
    entries: Sequence[Entry],
    charts: Mapping[Figure, Spec],
    preset: str,
    runs: Runs,
    kept: Kept = NOTHING_KEPT,
) -> str:
    """The whole page, with the figures given. `kept` are lines of ledgers of other presets: each claim shows
    what it came to there."""
    parts = [
        part(
            paper,
            entries,
            {figure: chart for figure, chart in charts.items() if figure.paper == paper.name},
            preset,
            runs,
        )
        for paper in papers
    ]
    return Template((HERE / "page.html").read_text()).substitute(
        style=(HERE / "page.css").read_text(),
        scripts=scripts("page.js"),
        front=front(papers, entries, preset, runs),
        machine=machine(),
        links="".join(f'<a href="#{text(paper.name)}">{text(paper.name)}</a>' for paper in papers),
        papers="\n".join(parts),
        ledger=ledger(entries, list(charts), preset, kept),
        beyond=beyond(entries),
    )


@in_double
def draw(figure: Figure, preset: str, runs: Runs) -> Spec:
    """The chart of a figure, from finished runs."""
    return styled(figure.draw(**{name: given(need, runs) for name, need in figure.needs_at(preset).items()}))


def draw_all(figures: Sequence[Figure], preset: str, runs: Runs) -> tuple[dict[Figure, Spec], dict[str, str]]:
    """The charts of figures, and of those that could not be drawn, by name, why."""
    charts: dict[Figure, Spec] = {}
    undrawn: dict[str, str] = {}
    for figure in figures:
        try:
            charts[figure] = draw(figure, preset, runs)
        except Exception as error:  # a run of it failed, or the figure itself is wrong: no other suffers
            undrawn[figure.id] = str(error) if isinstance(error, Failed) else one_line(error)
    return charts, undrawn


@cache
def scripts(*names: str) -> str:
    """vega, vega-lite and vega-embed with our own lines, as one bundle that needs no network."""
    import vl_convert

    return vl_convert.javascript_bundle(
        "\n".join((HERE / name).read_text() for name in ("charts.js", *names))
    ).replace("</script", "<\\/script")
