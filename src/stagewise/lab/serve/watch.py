"""What there is to see in a folder of runs, as plain values. Folders may appear, vanish or be half written at
any moment."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagewise.errors import Refused
from stagewise.lab import catalogue
from stagewise.lab.spec.experiment import PRESETS, Experiment
from stagewise.lab.spec.settings import WHICH_SEEDS, flatten
from stagewise.lab.store.block import Block
from stagewise.lab.store.runs import blocks, folders, read_block, stored_run

if TYPE_CHECKING:
    from stagewise.lab.draw.figures import Figure

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,199}")


class Missing(Exception):
    """What was asked for is not there, or may not be shown."""


def inside(root: Path, *parts: str) -> Path:
    """Return the path of something below the root. A name that is not allowed, or a link that leads out of
    the root, counts as missing."""
    if not all(NAME.fullmatch(part) for part in parts):
        raise Missing("no such name")
    path, top = root.joinpath(*parts).resolve(), root.resolve()
    if not path.is_relative_to(top) or path == top:
        raise Missing("not in this folder")
    return path


def runs_in(root: Path) -> list[dict[str, Any]]:
    """Return every run, with those that run now first."""
    known, top = catalogue.experiments(), root.resolve()
    found = []
    for folder in folders(root):
        if not stays(folder, top):
            continue
        run = stored_run(folder, known)
        found.append(
            {
                "folder": "/".join(run.folder.relative_to(root).parts),
                "experiment": run.experiment,
                "seeds": list(run.seeds),
                "state": run.state,
                "seconds": run.seconds,
                "finished": run.finished,
                "progress": run.progress,
                "settings": run.changed(known),
            }
        )
    return sorted(found, key=lambda run: (run["state"] != "running", run["experiment"], run["folder"]))


def stays(folder: Path, top: Path) -> bool:
    """Whether a folder lies below the top, and every link in it leads to a place below the top."""
    try:
        with os.scandir(folder) as entries:
            links = [Path(entry.path) for entry in entries if entry.is_symlink()]
        return all(path.resolve().is_relative_to(top) for path in (folder, *links))
    except OSError:
        return False


def block_of(root: Path, experiment: str, settings: str, seeds: str) -> Block:
    folder = inside(root, experiment, settings, seeds)
    if not stays(folder, root.resolve()):
        raise Missing("no such run in this folder")
    try:
        return read_block(folder, catalogue.experiments())
    except Refused as error:
        raise Missing(str(error)) from error


def trajectory(block: Block):
    """Return what a run recorded: all of it, or up to its last checkpoint, or None if there is nothing
    yet."""
    from stagewise.lab.store.run import so_far

    try:
        return block.arrays().dataset if block.finished else so_far(block)
    except Exception as error:  # whatever a foreign or half-written file does to its reader
        raise Missing(f"{block.folder.name} cannot be read: {error}") from error


def settings_of(block: Block) -> dict[str, str]:
    return {path: str(value) for path, value in flatten(block.experiment).items() if path not in WHICH_SEEDS}


def differing(all_settings: list[dict[str, str]]) -> dict[str, list[str]]:
    """Return the settings in which runs differ, with the value of each run."""
    paths = dict.fromkeys(path for settings in all_settings for path in settings)
    rows = {path: [settings.get(path, "") for settings in all_settings] for path in paths}
    return {path: values for path, values in rows.items() if len(set(values)) > 1}


def figures() -> dict[str, Figure]:
    return {id: figure for paper in catalogue.papers().values() for id, figure in paper.figures().items()}


def ready(figure: Figure, preset: str, root: Path) -> bool:
    """Whether the runs of a figure are all stored."""
    from stagewise.lab.judge.ledger import experiments_of, missing

    needs = figure.needs_at(preset)
    return not missing(needs) and stored(experiments_of(needs), root)


def stored(experiments: Iterable[Experiment], root: Path) -> bool:
    return all(block.finished for experiment in experiments for block in blocks(experiment, root))


def figures_ready(root: Path) -> list[dict[str, str]]:
    """Return the figures that can be drawn, with the preset of each."""
    every = [(figure, preset) for figure in figures().values() for preset in PRESETS]
    return [
        {"id": figure.id, "preset": preset, "source": figure.source, "shows": figure.shows}
        for figure, preset in every
        if ready(figure, preset, root)
    ]


def page_ready(paper: str, preset: str, root: Path) -> bool:
    """Whether a paper's page can be made from what is stored."""
    from stagewise.lab.reproduction import claims_named, wanted

    return stored(wanted(claims_named(paper), preset)[0], root)


def pages_ready(root: Path) -> list[dict[str, str]]:
    """Return the papers whose pages can be made, with the preset of each."""
    return [
        {"paper": paper, "preset": preset}
        for paper in catalogue.papers()
        for preset in PRESETS
        if page_ready(paper, preset, root)
    ]


def reports(root: Path) -> list[str]:
    """The reports that were written into this folder."""
    return sorted(
        path.parent.name for path in root.glob("reports/*/report.html") if NAME.fullmatch(path.parent.name)
    )
