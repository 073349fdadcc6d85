"""Run folders: runs/<experiment>/<settings>/<seeds>.<code>/, each a block of seeds, whole or unfinished.

`result.json` is written last, with the digests of the others; a folder without it is unfinished and goes on
from its checkpoint. The folder's name carries a digest of the code, so a run made by other code is another
folder, kept."""

from __future__ import annotations

import fcntl
import math
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagewise.errors import Refused, Unwritable
from stagewise.lab.experiment import Experiment
from stagewise.lab.files import (
    Damaged,
    header,
    keep_also,
    load_arrays,
    make_folder,
    read_json,
    save_arrays,
    sha256,
    write,
    write_json,
)
from stagewise.lab.provenance import code_digest, environment
from stagewise.lab.settings import from_json

if TYPE_CHECKING:
    import numpy as np

    from stagewise.lab.recorded import Recorded

FORMAT = 1
FINAL = "final"  # instead of a chunk, in the checkpoint of a finished run: the state without its records
FILES = (
    "config.json",
    "environment.json",
    "trajectory.nc",
    "checkpoint.safetensors",
)  # of a finished run, besides its result
_BLOCK = re.compile(r"seeds-(\d+)-(\d+)\.([0-9a-f]{8})$")


def runs_root() -> Path:
    """Where runs are kept: STAGEWISE_RUNS, or `runs` in the current folder."""
    return Path(os.environ.get("STAGEWISE_RUNS") or "runs").expanduser()


def code_of(experiment: type[Experiment]) -> str:
    """Digest of the code behind an experiment; its neighbours in the same file do not count."""
    return code_digest(experiment.__module__, _neighbours(experiment), FORMAT)


@cache
def _neighbours(experiment: type[Experiment]) -> frozenset[str]:
    """The other experiments of its module."""
    there = vars(sys.modules[experiment.__module__]).items()
    return frozenset(
        name
        for name, value in there
        if isinstance(value, type) and issubclass(value, Experiment) and value not in experiment.__mro__
    )


