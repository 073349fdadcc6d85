"""Everything the command line does, as calls."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stagewise.errors import Refused, nearest
from stagewise.lab import catalogue
from stagewise.lab.claims import Claim
from stagewise.lab.experiment import Experiment, check_preset, choose
from stagewise.lab.files import make_folder, write_json
from stagewise.lab.progress import Silent
from stagewise.lab.runs import read_block, runs_root
from stagewise.lab.study import Grid


def experiment(name: str, preset: str = "quick", **changes: Any) -> Experiment:
    """An experiment by name at a preset: `sw.experiment("mixture.joint", width=32, **{"task.groups": 3})`."""
    return choose(catalogue.experiments(), name, "experiment").at(preset, **changes)


def study(name: str, preset: str = "quick") -> Grid:
    """A study by name at a preset."""
    check_preset(preset)
    return choose(catalogue.studies(), name, "study").at(preset)


def run(what: Experiment | Grid | str, preset: str = "quick", *, runs: Path | str | None = None,
        progress: Silent = Silent(), **changes: Any):  # fmt: skip
    """Run an experiment (or take it from its folder) and return its `Run`; of a study, the gathered dataset."""
    from stagewise.lab.engine import run_all

    if isinstance(what, str):
        what = study(what, preset) if what in catalogue.studies() and not changes else experiment(what, preset, **changes)
    root = make_folder(Path(runs) if runs else runs_root())
    if isinstance(what, Experiment):
        return run_all([what], root, progress)[what]
    cells = [cell for _, cell in what.cells()]
    done = run_all(cells, root, progress)
    return what.gather([done[cell].trajectory for cell in cells])


def load(folder: Path | str):
    """The `Run` in a finished run folder."""
    from stagewise.lab.engine import load_run
    from stagewise.lab.files import Damaged

    block = read_block(Path(folder), catalogue.experiments())
    if not block.finished:
        raise Refused(f"{folder} is not finished; run its experiment again to go on with it")
    try:
        block.check()
    except Damaged as error:
        raise Refused(f"{error}; run its experiment again") from error
    return load_run(block.experiment, [block])


@dataclass(frozen=True)
class Reproduction:
    """A ledger with its files."""

    entries: list
    ledger: Path
    report: Path

    @property
    def broken(self) -> list[str]:
        return [f"{entry.claim.id}: {entry.defect}" for entry in self.entries if entry.defect]


def claims_named(name: str) -> list[Claim]:
    """The claims of a paper, one claim, or all of them."""
    known = catalogue.claims()
    if name == "all":
        return list(known.values())
    if name in known:
        return [known[name]]
    if name in catalogue.papers():
        return list(catalogue.papers()[name].claims.values())
    names = [*catalogue.papers(), *known]
    raise Refused(f"unknown paper or claim {name!r}{nearest(name, names)}; `stagewise list` shows them all")


def reproduce(name: str = "all", preset: str = "quick", *, out: Path | str | None = None, runs: Path | str | None = None,
              progress: Silent = Silent()) -> Reproduction:  # fmt: skip
    """Judge the claims of a paper, one claim, or all, and write `ledger.json`, `report.html` and the figures.

    What is stored is not run again, so this also writes a report anew. Of a single claim, only those figures are drawn
    that need no further runs."""
    check_preset(preset)
    claims = claims_named(name)
    root = make_folder(Path(runs) if runs else runs_root())
    target = make_folder(Path(out) if out else root)
    from stagewise.lab.engine import run_all
    from stagewise.lab.ledger import experiments_for, experiments_of, judge_all, to_json
    from stagewise.lab.report import write

    papers = [catalogue.papers()[paper] for paper in dict.fromkeys(claim.paper for claim in claims)]
    wanted = experiments_for(claims, preset)
    needed_by = {figure: experiments_of(figure.needs_at(preset)) for paper in papers for figure in paper.figures().values()}
    if len(claims) == 1:
        needed_by = {figure: needs for figure, needs in needed_by.items() if set(needs) <= set(wanted)}
    done = run_all(wanted + [e for needs in needed_by.values() for e in needs], root, progress)
    entries = judge_all(claims, preset, root, done)
    write_json(target / "ledger.json", to_json(entries))
    return Reproduction(entries, target / "ledger.json", write(papers, entries, list(needed_by), preset, done, target))
