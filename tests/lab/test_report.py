"""The page in a real browser, from disk."""

import re

import pytest


def test_the_page_is_one_file_that_needs_no_network(quick):
    page = quick.report.read_text()
    assert len(page) < 6e6
    page = re.sub(r"(<script[^>]*>).*?</script>", r"\1", page, flags=re.S)
    outside = re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=[\"'](?!data:)", page)
    assert not outside
    for entry in quick.entries:
        assert f'id="{entry.claim.id}"' in page


def test_every_figure_has_a_picture(quick):
    from stagewise.lab import catalogue
    from stagewise.lab.ledger import missing

    drawn = 0
    for paper in catalogue.papers().values():
        for id, figure in paper.figures().items():
            later = missing(figure.needs_at("quick"))
            for ending in ("png", "svg"):
                picture = quick.report.parent / "figures" / f"{id}.{ending}"
                assert not picture.exists() if later else picture.stat().st_size > 2000
            drawn += not later
    assert drawn >= 20


@pytest.mark.oracle
def test_the_page_opens_in_a_browser_without_errors(quick, oracle):
    oracle("playwright")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        wrong = []
        page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
        page.on("requestfailed", lambda request: wrong.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(quick.report.as_uri())
        figures = page.locator("figure").count()
        page.wait_for_function(f"document.querySelectorAll('figure .chart svg').length == {figures}")
        assert figures >= 5 and page.locator("tr .verdict").count() == len(quick.entries)
        page.screenshot(path=str(quick.report.parent / "report.png"), full_page=True)
        browser.close()
    assert not wrong