@dataclass(frozen=True)
class Block:
    """Seeds first..last-1 of one experiment, in their folder."""

    experiment: Experiment
    first: int
    last: int
    folder: Path

    @property
    def config(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "experiment": self.experiment.name,
            "settings": self.experiment.stored(),
            "seeds": [self.first, self.last],
            "code": code_of(type(self.experiment)),
        }

    def prepare(self, like: Block | None = None) -> None:
        """Make the folder, and say what is run, and where: in the words of a block that runs with it, if
        there is one."""
        make_folder(self.folder)
        for stray in self.folder.glob(".*.part"):
            stray.unlink(missing_ok=True)  # what a killed writer left beside its place
        write_json(self.folder / "config.json", self.config, lasting=False)
        if like in (None, self):
            write_json(self.folder / "environment.json", environment(), lasting=False)
        else:
            write(
                self.folder / "environment.json",
                (like.folder / "environment.json").read_bytes(),
                lasting=False,
            )

    def save_checkpoint(
        self,
        arrays: dict[str, np.ndarray],
        chunk: int | str,
        seconds: float,
        lasting: bool = True,
        **about: str,
    ) -> None:
        """Save the state after `chunk` chunks; the one before stays as `previous.safetensors` until the run
        is finished.

        Blocks that run together save one after another, and a kill may come in between: the state before is
        one that all of them have."""
        path = self.folder / "checkpoint.safetensors"
        if path.exists() and header(path).get("chunk") != str(
            chunk
        ):  # else it is that save, made again: the one before stays
            keep_also(path, self.folder / "previous.safetensors")
        save_arrays(path, arrays, {"chunk": str(chunk), "seconds": repr(seconds), **about}, lasting)

    def go_back(self, chunk: int) -> None:
        """Make the state after `chunk` the last one saved, if a later one is: its group goes on from there,
        and the next save must not push it out."""
        last, before = self.folder / "checkpoint.safetensors", self.folder / "previous.safetensors"
        if header(last).get("chunk") != str(chunk) and header(before).get("chunk") == str(chunk):
            keep_also(before, last)

    def begin_again(self) -> None:
        """Drop states that its group cannot go on from: no chunk is saved by all, so all begin anew. Left
        behind, they would part the group later."""
        for name in ("previous.safetensors", "checkpoint.safetensors"):
            (self.folder / name).unlink(missing_ok=True)

    def tell(self, chunk: int, chunks: int, stage: str, rate: float) -> None:
        """Leave word of how far the run is, for those who watch the folder."""
        write_json(
            self.folder / "progress.json",
            {"chunk": chunk, "chunks": chunks, "stage": stage, "steps_per_second": rate},
            lasting=False,
        )

    def saved_chunks(self) -> set[int]:
        """The chunks after which a state was saved, without reading the states."""
        paths = (self.folder / name for name in ("previous.safetensors", "checkpoint.safetensors"))
        found = (header(path).get("chunk", "") for path in paths if path.exists())
        return {int(chunk) for chunk in found if chunk.isdigit()}

    def checkpoints(self, note) -> dict[int, tuple[dict[str, np.ndarray], float]]:
        """Saved states by chunk. A damaged file is set aside under another name, and `note` is told."""
        found = {}
        for name in ("previous.safetensors", "checkpoint.safetensors"):
            path = self.folder / name
            if path.exists():
                try:
                    arrays, about = load_arrays(path)
                    if about["chunk"] != FINAL:
                        found[int(about["chunk"])] = arrays, float(about["seconds"])
                except (Damaged, KeyError, ValueError) as error:
                    note(f"{error}; it is set aside and the run goes on from its last good state")
                    path.replace(path.with_name(f"damaged-{_now()}-{name}"))
        return found

    def store(
        self,
        trajectory: bytes,
        state: dict[str, np.ndarray],
        seconds: float,
        company: Sequence[str],
        lasting: bool,
    ) -> None:
        """Write the trajectory, and the final state with the trajectory's digest and the names of all blocks
        that ran together. What is soon made again need not outlive a power failure: digests tell."""
        digest = write(self.folder / "trajectory.nc", trajectory, lasting)
        self.save_checkpoint(state, FINAL, seconds, lasting, trajectory=digest, company=" ".join(company))

    @property
    def company(self) -> tuple[str, ...]:
        """With which blocks, by name, it ran to the end, if it did and was not finished: they are finished,
        or run again, together."""
        return tuple(header(self.folder / "checkpoint.safetensors").get("company", "").split())

    @property
    def name(self) -> str:
        """Its folder below the root."""
        return "/".join(self.folder.parts[-3:])

    @property
    def stored(self) -> bool:
        """Whether a trajectory and its final state are there and whole."""
        about = header(self.folder / "checkpoint.safetensors")
        try:
            return (
                about.get("chunk") == FINAL
                and self._digests()["trajectory.nc"] == about["trajectory"]
                and bool(self.final_state())
            )
        except (OSError, KeyError, Damaged):
            return False

    def _digests(self) -> dict[str, str]:
        return {name: sha256((self.folder / name).read_bytes()) for name in FILES}

    def finish(self, lasting: bool = True) -> None:
        """Write the result, last of all."""
        seconds = float(header(self.folder / "checkpoint.safetensors")["seconds"])
        write_json(
            self.folder / "result.json",
            {"format": FORMAT, "finished": _now(), "seconds": seconds, "files": self._digests()},
            lasting,
        )
        for name in ("previous.safetensors", "progress.json", "failed.json", "alone.json"):
            (self.folder / name).unlink(missing_ok=True)

    def fail(self, reason: str) -> None:
        """Store that the run cannot be made, and why."""
        make_folder(self.folder)
        write_json(self.folder / "config.json", self.config)
        write_json(self.folder / "failed.json", {"format": FORMAT, "failed": _now(), "reason": reason})

    @property
    def failure(self) -> str | None:
        """Why the run could not be made, if it was tried and failed."""
        if self.finished or not (self.folder / "failed.json").exists():
            return None
        try:
            return str(read_json(self.folder / "failed.json")["reason"])
        except (Damaged, KeyError, TypeError):
            return "its reason cannot be read"

    def part(self) -> None:
        """Run alone from now on, also after an interruption: its group broke. What was saved in company goes,
        so that results do not depend on how far the group came."""
        with self.locked(lambda: None):
            if not self.finished:
                make_folder(self.folder)
                write_json(self.folder / "alone.json", {"format": FORMAT})
                self.begin_again()

    @property
    def alone(self) -> bool:
        return (self.folder / "alone.json").exists()

    def forgive(self) -> None:
        """Let a failed run be tried again."""
        (self.folder / "failed.json").unlink(missing_ok=True)

    @property
    def finished(self) -> bool:
        return (self.folder / "result.json").exists()

    def check(self) -> None:
        """Raise Damaged unless every file is as it was written."""
        result = read_json(self.folder / "result.json")
        try:
            for name, digest in result["files"].items():
                if sha256((self.folder / name).read_bytes()) != digest:
                    raise Damaged(f"{self.folder / name} does not match its digest")
        except (OSError, KeyError, TypeError, AttributeError) as error:
            raise Damaged(f"{self.folder} is incomplete: {error}") from error

    def set_aside(self) -> Path:
        """Rename a damaged folder, so that nothing is lost and the run can be made again."""
        aside = self.folder.with_name(f"damaged-{_now()}-{self.folder.name}")
        self.folder.rename(aside)
        return aside

    def recorded(self) -> Recorded:
        from stagewise.lab.netcdf import read

        return read(self.folder / "trajectory.nc")

    def final_state(self) -> dict[str, np.ndarray]:
        return load_arrays(self.folder / "checkpoint.safetensors")[0]

    @property
    def seconds(self) -> float:
        return float(read_json(self.folder / "result.json")["seconds"])

    @contextmanager
    def locked(self, waiting) -> Iterator[None]:
        """Hold the block alone; `waiting()` is called once if another process has it. A killed process lets
        go."""
        make_folder(self.folder.parent)
        path = _lock(self.folder)
        try:
            handle = open(path, "w")
        except OSError as error:
            raise Unwritable(f"cannot write {path}: {error.strerror}") from error
        with handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield


