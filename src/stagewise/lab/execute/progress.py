"""Shows how far long work is: bars on a terminal, plain lines elsewhere, nothing from Python unless asked."""

from __future__ import annotations

import sys
import time

SOON = 60.0  # seconds; if more time than this is left, a line says how much
SURE = 1.0  # seconds of work after which the time left can be told


class Progress:
    """What long work tells about itself while it runs. This class shows nothing, and is the default from
    Python."""

    def begin(self, label: str, chunks: int) -> None: ...

    def resume(self, chunks: int) -> None: ...

    def advance(self, stage: str, steps: int, seconds: float) -> None: ...

    def partly(self, chunks: float) -> None:
        """Tell how many more chunks' worth of work is done in chunks that are not complete yet."""

    def end(self) -> None: ...

    def note(self, text: str) -> None: ...


class Lines(Progress):
    """Prints a line when a run begins, once when it is known that much time is left, at most every ten
    seconds as it advances, and when it ends."""

    def begin(self, label, chunks):
        self.label, self.chunks, self.done = label, chunks, 0
        self.since = self.shown = time.monotonic()
        self.compiled: tuple[float, float] | None = None  # the time after compiling, and how far it was then
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
        """Print once how long the rest will take, if that is long."""
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
    """A bar with the stage, the steps per second over all seeds, and the time left."""

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
    """Return a time as text, in seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def shown() -> Progress:
    """Bars where a person watches, lines elsewhere."""
    return Bars() if sys.stderr.isatty() else Lines()
