"""Examples: one real sequence of a task, drawn with what each answer depends on."""

from __future__ import annotations

from dataclasses import dataclass

import altair as alt
import numpy as np
import pandas as pd

from stagewise.lab.draw.figures import COLOURS, Drawn

LETTER, HIGH = 7, 28  # the width of a letter and the height of a unit, in pixels
ROUND = np.linspace(0, np.pi, 13)


@dataclass(frozen=True)
class Example:
    """Tokens in a row, some of which are answers. `needs` has, for every answer, the places that it needs and
    what it needs them for."""

    tokens: tuple[str, ...]
    answers: frozenset[int]
    needs: tuple[tuple[int, int, str], ...]  # (place that asks, place it needs, what for)
    says: str

    def __post_init__(self):
        places = {place for asks, needed, _ in self.needs for place in (asks, needed)} | self.answers
        if not places <= set(range(len(self.tokens))):
            raise ValueError(
                f"an example of {len(self.tokens)} tokens has no places "
                f"{sorted(places - set(range(len(self.tokens))))}"
            )


def draw(example: Example) -> Drawn:
    """Tokens as boxes, answers in another colour, and an arc from every answer to each place it needs."""
    places = np.arange(len(example.tokens))
    tokens = pd.DataFrame(
        {
            "place": places,
            "from": places - 0.46,
            "to": places + 0.46,
            "token": example.tokens,
            "kind": ["answer" if place in example.answers else "given" for place in places],
        }
    )
    across = alt.Scale(domain=[-0.6, len(places) - 0.4], nice=False, zero=False)
    x, high = (
        alt.X("place:Q", scale=across, axis=None),
        max([abs(a - b) for a, b, _ in example.needs], default=1) / 2,
    )
    scale = alt.Scale(domain=[-1, high + 0.2], nice=False, zero=False)
    base = alt.Chart(tokens)
    boxes = base.mark_rect(stroke="#888", strokeWidth=0.7, cornerRadius=3).encode(
        alt.X("from:Q", scale=across, axis=None),
        alt.X2("to:Q"),
        alt.Y(datum=-0.95, scale=scale, axis=None),
        alt.Y2(datum=-0.05),
        alt.Color(
            "kind:N",
            scale=alt.Scale(domain=["given", "answer"], range=["#f4f4f4", "#fbe3c0"]),
            legend=alt.Legend(title=None, orient="right"),
        ),
        tooltip=["token"],
    )
    names = base.mark_text(fontSize=12).encode(x, alt.Y(datum=-0.5, scale=scale, axis=None), text="token:N")
    rows = [
        {
            "place": (a + b) / 2 + (a - b) / 2 * np.cos(angle),
            "up": abs(a - b) / 2 * np.sin(angle),
            "link": n,
            "order": i,
            "needs": why,
            "answer": example.tokens[a],
            "token": example.tokens[b],
        }
        for n, (a, b, why) in enumerate(example.needs)
        for i, angle in enumerate(ROUND)
    ]
    whys = list(dict.fromkeys(why for _, _, why in example.needs))
    arcs = (
        alt.Chart(pd.DataFrame(rows).round(3))
        .mark_line(strokeWidth=1.6)
        .encode(
            x,
            alt.Y("up:Q", scale=scale, axis=None),
            alt.Detail("link:N"),
            alt.Order("order:Q"),
            tooltip=["answer", "needs", "token"],
            color=alt.Color(
                "needs:N",
                scale=alt.Scale(domain=whys, range=list(COLOURS)),
                legend=alt.Legend(title="an answer needs", orient="right", symbolType="stroke"),
            ),
            strokeDash=alt.StrokeDash("needs:N", scale=alt.Scale(domain=whys), legend=None),
        )
    )
    wide = 20 + LETTER * max(map(len, example.tokens))
    size = {"width": wide * len(places), "height": round(HIGH * (1 + min(high, 5)))}
    return (boxes + arcs + names).properties(**size).resolve_scale(color="independent")