def _lock(folder: Path) -> Path:
    return folder.parent / f".{folder.name}.lock"


def is_running(folder: Path) -> bool:
    """Whether a process holds the block in this folder. Looks only: the lock is tried for a moment, and
    shared."""
    try:
        with open(_lock(folder)) as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def blocks(experiment: Experiment, root: Path) -> list[Block]:
    """The blocks that cover an experiment's seeds: what is there already, then what is missing."""
    parent, code = root / experiment.name / experiment.digest, code_of(type(experiment))
    there = []
    for folder in parent.glob(f"seeds-*.{code}"):
        if match := _BLOCK.match(folder.name):
            there.append((int(match[1]), int(match[2]), folder))
    found, covered = [], 0
    while covered < experiment.lanes:
        known = [Block(experiment, *entry) for entry in there if entry[0] == covered]
        known = [block for block in known if block.finished or block.last <= experiment.lanes]
        # the one that covers most of what is done or begun: asking for fewer seeds in between must not orphan
        # what is saved
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
            first, last = covered, min(experiment.lanes, covered + experiment.seeds_per_block)
            folder = parent / f"seeds-{first}-{last}.{code}"
        found.append(Block(experiment, first, last, folder))
        covered = last
    return found


def read_block(folder: Path, experiments: dict[str, type[Experiment]]) -> Block:
    """The block in a folder that the user names; refused if it is not one or cannot be read."""
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
        experiment = from_json(experiments[name], config["settings"] | {"seeds": last})
    except (Damaged, KeyError, TypeError, ValueError) as error:
        raise Refused(f"{folder} is damaged: {error}") from error
    return Block(experiment, first, last, folder)


@dataclass(frozen=True)
class Listed:
    """A line of `stagewise runs`."""

    folder: Path
    experiment: str
    settings: dict[str, Any]
    seeds: tuple[int, int]
    state: str  # finished, running, unfinished, failed, stale, damaged or unreadable
    seconds: float | None
    finished: str | None
    progress: dict[str, Any] | None = None


def folders(root: Path) -> list[Path]:
    """Every run folder below the root."""
    return [config.parent for config in sorted(root.glob("*/*/*/config.json"))]


def listing(root: Path, experiments: dict[str, type[Experiment]]) -> list[Listed]:
    """Every run below the root, whatever its state; none is an obstacle."""
    return [listed(folder, experiments) for folder in folders(root)]


def listed(folder: Path, experiments: dict[str, type[Experiment]]) -> Listed:
    """What is known of the run in a folder; one whose files hold other things than we write is damaged."""
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
            return Listed(folder, name, {}, seeds, f"unreadable (format {config['format']})", None, None)
        name, (first, last), settings = (
            _of(str, config["experiment"]),
            config["seeds"],
            _of(dict, config["settings"]),
        )
        seeds, state = (_of(int, first), _of(int, last)), "unfinished"
        if (folder / "result.json").exists():
            result = read_json(folder / "result.json")
            state, seconds, finished = "finished", _number(result["seconds"]), _of(str, result["finished"])
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
    return Listed(folder, name, settings, seeds, state, seconds, finished, progress)


def _progress(path: Path) -> dict[str, Any] | None:
    """How far a run is, if it has left word."""
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


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S.%fZ")
