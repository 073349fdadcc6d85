"""`stagewise list`: the papers, experiments, studies and claims there are, or one of them in full."""

from __future__ import annotations

import argparse
import json

ABOUT = "Show the papers, experiments, studies and claims there are, or one of them in full."


def add_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("name", nargs="?", help="a paper, experiment, study or claim: show it in full")
    sub.add_argument("--json", action="store_true", help="as JSON")


def act(options, rest) -> int:
    from stagewise.lab import catalogue

    papers = catalogue.papers()
    if options.json:
        print(
            json.dumps(
                {
                    "papers": [{"name": p.name, "title": p.title} for p in papers.values()],
                    "experiments": [_experiment_json(n, cls) for n, cls in catalogue.experiments().items()],
                    "studies": [
                        {
                            "name": s.name,
                            "summary": s.summary,
                            "experiment": s.base.name,
                            "over": {path: list(values) for path, values in s.over.items()},
                        }
                        for s in catalogue.studies().values()
                    ],
                    "claims": [
                        {
                            "id": c.id,
                            "paper": c.paper,
                            "source": c.source,
                            "statement": c.statement,
                            "threshold": c.threshold,
                            "beyond_paper": c.beyond_paper,
                        }
                        for c in catalogue.claims().values()
                    ],
                },
                indent=1,
            )
        )
        return 0
    if options.name and options.name not in papers:
        return show(options.name)
    for paper in papers.values() if not options.name else [papers[options.name]]:
        print(f"{paper.name}: {paper.title}\n")
        rows = [(name, _first_line(cls)) for name, cls in paper.experiments.items()]
        _table("experiments", rows, options.name)
        _table("studies", [(study.name, study.summary) for study in paper.studies.values()], options.name)
        _table(
            "claims",
            [(claim.id, f"{claim.source}: {claim.statement}") for claim in paper.claims.values()],
            options.name,
        )
    return 0


def show(name: str) -> int:
    """One thing in full."""
    from stagewise.lab import catalogue
    from stagewise.lab.spec.experiment import choose
    from stagewise.lab.spec.settings import flatten

    found = choose(
        catalogue.claims() | catalogue.studies() | catalogue.experiments(),
        name,
        "paper, experiment, study or claim",
    )
    if name in catalogue.claims():
        rows = {
            "source": found.source,
            "statement": found.statement,
            "the paper predicts": found.predicted,
            "threshold": found.threshold,
            "because": found.reason,
            "control": found.control_is,
            "note": found.note,
            "restated": found.restated,
            "run it": f"stagewise reproduce {name}",
        }
    elif name in catalogue.studies():
        rows = {
            "what": found.summary,
            "experiment": found.base.name,
            **{f"over {path}": list(v) for path, v in found.over.items()},
            "run it": f"stagewise run {name}",
        }
    else:
        rows = {
            "what": " ".join((found.__doc__ or "").split()),
            **flatten(found.at("quick")),
            "run it": f"stagewise run {name}",
        }
    print(name)
    for label, text in rows.items():
        if text != "":
            print(f"  {label}: {text}")
    return 0


def _experiment_json(name, cls) -> dict:
    from stagewise.lab.spec.settings import to_json

    return {"name": name, "summary": _first_line(cls), "settings": to_json(cls.at("quick"))}


def _first_line(cls) -> str:
    return " ".join((cls.__doc__ or "").split("\n\n")[0].split())


def _table(title: str, rows: list[tuple[str, str]], in_full: str | None) -> None:
    import shutil

    if not rows:
        return
    wide = max(len(name) for name, _ in rows)
    room = max(40, shutil.get_terminal_size((120, 24)).columns - wide - 5)
    print(f"  {title}")
    for name, text in rows:
        print(f"    {name:<{wide}} {text if in_full or len(text) <= room else text[: room - 1] + '…'}")
    print()
