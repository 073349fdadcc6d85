"""How long work is shown: bars on a terminal, plain lines elsewhere, nothing from Python unless asked."""

from __future__ import annotations

import sys
import time

SOON = 60.0  # seconds; what takes longer is told once it is known
SURE = 1.0  # seconds of work, from which that is known


class Progress:
    """What long work tells of itself. This one shows nothing: the default from Python."""

    def begin(self, label: str, chunks: int) -> None: ...

    def resume(self, chunks: int) -> None: ...

    def advance(self, stage: str, steps: int, seconds: float) -> None: ...

    def partly(self, chunks: float) -> None:
        """Beside what is done, this much of other chunks is."""

    def end(self) -> None: ...

    def note(self, text: str) -> None: ...


class Lines(Progress):
    """One line when a run begins, one when it is known that it takes long, one at most every ten seconds, one
    when it ends."""

    def begin(self, label, chunks):
        self.label, self.chunks, self.done = label, chunks, 0
        self.since = self.shown = time.monotonic()
        self.compiled: tuple[float, float] | None = None  # when, and how far it was
        self.told = False
        _say(f"{label}: {chunks} chunks; compiling")

    def resume(self, chunks):
        self.done = chunks

    def advance(self, stage, steps, seconds):
        self.done += 1
        self._far(self.done)
        if time.monotonic() - self.shown > 10:
            self.shown = time.monotonic()
            rate = f", {steps / seconds:,.0f} steps/s" if steps else ""
            _say(f"{self.label}: {stage}, {self.done}/{self.chunks}{rate}")

    def partly(self, chunks):
        self._far(self.done + chunks)

    def _far(self, far: float) -> None:
        """Tell once how long the rest will take, if that is long."""
        now = time.monotonic()
        if far > 0 and self.compiled is None:
            self.compiled = now, far
        if self.told or self.compiled is None or far <= self.compiled[1]:
            return
        left = (self.chunks - far) * (now - self.compiled[0]) / (far - self.compiled[1])
        if left > SOON and now - self.compiled[0] > SURE:
            self.told = True
            _say(f"{self.label}: about {duration(left)} to go")

    def end(self):
        _say(f"{self.label}: {self.done}/{self.chunks} chunks, {time.monotonic() - self.since:.1f} s")

    def note(self, text):
        _say(text)


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


class Bars(Progress):
    """A bar with the stage, steps a second over all seeds, and the time left."""

    def __init__(self):
        from rich import progress as rich
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self.bars = rich.Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[stage]}"),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )

    def begin(self, label, chunks):
        self.bars.start()
        self.done = 0
        self.task = self.bars.add_task(label, total=chunks, stage="compiling", rate="")

    def resume(self, chunks):
        self.done = chunks
        self.bars.update(self.task, completed=chunks)

    def advance(self, stage, steps, seconds):
        rate = f"{steps / seconds:,.0f} steps/s" if steps else ""
        self.done += 1
        self.bars.update(self.task, completed=self.done, stage=stage, rate=rate)

    def partly(self, chunks):
        self.bars.update(self.task, completed=self.done + chunks)

    def end(self):
        self.bars.stop()

    def note(self, text):
        self.bars.console.print(text, style="yellow")


def duration(seconds: float) -> str:
    """A time in the unit that one would say it in."""
    if seconds < 90:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def shown() -> Progress:
    """Bars where a person watches, lines elsewhere."""
    return Bars() if sys.stderr.isatty() else Lines()
