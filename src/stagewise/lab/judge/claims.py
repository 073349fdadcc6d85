"""Claims: statements of a paper that can be run."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stagewise.lab.judge.nulls import Null
from stagewise.lab.judge.verdict import Verdict
from stagewise.lab.spec.study import filled


@dataclass(frozen=True)
class Claim:
    """A statement, where it stands, what it needs, what would fool it, and how it is judged.

    `needs` are plans, studies or plain values, passed to `judge` by name as trajectories, datasets or
    themselves. `control` replaces some of them by something on which the claim must not hold: a run, or
    another reading. `null` makes many such things without training, to see how often `judge` is fooled.
    `uses` are the claims that this one rests on, by id."""

    id: str
    source: str
    statement: str
    predicted: str
    threshold: str
    reason: str
    needs: Mapping[str, Any]
    control: Mapping[str, Any]
    control_is: str
    beyond_paper: bool
    restated: str
    note: str
    uses: tuple[str, ...]
    null: Null | None
    judge: Callable[..., Verdict]

    @property
    def paper(self) -> str:
        return self.id.partition(".")[0]

    def needs_at(self, preset: str, control: bool = False) -> dict[str, Any]:
        """What `judge` is given, with the preset filled in but nothing run yet."""
        return filled(dict(self.needs) | (dict(self.control) if control else {}), preset)

    def arms_at(self, preset: str) -> dict[str, Any]:
        """What its null draws from beside that."""
        return filled(self.null.needs if self.null else {}, preset)


def claim(
    id: str,
    *,
    source: str,
    predicted: str,
    needs: Mapping[str, Any],
    control: Mapping[str, Any],
    control_is: str,
    beyond_paper: bool = False,
    restated: str = "",
    note: str = "",
    uses: tuple[str, ...] = (),
    null: Null | None = None,
) -> Callable[[Callable[..., Verdict]], Claim]:
    """Make a claim of a function. Its docstring holds the statement and, after `Threshold:`, `what, because
    why`."""

    def make(judge: Callable[..., Verdict]) -> Claim:
        text = inspect.cleandoc(judge.__doc__ or "")
        statement, _, rule = text.partition("Threshold:")
        threshold, found, reason = _one_line(rule).partition(", because ")
        if not (statement.strip() and found):
            raise TypeError(f"{id}: the docstring must hold a statement and `Threshold: …, because …`")
        if unknown := set(control) - set(needs):
            raise TypeError(f"{id}: the control replaces {unknown}, which the claim does not need")
        return Claim(
            id,
            source,
            _one_line(statement),
            predicted,
            threshold,
            reason.rstrip("."),
            needs,
            control,
            control_is,
            beyond_paper,
            restated,
            note,
            uses,
            null,
            judge,
        )

    return make


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
