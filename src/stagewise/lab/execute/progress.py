"""How long work is shown: bars on a terminal, plain lines elsewhere, nothing from Python unless asked."""

from __future__ import annotations

import sys
import time

SOON = 60.0  # seconds; what takes longer is told once it is known


class Progress:
    """What long work tells of itself. This one shows nothing: the default from Python."""

    def begin(self, label: str, chunks: int) -> None: ...

    def resume(self, chunks: int) -> None: ...

    def advance(self, stage: str, steps: int, seconds: float) -> None: ...

    def end(self) -> None: ...

    def note(self, text: str) -> None: ...


class Lines(Progress):
    """One line when a run begins, one at most every ten seconds, one when it ends."""

    def begin(self, label, chunks):
        self.told = False
        self.label, self.chunks, self.done, self.since, self.shown = (
            label,
            chunks,
            0,
            time.monotonic(),
            time.monotonic(),
        )
        print(f"  {label}: {chunks} chunks; compiling", file=sys.stderr, flush=True)

    def resume(self, chunks):
        self.done = chunks

    def advance(self, stage, steps, seconds):
        self.done += 1
        left = (self.chunks - self.done) * seconds
        if self.done > 1 and left > SOON and not self.told:
            self.told = True
            print(f"  {self.label}: about {duration(left)} to go", file=sys.stderr, flush=True)
        if time.monotonic() - self.shown > 10:
            self.shown = time.monotonic()
            rate = f", {steps / seconds:,.0f} steps/s" if steps else ""
            print(f"  {self.label}: {stage}, {self.done}/{self.chunks}{rate}", file=sys.stderr, flush=True)

    def end(self):
        print(
            f"  {self.label}: {self.done}/{self.chunks} chunks, {time.monotonic() - self.since:.1f} s",
            file=sys.stderr,
            flush=True,
        )

    def note(self, text):
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
        self.task = self.bars.add_task(label, total=chunks, stage="compiling", rate="")

    def resume(self, chunks):
        self.bars.update(self.task, completed=chunks)

    def advance(self, stage, steps, seconds):
        rate = f"{steps / seconds:,.0f} steps/s" if steps else ""
        self.bars.update(self.task, advance=1, stage=stage, rate=rate)

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
