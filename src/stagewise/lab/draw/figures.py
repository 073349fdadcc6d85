"""Figures: charts of trajectories, each with words on what the paper's figure shows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stagewise.lab.spec.study import filled

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
"""Okabe and Ito's palette: told apart by people with any kind of colour vision."""


Drawn = Any  # a chart of any kind: altair has no type for all that can be combined
Spec = dict[str, Any]  # a chart as Vega-Lite's plain values, which pages draw and pictures are made from

LOOK = {
    "axis": {
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "gridColor": "#e8e8e8",
        "labelSeparation": 6,
    },
    "header": {"titleFontWeight": "normal"},
    "legend": {"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal"},
    "title": {"fontSize": 12, "fontWeight": "normal", "anchor": "start"},
    "range": {"category": list(COLOURS)},
    "view": {"strokeOpacity": 0, "continuousWidth": 300, "continuousHeight": 300},
}
"""One look for all figures, readable at column width. All text has one weight: with two weights, the
converter puts fonts into a PDF in random order."""


@dataclass(frozen=True, eq=False)
class Figure:
    """A chart and its story. `shows` is what one should see; `paper_shows` what the paper's figure shows."""

    id: str
    source: str
    shows: str
    paper_shows: str
    needs: Mapping[str, Any]
    draw: Callable[..., Drawn]

    @property
    def paper(self) -> str:
        return self.id.partition(".")[0]

    def needs_at(self, preset: str) -> dict[str, Any]:
        return filled(self.needs, preset)


def figure(id: str, *, source: str, paper_shows: str, needs: Mapping[str, Any]):
    """Make a figure from a function that takes trajectories and returns a chart. Its docstring says what one
    should see."""

    def make(draw: Callable[..., Drawn]) -> Figure:
        return Figure(
            id, source, " ".join(inspect.cleandoc(draw.__doc__ or "").split()), paper_shows, needs, draw
        )

    return make


def styled(chart: Drawn) -> Spec:
    """Return a chart as plain values, in the look of all figures. The look is added to plain values because
    every change to a chart object copies the whole chart. Only the tests check charts against Vega-Lite's
    schema."""
    return chart.to_dict(validate=False) | {"config": LOOK}
