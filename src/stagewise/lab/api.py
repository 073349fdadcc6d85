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
from stagewise.lab.study import Grid, Study


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
    """Judge the claims of a paper, one claim, or all, and write `ledger.json` and `report.html`."""
    check_preset(preset)
    chosen = claims_named(name)
    root = make_folder(Path(runs) if runs else runs_root())
    target = make_folder(Path(out) if out else root)
    from stagewise.lab.ledger import judge_all, to_json

    entries = judge_all(chosen, preset, root, progress)
    write_json(target / "ledger.json", to_json(entries))
    return Reproduction(entries, target / "ledger.json", write_report(entries, preset, root, target, progress))


def write_report(entries: list, preset: str, root: Path, target: Path, progress: Silent = Silent()) -> Path:
    """Draw the figures of every paper in the ledger and write the page."""
    from stagewise.lab.report import write

    names = dict.fromkeys(entry.claim.paper for entry in entries)
    return write([catalogue.papers()[name] for name in names], entries, preset, root, target, progress)
