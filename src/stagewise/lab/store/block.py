"""A block: seeds of one experiment in a run folder, runs/<experiment>/<settings>/<seeds>.<code>/, finished or
not.

`result.json` is written last, with the digests of the other files. A folder without it is unfinished, and its
run goes on from the checkpoint. The name of the folder ends in a digest of the code, so a run by other code
goes into another folder, and this one is kept."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagewise.errors import Failed, Unwritable
from stagewise.lab.spec.experiment import Experiment
from stagewise.lab.store.files import (
    Damaged,
    digest_of,
    header,
    keep_also,
    load_arrays,
    make_folder,
    read_json,
    save_arrays,
    write,
    write_json,
)
from stagewise.lab.store.provenance import code_digest, environment

if TYPE_CHECKING:
    import numpy as np

    from stagewise.lab.store.named_arrays import NamedArrays

FORMAT = 1
# The checkpoint of a finished run has this in place of the chunk's number; it is the state without records.
FINAL = "final"
FILES = ("config.json", "environment.json", "trajectory.nc", "checkpoint.safetensors")
"""The files of a finished run, besides its result."""


def code_of(experiment: type[Experiment]) -> str:
    """Digest of the code behind an experiment."""
    return code_digest(experiment, FORMAT)


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
        """Make the folder, and write into it what is run and on which machine and versions. The latter are
        copied from `like`, a block of the same group, if it is given."""
        make_folder(self.folder)
        for stray in self.folder.glob(".*.part"):
            stray.unlink(missing_ok=True)  # a file that a killed process did not finish
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
        """Save the state after `chunk` chunks. The state that was saved before stays as
        `previous.safetensors` until the run is finished.

        The blocks of a group save one after another, and the process may be killed in between. The state
        before is then one that all blocks of the group have."""
        path = self.folder / "checkpoint.safetensors"
        # If this chunk was saved already, it is saved again, and the state before it stays.
        if path.exists() and header(path).get("chunk") != str(chunk):
            keep_also(path, self.folder / "previous.safetensors")
        save_arrays(path, arrays, {"chunk": str(chunk), "seconds": repr(seconds), **about}, lasting)

    def go_back(self, chunk: int) -> None:
        """Make the state after `chunk` the last one saved, if a later state was saved. The group goes on from
        `chunk`, and without this the next save would drop the state after `chunk`."""
        last, before = self.folder / "checkpoint.safetensors", self.folder / "previous.safetensors"
        if header(last).get("chunk") != str(chunk) and header(before).get("chunk") == str(chunk):
            keep_also(before, last)

    def begin_again(self) -> None:
        """Delete the saved states, from which the group cannot go on: its blocks have no saved chunk in
        common, so all of them begin anew. Old states would later split the group."""
        for name in ("previous.safetensors", "checkpoint.safetensors"):
            (self.folder / name).unlink(missing_ok=True)

    def tell(self, chunk: int, chunks: int, stage: str, rate: float) -> None:
        """Write into the folder how far the run is, for those who watch it."""
        write_json(
            self.folder / "progress.json",
            {"chunk": chunk, "chunks": chunks, "stage": stage, "steps_per_second": rate},
            lasting=False,
        )

    def saved_chunks(self) -> set[int]:
        """Return the numbers of chunks after which a state was saved, without reading the states."""
        paths = (self.folder / name for name in ("previous.safetensors", "checkpoint.safetensors"))
        found = (header(path).get("chunk", "") for path in paths if path.exists())
        return {int(chunk) for chunk in found if chunk.isdigit()}

    def checkpoints(self, note) -> dict[int, tuple[dict[str, np.ndarray], float]]:
        """Return the saved states by chunk, each with the seconds spent. A damaged file is renamed, and
        `note` is called with a sentence about it."""
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
        """Write the trajectory, then the final state, with the trajectory's digest and the names of all
        blocks of the group (`company`).

        A short run is written without `lasting`: if a power failure destroys it, its digests show it, and it
        is soon run again."""
        digest = write(self.folder / "trajectory.nc", trajectory, lasting)
        self.save_checkpoint(state, FINAL, seconds, lasting, trajectory=digest, company=" ".join(company))

    @property
    def company(self) -> tuple[str, ...]:
        """The names of the blocks that ran to the end as one group with this block; empty if it did not run
        to its end. If the group was not finished, these blocks are finished, or run again, together."""
        return tuple(header(self.folder / "checkpoint.safetensors").get("company", "").split())

    @property
    def name(self) -> str:
        """The path of the block's folder below the root."""
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
        return {name: digest_of(self.folder / name) for name in FILES}

    def finish(self, lasting: bool = True) -> None:
        """Write the result, which is the last file, and delete files that only an unfinished run needs."""
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

    def error(self) -> Failed:
        """The failure, as an error that says what to do."""
        why, _, trace = (self.failure or "").partition("\n\n")
        why = why.splitlines()[0] if why else "for no known reason"
        return Failed(f"{self.name} failed: {why} (set --retry to try it again)", trace)

    def part(self) -> None:
        """Let the block run alone from now on, also after an interruption, because its group broke. States
        that it saved in the group are deleted, so that results do not depend on how far the group came."""
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
        check_files(self.folder, read_json(self.folder / "result.json"))

    def set_aside(self) -> Path:
        """Rename a damaged folder, so that nothing is lost and the run can be made again."""
        aside = self.folder.with_name(f"damaged-{_now()}-{self.folder.name}")
        self.folder.rename(aside)
        return aside

    def arrays(self) -> NamedArrays:
        """Return what was recorded. The settings in it have the names that they have today."""
        from stagewise.lab.store.netcdf import read

        stored = read(self.folder / "trajectory.nc")
        return replace(stored, about=dict(stored.about) | {"settings": json.dumps(self.experiment.stored())})

    def final_state(self) -> dict[str, np.ndarray]:
        return load_arrays(self.folder / "checkpoint.safetensors")[0]

    @property
    def seconds(self) -> float:
        return float(read_json(self.folder / "result.json")["seconds"])

    @contextmanager
    def locked(self, waiting) -> Iterator[None]:
        """Hold the lock of the block. If another process holds it, `waiting()` is called once and this one
        waits. The lock of a killed process is free."""
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


def check_files(folder: Path, result: Any, digest_of: Callable[[Path], str] = digest_of) -> None:
    """Raise Damaged unless every file of a finished run is as its result says."""
    try:
        for name, digest in result["files"].items():
            if digest_of(folder / name) != digest:
                raise Damaged(f"{folder / name} does not match its digest")
    except (OSError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise Damaged(f"{folder} is incomplete: {error}") from error


def _lock(folder: Path) -> Path:
    return folder.parent / f".{folder.name}.lock"


def is_running(folder: Path) -> bool:
    """Whether a process holds the lock of the block in this folder. This only looks: it takes a shared lock
    and releases it at once."""
    try:
        with open(_lock(folder)) as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S.%fZ")
