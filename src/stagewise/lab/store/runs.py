"""The folder of runs: which blocks cover an experiment's seeds, and what is stored below a root."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stagewise.errors import Refused
from stagewise.lab.spec.experiment import Experiment
from stagewise.lab.spec.settings import by_path, changed, from_json, which
from stagewise.lab.store.block import FORMAT, Block, check_files, code_of, is_running
from stagewise.lab.store.files import Damaged, digest_as_last_seen, read_json

_BLOCK = re.compile(r"seeds-(\d+)-(\d+)\.([0-9a-f]{8})$")


def runs_root() -> Path:
    """Where runs are kept: STAGEWISE_RUNS, or `runs` in the current folder."""
    return Path(os.environ.get("STAGEWISE_RUNS") or "runs").expanduser()


def blocks(experiment: Experiment, root: Path) -> list[Block]:
    """Return the blocks that cover an experiment's seeds, in order: blocks that are in the folder already,
    and new ones for the seeds that are missing."""
    parent, code = root / experiment.name / experiment.digest, code_of(type(experiment))
    there = []
    for folder in parent.glob(f"seeds-*.{code}"):
        if match := _BLOCK.match(folder.name):
            there.append((int(match[1]), int(match[2]), folder))
    found, covered = [], experiment.seeds_from
    while covered < experiment.seeds_to:
        known = [Block(experiment, *entry) for entry in there if entry[0] == covered]
        known = [block for block in known if block.finished or block.last <= experiment.seeds_to]
        # Take the block that covers most of the seeds that are done or begun. What is saved must still be
        # found after somebody has asked for fewer seeds in between.
        if known:
            best = max(
                known,
                key=lambda block: (
                    block.last
                    if block.finished or (block.folder / "checkpoint.safetensors").exists()
                    else -1,
                    block.finished,
                    block.last,
                ),
            )
            first, last, folder = best.first, best.last, best.folder
        else:
            first, last = covered, min(experiment.seeds_to, covered + experiment.seeds_per_block)
            folder = parent / f"seeds-{first}-{last}.{code}"
        found.append(Block(experiment, first, last, folder))
        covered = last
    return found


def read_block(folder: Path, experiments: dict[str, type[Experiment]]) -> Block:
    """Return the block in a folder that the user names; refuse a folder that is no block or cannot be
    read."""
    if not (folder / "config.json").exists():
        raise Refused(f"{folder} is not a run folder: it has no config.json")
    try:
        config = read_json(folder / "config.json")
        if config["format"] > FORMAT:
            raise Refused(
                f"{folder} was written by a newer stagewise (format {config['format']}); update stagewise"
            )
        name, (first, last) = config["experiment"], config["seeds"]
        if name not in experiments:
            raise Refused(f"{folder} is a run of {name!r}, which this stagewise does not have")
        experiment = from_json(experiments[name], config["settings"] | which(first, last))
    except (Damaged, KeyError, TypeError, ValueError) as error:
        raise Refused(f"{folder} is damaged: {error}") from error
    return Block(experiment, first, last, folder)


@dataclass(frozen=True)
class StoredRun:
    """What is known of the run in a folder, whatever its state: a line of `stagewise runs`."""

    folder: Path
    experiment: str
    settings: dict[str, Any]
    seeds: tuple[int, int]
    state: str  # finished, running, unfinished, failed, stale, damaged or unreadable
    seconds: float | None
    finished: str | None
    progress: dict[str, Any] | None = None

    def changed(self, experiments: dict[str, type[Experiment]]) -> str:
        """Return as text the settings that differ from the experiment's defaults, or all settings if the
        experiment is not known."""
        if self.experiment not in experiments:
            different = by_path(self.settings)
        else:
            try:
                different = changed(from_json(experiments[self.experiment], self.settings))
            except Refused:
                return "settings that this stagewise does not have"
        return ", ".join(f"{path}={value}" for path, value in different.items())


def folders(root: Path) -> list[Path]:
    """Every run folder below the root."""
    return [config.parent for config in sorted(root.glob("*/*/*/config.json"))]


def listing(root: Path, experiments: dict[str, type[Experiment]]) -> list[StoredRun]:
    """Return every run below the root, whatever its state. A run that is damaged or cannot be read is listed
    as that and stops nothing."""
    return [stored_run(folder, experiments) for folder in folders(root)]


def stored_run(folder: Path, experiments: dict[str, type[Experiment]]) -> StoredRun:
    """Return what is known of the run in a folder. If its files hold anything that we never write, its state
    is `damaged`."""
    name, seeds, settings, seconds, finished, progress = (
        folder.parent.parent.name,
        (0, 0),
        {},
        None,
        None,
        None,
    )
    try:
        config = read_json(folder / "config.json")
        if config["format"] > FORMAT:
            return StoredRun(folder, name, {}, seeds, f"unreadable (format {config['format']})", None, None)
        name, (first, last), settings = (
            _of(str, config["experiment"]),
            config["seeds"],
            _of(dict, config["settings"]),
        )
        seeds, state = (_of(int, first), _of(int, last)), "unfinished"
        if (folder / "result.json").exists():
            result = read_json(folder / "result.json")
            state, seconds, finished = "finished", _number(result["seconds"]), _of(str, result["finished"])
            check_files(folder, result, digest_as_last_seen)
        if folder.name.startswith("damaged-"):
            state = "damaged"
        elif name not in experiments:
            state = "unreadable (unknown experiment)"
        elif state == "unfinished" and (folder / "failed.json").exists():
            state, progress = "failed", {"reason": _of(str, read_json(folder / "failed.json")["reason"])}
        elif state == "unfinished" and is_running(folder):
            state, progress = "running", _progress(folder / "progress.json")
        elif config["code"] != code_of(experiments[name]):
            state = "stale"
    except (Damaged, KeyError, TypeError, ValueError):
        state = "damaged"
    return StoredRun(folder, name, settings, seeds, state, seconds, finished, progress)


def _progress(path: Path) -> dict[str, Any] | None:
    """Return how far a run is, as it wrote it into the file, or None if there is no file."""
    if not path.exists():
        return None
    told = read_json(path)
    return {name: _number(told[name]) for name in ("chunk", "chunks", "steps_per_second")} | {
        "stage": _of(str, told["stage"])
    }


def _of(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not {kind}")
    return value


def _number(value: Any) -> float:
    if not math.isfinite(_of((int, float), value)):
        raise ValueError(f"{value!r} is not a number")
    return value
