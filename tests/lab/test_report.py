"""The ledger's file, and the page in a real browser, from disk."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from stagewise.lab import catalogue
from stagewise.lab.draw.charts import kept_records
from stagewise.lab.draw.example import Example
from stagewise.lab.judge.ledger import missing
from tests.lab.browsing import watched

pytestmark = pytest.mark.slow

SHOTS = "screenshots"


def test_the_page_is_one_file_that_needs_no_network(quick):
    page = quick.report.read_text()
    assert len(page) < 6e6
    page = re.sub(r"(<script[^>]*>).*?</script>", r"\1", page, flags=re.S)
    outside = re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=[\"'](?!data:)", page)
    assert not outside
    for entry in quick.entries:
        assert f'id="claim-{entry.claim.id}"' in page


def test_the_ledger_has_the_promised_form(quick):
    for entry in json.loads(quick.ledger.read_text())["claims"]:
        promised = {
            "id",
            "paper",
            "source",
            "statement",
            "verdict",
            "measured",
            "predicted",
            "threshold",
            "reason",
            "seeds",
            "control",
            "beyond_paper",
            "preset",
            "seconds",
            "runs",
        }
        assert promised <= set(entry)
        assert entry["verdict"] in ("holds", "fails", "inconclusive", "untested") and set(
            entry["control"]
        ) >= {"what", "verdict"}
        assert all(set(value) == {"value", "low", "high"} for value in entry["measured"].values())
        assert entry["seeds"] == "exact" or isinstance(entry["seeds"], int)


def test_every_chart_keeps_to_the_schema(quick):
    """Of Vega-Lite: what is not checked when a page is made is checked here."""
    import altair as alt

    specs = re.findall(r'class="spec">(.*?)</script>', quick.report.read_text(), re.S)
    assert len(specs) > 100
    for spec in specs[::3]:
        alt.Chart.from_dict(json.loads(spec.replace("<\\/", "</")), validate=True)


def test_every_figure_has_a_picture(quick):
    drawn = 0
    for paper in catalogue.papers().values():
        for id, figure in paper.figures().items():
            later = missing(figure.needs_at("quick"))
            for ending in ("png", "svg"):
                picture = quick.report.parent / "figures" / f"{id}.{ending}"
                assert not picture.exists() if later else picture.stat().st_size > 2000
            drawn += not later
    assert drawn >= 20


@pytest.mark.parametrize("paper", list(catalogue.papers()))
def test_a_story_has_an_example_and_dynamics_and_names_only_figures_there_are(paper):
    from stagewise.lab.draw.dynamics import Dynamics

    paper = catalogue.papers()[paper]
    shown = [each for part in paper.told() for each in part.shown]
    assert {each for each in shown if isinstance(each, str)} <= set(paper.figures())
    assert any(isinstance(each, Dynamics) for each in shown)
    examples = [each() for each in shown if not isinstance(each, (str, Dynamics))]
    assert examples and all(isinstance(each, Example) and each.needs for each in examples)


def test_examples_name_what_answers_depend_on():
    """Read off the drawn example alone, every answer comes out as it stands there."""
    from stagewise.papers.composition.story import sequence as follow
    from stagewise.papers.mixture.story import sequence as sign
    from stagewise.papers.parity.story import sequence as parity

    drawn = parity()
    for place in sorted(drawn.answers):
        assert (
            int(drawn.tokens[place])
            == sum(int(drawn.tokens[needed]) for asks, needed, _ in drawn.needs if asks == place) % 2
        )
    drawn = follow()
    [end] = drawn.answers
    assert f"={drawn.tokens[drawn.needs[-1][1]]}" == drawn.tokens[end]
    asked = [drawn.tokens[before] for _, before, why in drawn.needs[:-1]]
    assert asked[0] == "1→" and all(token in "123" for token in asked[1:])
    drawn = sign()
    [(_, counts, _)] = [link for link in drawn.needs if link[0] in drawn.answers]
    assert drawn.tokens[-1].endswith("-1") == drawn.tokens[counts].startswith("-")


def test_thinning_keeps_jumps_and_ends():
    curve = np.zeros((10_000, 2))
    curve[7001:, 0] = 1  # one jump, and one spike
    curve[3000, 1] = 5
    kept = kept_records(curve, 64)
    assert len(kept) <= 64 and kept[0] == 0 and kept[-1] == 9999 and np.all(np.diff(kept) > 0)
    assert {7000, 7001, 3000} <= set(kept.tolist())
    assert np.array_equal(kept_records(curve[:50], 64), np.arange(50))


@pytest.mark.oracle
def test_the_page_works_in_a_browser(quick, browser):
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    wrong, shots = watched(page), Path(quick.report.parent / SHOTS)
    shots.mkdir(exist_ok=True)
    page.goto(quick.report.as_uri())
    paint = page.evaluate(
        "new Promise(seen => new PerformanceObserver(list => "
        "seen(list.getEntries()[0].startTime)).observe({type: 'paint', buffered: true}))"
    )
    assert paint < 10_000  # two seconds on a quiet machine: benchmarks/page.py
    page.wait_for_function("document.body.dataset.drawn == 'all'", timeout=120_000)
    figures = page.evaluate(
        "[...document.querySelectorAll('figure')].filter(one => one.querySelector('.spec') && "
        "!one.closest('details')).length"
    )
    assert page.locator("figure .chart svg").count() == figures >= 20
    page.screenshot(path=shots / "front.png")
    for paper in catalogue.papers():
        page.locator(f"#{paper}").screenshot(path=shots / f"{paper}.png")

    # the slider moves attention, scores, losses and the stage together
    scrubbed = page.locator("[id='mixture.scrub']")
    scrubbed.scroll_into_view_if_needed()
    slider, told = scrubbed.locator("input[type=range]"), scrubbed.locator("output")
    before, last = scrubbed.locator(".chart").inner_html(), told.inner_text()
    slider.focus()
    page.keyboard.press("Home")
    page.wait_for_function("document.getElementById('mixture.scrub').dataset.now == '0'")
    assert scrubbed.locator(".chart").inner_html() != before and told.inner_text() != last
    scrubbed.screenshot(path=shots / "scrubbed.png")
    scrubbed.locator(".play").click()
    page.wait_for_function("Number(document.getElementById('mixture.scrub').dataset.now) > 1")
    scrubbed.locator(".play").click()
    assert scrubbed.locator(".play").inner_text() == "Play"

    # filters of the ledger
    fails = sum(entry.verdict.outcome == "fails" for entry in quick.entries)
    page.select_option(".filters [name=verdict]", "fails")
    assert page.locator(".claim:visible").count() == fails
    page.select_option(".filters [name=verdict]", "")
    page.select_option(".filters [name=paper]", "mixture")
    page.fill(".filters [name=text]", "theorem 4.1")
    some = page.locator(".claim:visible").count()
    assert 0 < some < sum(entry.claim.paper == "mixture" for entry in quick.entries)
    page.locator(".claim:visible summary").first.click()
    assert (
        page.locator(".claim[open]:visible code")
        .first.inner_text()
        .startswith("stagewise reproduce mixture.")
    )
    page.locator("#ledger").screenshot(path=shots / "ledger.png")

    # a claim that no figure shows is drawn once it is opened, and a link opens the claim, not the figure of
    # the same name
    page.goto(quick.report.as_uri() + "#claim-composition.lem10")
    page.wait_for_selector("[id='claim-composition.lem10'][open] .chart svg")
    page.evaluate("location.hash = 'claim-mixture.fig2'")
    page.wait_for_selector("[id='claim-mixture.fig2'][open]")
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(one => one.id)")
    assert len(ids) == len(set(ids))

    # hovering over a curve gives values, and printing leaves the page as it was
    curve = page.locator("[id='mixture.scrub'] .chart")
    curve.scroll_into_view_if_needed()
    page.locator("[id='mixture.scrub'] path[aria-roledescription='point']").nth(40).hover(force=True)
    page.wait_for_selector("#vg-tooltip-element.visible")
    closed = page.locator("details:not([open])").count()
    page.pdf(path=shots / "printed.pdf")
    assert page.locator("details:not([open])").count() == closed
    assert not wrong


@pytest.mark.oracle
@pytest.mark.parametrize("width, scheme", [(390, "dark"), (2400, "light")])
def test_the_page_fits_phones_and_wide_screens(quick, browser, width, scheme):
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(quick.report.as_uri())
    page.wait_for_function("document.body.dataset.drawn == 'all'", timeout=120_000)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    unlabelled = page.evaluate(
        "[...document.querySelectorAll('input, select, button')].filter(one => !(one.labels?.length || "
        "one.ariaLabel || one.textContent.trim())).length"
    )
    assert unlabelled == 0 and page.locator("h1").count() == 1
    assert page.evaluate(
        "[...document.querySelectorAll('[role=img]')].every(one => one.ariaLabel.length > 20)"
    )
    (quick.report.parent / SHOTS).mkdir(exist_ok=True)
    page.screenshot(path=quick.report.parent / SHOTS / f"{width}.png")


def test_a_painter_in_a_process_of_its_own_draws_the_same(quick_mixture, tmp_path):
    import os
    from pathlib import Path

    from stagewise.lab import catalogue
    from stagewise.lab.judge.ledger import experiments_of
    from stagewise.lab.report.painter import WORTH, Painter
    from stagewise.lab.store.run import stored_runs

    root = Path(os.environ.get("STAGEWISE_QUICK_RUNS") or quick_mixture.report.parent / "runs")
    figures = list(catalogue.papers()["mixture"].figures().values())[: WORTH + 1]
    done = stored_runs([e for figure in figures for e in experiments_of(figure.needs_at("quick"))], root)
    found = {}
    for alone in (True, False):
        painter = Painter(figures, "quick", root, tmp_path / str(alone), alone)
        painter.begin()
        painter.paint()
        found[alone] = painter.drawn(done)
        painter.end()
        assert painter.alone == alone
    assert found[True] == found[False] and not found[True][1]
    drawn = [{path.name for path in (tmp_path / name / "figures").iterdir()} for name in ("True", "False")]
    assert drawn[0] == drawn[1] and len(drawn[0]) == 2 * len(figures)
