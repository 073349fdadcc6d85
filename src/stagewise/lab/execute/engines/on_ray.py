"""Ray as the distributed engine: a group is a task, tried again if its node is lost.

Where the runs folder is on a filesystem that all nodes share, results are left there; a node that does not
see it sends the files back."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from stagewise import process
from stagewise.errors import Refused, require
from stagewise.lab.execute.engines import attempt, parted
from stagewise.lab.execute.jobs import Group, held, read_group, to_json
from stagewise.lab.execute.progress import Progress
from stagewise.lab.store.block import FILES
from stagewise.lab.store.files import make_folder, write

TRIES = 5  # how many times Ray tries a task again after its node is lost
PATIENCE = 20  # seconds in which tasks that must stop can save what they have done
LOST = ["lost"]  # returned in place of what failed, if the worker or its node died in every try
LAST = "result.json"  # the file that is written last: it shows that the others are there


class OnRay:
    """A cluster at an address, or one that Ray starts on this machine. The connection is made at once, so
    that a wrong address is refused before anything is planned."""

    def __init__(self, address: str | None = None):
        try:
            import ray
        except ImportError as error:
            raise Refused("the engine ray needs Ray: pip install 'stagewise[ray]'") from error
        self.ray, self.address = ray, address
        self.began = not ray.is_initialized()
        require(
            self.began or address is None,
            "this process is connected to a Ray cluster already: disconnect (ray.shutdown()) to use the one "
            f"at {address}, or leave the address",
        )
        if address:
            _check_reachable(address)
        if self.began:
            self._connect()

    @property
    def workers(self) -> int:
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    def run(self, groups: Sequence[Group], root: Path, progress: Progress, fail_fast: bool) -> None:
        root = make_folder(root).resolve()  # nodes work in folders of their own
        token = root / f".shared-{uuid4().hex}"
        write(token, b"")
        try:
            self._run(groups, root, token, progress, fail_fast)
        finally:
            token.unlink(missing_ok=True)
            if self.began:
                self.ray.shutdown()

    def _connect(self) -> None:
        try:
            self.ray.init(
                address=self.address,
                log_to_driver=False,
                runtime_env={"env_vars": process.settings()},
                configure_logging=False,
                include_dashboard=False if not self.address else None,
            )
        except Exception as error:  # Ray has many ways to say that nobody is there
            raise Refused(
                f"cannot reach a Ray cluster at {self.address or 'this machine'}: "
                f"{str(error).splitlines()[0]} (set --address)"
            ) from error

    def _run(
        self, groups: Sequence[Group], root: Path, token: Path, progress: Progress, fail_fast: bool
    ) -> None:
        task = self.ray.remote(max_retries=TRIES, num_cpus=1)(_work)
        progress.begin(f"{len(groups)} groups of jobs on Ray", len(groups))
        waiting: dict[Any, Group] = {}

        def submit(group: Group) -> None:
            waiting[task.remote(to_json(group), str(root), token.name, _left_behind(group), fail_fast)] = (
                group
            )

        for group in groups:
            submit(group)
        try:
            while waiting:
                ended, _ = self.ray.wait(list(waiting), num_returns=1)
                for reference in ended:
                    group = waiting.pop(reference)
                    failed, refused, files = self._result(reference)
                    if refused:
                        raise Refused(refused)
                    if failed is LOST and len(group) > 1:  # one block may be at fault: each runs alone
                        for one in parted(group):
                            submit(one)
                        continue
                    if failed is LOST:
                        group[0].fail(f"its worker was lost {TRIES} times")
                        failed = [f"{group[0].name}: its worker was lost {TRIES} times"]
                    if files:
                        with held(group):
                            _store(files, root)
                    for line in failed:
                        progress.note(f"failed: {line}")
                    progress.advance("running", 0, 1.0)
                    if failed and fail_fast:
                        return
        finally:
            self._cancel(list(waiting))
            progress.end()

    def _cancel(self, references: list) -> None:
        """Ask tasks to stop, so that they save what they have done, and end those that do not stop."""
        if references:
            for reference in references:
                self.ray.cancel(reference, force=False)
            _, running = self.ray.wait(references, num_returns=len(references), timeout=PATIENCE)
            for reference in running:
                self.ray.cancel(reference, force=True)

    def _result(self, reference: Any) -> tuple[list[str], str, dict[str, bytes]]:
        lost = (
            self.ray.exceptions.WorkerCrashedError,
            self.ray.exceptions.NodeDiedError,
            self.ray.exceptions.OutOfMemoryError,
            self.ray.exceptions.LocalRayletDiedError,
        )
        try:
            return self.ray.get(reference)
        except lost:
            return LOST, "", {}
        except self.ray.exceptions.RayError as error:  # the cluster's fault, not the job's
            raise Refused(
                f"the Ray cluster cannot run the jobs: {str(error).strip().splitlines()[-1]}"
            ) from error


def _work(
    stored: list[dict[str, Any]], root: str, token: str, begun: dict[str, bytes], fail_fast: bool = False
) -> tuple[list[str], str, dict[str, bytes]]:
    """Compute a group on a node, in the runs folder. A node that does not see this folder computes in a
    folder of its own and sends the files back."""
    shared = Path(root)
    process.begin()
    try:
        if (shared / token).exists():
            return attempt(read_group(stored, shared), Progress(), fail_fast), "", {}
        with tempfile.TemporaryDirectory() as own:
            _store(begun, Path(own))
            failed = attempt(read_group(stored, Path(own)), Progress(), fail_fast)
            return failed, "", _files(Path(own), [one["folder"] for one in stored])
    except Refused as refusal:
        return [], str(refusal), {}


def _left_behind(group: Group) -> dict[str, bytes]:
    """What an interrupted group has saved, for a node that does not see the folder."""
    found = {}
    for block in group:
        for name in ("previous.safetensors", *FILES):
            if (path := block.folder / name).exists():
                found["/".join(path.parts[-4:])] = path.read_bytes()
    return found


def _files(root: Path, folders: list[str]) -> dict[str, bytes]:
    return {
        f"{folder}/{path.name}": path.read_bytes()
        for folder in folders
        for path in sorted(root.joinpath(*folder.split("/")).glob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


def _store(files: dict[str, bytes], root: Path) -> None:
    """Write files to their places. The files that say that a run is finished are written last."""
    for name in sorted(files, key=lambda name: name.endswith(LAST)):
        path = root.joinpath(*name.split("/"))
        make_folder(path.parent)
        write(path, files[name])


def _check_reachable(address: str) -> None:
    """Refuse at once if nobody listens at the address, or if what listens is not Ray; Ray itself would try
    for a long time."""
    plain = address.removeprefix("ray://")
    if plain in ("auto", "local"):
        return
    host, _, port = plain.rpartition(":")
    try:
        socket.create_connection((host or plain, int(port)), timeout=5).close()
    except (OSError, ValueError) as error:
        raise Refused(
            f"nobody answers at the Ray address {address}: {error} (set --address host:port)"
        ) from error
    if plain == address:
        try:
            healthy = (
                subprocess.run(
                    [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address],
                    capture_output=True,
                    timeout=30,
                ).returncode
                == 0
            )
        except subprocess.TimeoutExpired:
            healthy = False
        if not healthy:
            raise Refused(f"what answers at {address} is not a Ray cluster (set --address host:port)")
