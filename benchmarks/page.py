"""The page and the window on runs, against what they may take: the report of all papers, its first paint, the
list of a thousand runs."""

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from benchmarks.timing import row, seconds

RUNS = 1000


def rows() -> list[dict]:
    import stagewise as sw

    with tempfile.TemporaryDirectory() as folder:
        stored = Path(os.environ.get("STAGEWISE_QUICK_RUNS") or Path(folder) / "runs")
        # Makes the runs, and warms up.
        made = sw.reproduce("all", "quick", runs=stored, out=Path(folder) / "first")
        rendered = _render(stored, Path(folder) / "again")
        found = [
            row("page: report of all papers at quick, from stored runs, against 20", "s", rendered, 20.0),
            row("page: size of the report, against 6", "MB", made.report.stat().st_size / 1e6, 6.0),
            row(
                "page: first paint of the report in Chromium, against 2", "s", _first_paint(made.report), 2.0
            ),
        ]
        return [
            *found,
            row(f"page: serve lists {RUNS} runs, against 1", "s", _listing(Path(folder) / "many"), 1.0),
        ]


def _render(stored: Path, out: Path) -> float:
    """Judging is not part of it: the page is written from a ledger in memory."""
    from stagewise.lab import catalogue, reproduction
    from stagewise.lab.execute.run import run_all
    from stagewise.lab.judge.ledger import judge_all
    from stagewise.lab.report import draw_all, write

    claims, papers = reproduction.claims_named("all"), list(catalogue.papers().values())
    experiments, figures = reproduction.wanted(claims, "quick")
    done = run_all(experiments, stored)
    entries = judge_all(claims, "quick", stored, done)
    return seconds(lambda: write(papers, entries, draw_all(figures, "quick", done)[0], "quick", done, out))


def _first_paint(report: Path) -> float:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        browser = p.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.goto(report.as_uri())
        found = page.evaluate(
            "new Promise(seen => new PerformanceObserver(list => "
            "seen(list.getEntries().at(-1).startTime)).observe({type: 'paint', buffered: true}))"
        )
        browser.close()
    return found / 1000


def _listing(root: Path) -> float:
    """The answer of a real server, the second time: the first reads the code of all experiments."""
    from benchmarks.sweep import finished_jobs

    finished_jobs(root, RUNS)
    server = subprocess.Popen(
        [sys.executable, "-m", "stagewise", "serve", "--runs", str(root), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        address = server.stdout.readline().split(" at ")[1].split()[0]
        ask = lambda: urllib.request.urlopen(f"{address}api/runs").read()  # noqa: E731
        ask()
        time.sleep(0.2)
        return seconds(ask)
    finally:
        server.terminate()
        server.wait()
