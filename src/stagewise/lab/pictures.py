"""Charts as files, the same byte for byte whenever they are drawn."""

from __future__ import annotations

import json
import re
from pathlib import Path

import vl_convert

from stagewise.errors import require
from stagewise.lab.figures import Spec
from stagewise.lab.files import write

ENDINGS = (".svg", ".png", ".pdf")


def check_ending(path: Path) -> None:
    """Refuse a picture of a kind that cannot be drawn, before anything is run for it."""
    require(
        path.suffix.lower() in ENDINGS,
        f"a figure is written as {', '.join(ENDINGS)}, not as {path.name!r} (set --out)",
    )
    require(not path.is_dir(), f"{path} is a folder (set --out to the name of a file)")


def save(chart: Spec, *paths: Path) -> None:
    """Write a chart as each of these files, by their endings."""
    svg = vl_convert.vegalite_to_svg(json.dumps(chart))
    made = {
        ".svg": lambda: svg.encode(),
        ".png": lambda: vl_convert.svg_to_png(svg, scale=2),
        ".pdf": lambda: _ordered(vl_convert.svg_to_pdf(svg)),
    }
    for path in paths:
        check_ending(path)
        write(path, made[path.suffix.lower()]())


_NAMED = re.compile(rb"(/(?:ExtGState|Font|XObject|Pattern|Shading|ColorSpace) <<\n)((?:[ ]+/\w+ [^\n]*\n)+)")


def _ordered(pdf: bytes) -> bytes:
    """A PDF with the names of its resources sorted: the converter lists them in an order that changes from
    time to time. Nothing moves but these lines."""
    return _NAMED.sub(lambda found: found[1] + b"".join(sorted(found[2].splitlines(keepends=True))), pdf)
