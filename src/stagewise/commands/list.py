"""`stagewise list`: the papers there are, what is in one of them, or one thing in full."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stagewise.lab.catalogue import Paper

ABOUT = "Show the papers there are, what is in one of them, or one thing in full."


def add_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("name", nargs="?", help="a paper: what is in it; or a thing in it: show it in full")
    sub.add_argument("--json", action="store_true", help="everything, as JSON")


def act(options, rest) -> int:
    from stagewise.lab import catalogue

    papers = catalogue.papers()
    if options.json:
        print(json.dumps(_everything(), indent=1))
    elif options.name is None:
        for paper in papers.values():
            counts = ", ".join(f"{len(rows)} {kind}" for kind, rows in _rows(paper).items())
            print(f"{paper.name}: {paper.title}\n  {counts}\n")
        print("stagewise list PAPER shows what is in it, stagewise list NAME one thing in full")
    elif options.name in papers:
        paper = papers[options.name]
        print(f"{paper.name}: {paper.title}\n")
        for kind, rows in _rows(paper).items():
            _table(kind, rows)
    else:
        show(options.name)
    return 0


def show(name: str) -> int:
    """All that bears a name, in full: something that is run or claimed, a figure, or both."""
    from stagewise.lab import catalogue
    from stagewise.lab.spec.experiment import choose

    kinds = {
        "experiment": (catalogue.experiments(), _experiment),
        "study": (catalogue.studies(), _study),
        "claim": (catalogue.claims(), _claim),
        "figure": (catalogue.figures(), _figure),
    }
    known = {*catalogue.papers(), *(each for there, _ in kinds.values() for each in there)}
    choose(dict.fromkeys(known), name, "paper, experiment, study, claim or figure")
    for kind, (there, rows) in kinds.items():
        if name in there:
            print(f"{name}, {'an' if kind[0] in 'aeiou' else 'a'} {kind}")
            for label, text in rows(there[name]).items():
                if text not in ("", ()):
                    print(f"  {label}: {text}")
    return 0


def _claim(claim) -> Mapping[str, Any]:
    return {
        "source": claim.source,
        "statement": claim.statement,
        "the paper predicts": claim.predicted,
        "threshold": claim.threshold,
        "because": claim.reason,
        "control": claim.control_is,
        "note": claim.note,
        "restated": claim.restated,
        "judge it": f"stagewise reproduce {claim.id}",
    }


def _study(study) -> Mapping[str, Any]:
    return {
        "what": study.summary,
        "experiment": study.base.name,
        **{f"over {path}": ", ".join(map(str, values)) for path, values in study.over.items()},
        "run it": f"stagewise run {study.name}",
    }


def _experiment(experiment) -> Mapping[str, Any]:
    from stagewise.lab.spec.settings import flatten

    return {
        "what": " ".join((experiment.__doc__ or "").split()),
        **flatten(experiment.at("quick")),
        "run it": f"stagewise run {experiment.name}",
    }


def _figure(figure) -> Mapping[str, Any]:
    from stagewise.lab.spec.study import names

    return {
        "source": figure.source,
        "shows": figure.shows,
        "the paper shows": figure.paper_shows,
        "from": ", ".join(sorted(names(figure.needs))),
        "draw it": f"stagewise figure {figure.id} --out {figure.id}.svg",
    }


def _rows(paper: Paper) -> dict[str, list[tuple[str, str]]]:
    """What is in a paper, by kind: names, and a line each."""
    return {
        "experiments": [(name, _first_line(cls)) for name, cls in paper.experiments.items()],
        "studies": [(study.name, study.summary) for study in paper.studies.values()],
        "figures": [(id, f"{one.source}: {one.shows}") for id, one in paper.figures().items()],
        "claims": [(id, f"{one.source}: {one.statement}") for id, one in paper.claims.items()],
    }


def _everything() -> dict[str, Any]:
    from stagewise.lab import catalogue
    from stagewise.lab.spec.settings import to_json

    def of(things: Iterable[Any], *names: str) -> list[dict[str, Any]]:
        return [{name: getattr(thing, name) for name in names} for thing in things]

    return {
        "papers": of(catalogue.papers().values(), "name", "title"),
        "experiments": [
            {"name": name, "summary": _first_line(cls), "settings": to_json(cls.at("quick"))}
            for name, cls in catalogue.experiments().items()
        ],
        "studies": [
            {
                "name": study.name,
                "summary": study.summary,
                "experiment": study.base.name,
                "over": {path: list(values) for path, values in study.over.items()},
            }
            for study in catalogue.studies().values()
        ],
        "figures": of(catalogue.figures().values(), "id", "paper", "source", "shows"),
        "claims": of(
            catalogue.claims().values(), "id", "paper", "source", "statement", "threshold", "beyond_paper"
        ),
    }


def _first_line(cls) -> str:
    return " ".join((cls.__doc__ or "").split("\n\n")[0].split())


def _table(title: str, rows: list[tuple[str, str]]) -> None:
    if not rows:
        return
    wide = max(len(name) for name, _ in rows)
    room = max(40, shutil.get_terminal_size((120, 24)).columns - wide - 5)
    print(f"  {title}")
    for name, text in rows:
        print(f"    {name:<{wide}} {text if len(text) <= room else text[: room - 1] + '…'}")
    print()
