"""Figures are drawn and saved by a process of their own, while this one judges: the converter holds Python's
lock, so a thread would gain nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

from stagewise import process, threads
from stagewise.lab import catalogue
from stagewise.lab.draw.figures import Figure, Spec
from stagewise.lab.judge.ledger import experiments_of
from stagewise.lab.report import draw_all, save_all
from stagewise.lab.store.run import Runs, stored_runs

WORTH = 4  # a process of its own takes as long to begin as drawing so many figures takes

Drawn = tuple[Mapping[Figure, Spec], Mapping[str, str]]


class Painter:
    """Draws figures from stored runs and saves them in a folder. `begin` may be called before all runs are
    there, since a process takes a while to start; `paint` when they are; `drawn` waits for it to end."""

    def __init__(self, figures: Sequence[Figure], preset: str, root: Path, folder: Path, alone: bool):
        self.figures, self.preset, self.root, self.folder = figures, preset, root, folder
        self.alone = alone and len(figures) >= WORTH and len(threads.cores()) > 1
        self.work: Future | None = None

    def begin(self) -> None:
        if self.alone:
            self.pool = ProcessPoolExecutor(1, get_context("spawn"), process.begin)
            self.pool.submit(catalogue.figures)

    def paint(self) -> None:
        if self.alone:
            ids = [figure.id for figure in self.figures]
            self.work = self.pool.submit(_painted, ids, self.preset, self.root, self.folder)

    def drawn(self, runs: Runs) -> Drawn:
        """The charts, and of figures that could not be drawn why; drawn here if the process died."""
        if self.work is not None:
            try:
                charts, undrawn = self.work.result()
                known = {figure.id: figure for figure in self.figures}
                return {known[id]: chart for id, chart in charts.items()}, undrawn
            except BrokenProcessPool:
                pass
        return _drawn(self.figures, self.preset, runs, self.folder)

    def end(self) -> None:
        if self.alone:
            self.pool.shutdown(cancel_futures=True)


def _drawn(figures: Sequence[Figure], preset: str, runs: Runs, folder: Path) -> Drawn:
    charts, undrawn = draw_all(figures, preset, runs)
    save_all(charts, folder)
    return charts, undrawn


def _painted(
    ids: Sequence[str], preset: str, root: Path, folder: Path
) -> tuple[dict[str, Spec], Mapping[str, str]]:
    """In the other process: the charts by the names of their figures."""
    figures = [catalogue.figures()[id] for id in ids]
    needed = [each for figure in figures for each in experiments_of(figure.needs_at(preset))]
    charts, undrawn = _drawn(figures, preset, stored_runs(needed, root), folder)
    return {figure.id: chart for figure, chart in charts.items()}, undrawn
