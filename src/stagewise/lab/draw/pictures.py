"""Charts as files. A chart gives the same bytes whenever it is drawn."""

from __future__ import annotations

import json
import re
from pathlib import Path

import vl_convert

from stagewise.lab.draw.figures import Spec
from stagewise.lab.store.files import check_ending, write

ENDINGS = (".svg", ".png", ".pdf")


def check(path: Path) -> None:
    """Refuse a picture of a kind that cannot be drawn, before anything is run for it."""
    check_ending(path, ENDINGS, "a figure is")


def save(chart: Spec, *paths: Path) -> None:
    """Write a chart to each of these files, in the format of its ending."""
    svg = vl_convert.vegalite_to_svg(json.dumps(chart))
    made = {
        ".svg": lambda: svg.encode(),
        ".png": lambda: vl_convert.svg_to_png(svg, scale=2),
        ".pdf": lambda: _ordered(vl_convert.svg_to_pdf(svg)),
    }
    for path in paths:
        check(path)
        write(path, made[path.suffix.lower()]())


_NAMED = re.compile(rb"(/(?:ExtGState|Font|XObject|Pattern|Shading|ColorSpace) <<\n)((?:[ ]+/\w+ [^\n]*\n)+)")


def _ordered(pdf: bytes) -> bytes:
    """Return a PDF with the names of its resources sorted, since the converter lists them in an order that
    changes from time to time. Only these lines are moved."""
    return _NAMED.sub(lambda found: found[1] + b"".join(sorted(found[2].splitlines(keepends=True))), pdf)
