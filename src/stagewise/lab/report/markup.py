"""Pieces of HTML. Whatever comes from a name, a config or a claim passes through `text`."""

from __future__ import annotations

import html
import json
import re
from typing import Any

from stagewise.lab.draw.figures import Spec


def text(value: Any) -> str:
    return html.escape(str(value), quote=True)


def prose(value: str) -> str:
    """Text with `names` in code type."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text(value))


def verdict(outcome: str, count: int | None = None) -> str:
    return (
        f'<span class="verdict {text(outcome)}">{"" if count is None else f"{count} "}{text(outcome)}</span>'
    )


def anchor(claim: str) -> str:
    """Where a claim is on the page; figures have the ids that claims have."""
    return f"claim-{claim}"


def link(claim: str) -> str:
    return f'<a href="#{text(anchor(claim))}">{text(claim)}</a>'


def number(interval) -> str:
    """A value with its interval, to the digits that matter."""
    if interval.low == interval.high == interval.value:
        return f"{interval.value:.4g}"
    return f"{interval.value:.4g} [{interval.low:.4g}, {interval.high:.4g}]"


def chart(spec: Spec, says: str) -> str:
    """A place for a chart, its spec, and what it shows for those who do not see it."""
    drawn = json.dumps(spec, separators=(",", ":")).replace("</", "<\\/")
    return (
        f'<div class="chart" role="img" tabindex="0" aria-label="{text(says)}"></div><script '
        f'type="application/json" class="spec">{drawn}</script>'
    )


def definitions(pairs: list[tuple[str, str]]) -> str:
    """A list of terms, each with HTML; empty ones are left out."""
    return (
        "<dl>" + "".join(f"<dt>{text(term)}</dt><dd>{inner}</dd>" for term, inner in pairs if inner) + "</dl>"
    )


def in_words(experiment: Any) -> str:
    """What differs from the experiment's defaults."""
    from stagewise.lab.spec.settings import flatten

    default = flatten(type(experiment)())
    changed = [f"{path} = {value}" for path, value in flatten(experiment).items() if value != default[path]]
    return f"{experiment.name}: {', '.join(changed) or 'as by default'}"
