"""Ray as the distributed engine: a group is a task, tried again if its node is lost.

Where the runs folder is on a filesystem that all nodes share, results are left there; a node that does not see it sends the files back."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path
from typing import Any, Sequence
from uuid import uuid4

from stagewise.errors import Refused
from stagewise.lab.engines import stop_on
from stagewise.lab.files import make_folder, write
from stagewise.lab.jobs import Group, to_json
from stagewise.lab.progress import Silent

TRIES = 5  # after a node is lost
LAST = "result.json"  # written last: it says that the others are there


class OnRay:
    """A cluster at an address, or one that Ray starts on this machine."""

    def __init__(self, address: str | None = None):
        try:
            import ray
        except ImportError as error:
            raise Refused("the engine ray needs Ray: pip install 'stagewise[ray]'") from error
        self.ray, self.address = ray, address
        if address:
            _check_reachable(address)

    def run(self, groups: Sequence[Group], root: Path, progress: Silent, fail_fast: bool) -> None:
        began = not self.ray.is_initialized()
        if began:
            self._connect()
        token = make_folder(root) / f".shared-{uuid4().hex}"
        write(token, b"")
        try:
            self._run(groups, root, token, progress, fail_fast)
        finally:
            token.unlink(missing_ok=True)
            if began:
                self.ray.shutdown()

    def _connect(self) -> None:
        alone = {"PJRT_NPROC": "1", "OPENBLAS_NUM_THREADS": "1", "JAX_ENABLE_X64": "1"}
        try:
            self.ray.init(address=self.address, log_to_driver=False, runtime_env={"env_vars": alone}, configure_logging=False, include_dashboard=False if not self.address else None)
        except Exception as error:  # Ray has many ways to say that nobody is there
            raise Refused(f"cannot reach a Ray cluster at {self.address or 'this machine'}: {str(error).splitlines()[0]} (set --address)") from error

    def _run(self, groups: Sequence[Group], root: Path, token: Path, progress: Silent, fail_fast: bool) -> None:
        task = self.ray.remote(max_retries=TRIES, num_cpus=1)(_work)
        progress.begin(f"{len(groups)} groups of jobs on Ray", len(groups))
        waiting = {task.remote(to_json(group), str(root), token.name, _left_behind(group)): group for group in groups}
        try:
            while waiting:
                ended, _ = self.ray.wait(list(waiting), num_returns=1)
                for reference in ended:
                    failed, refused, files = self._result(reference, waiting.pop(reference))
                    if refused:
                        raise Refused(refused)
                    _store(files, root)
                    for line in failed:
                        progress.note(f"failed: {line}")
                    progress.advance("sweeping", 0, 1.0)
                    stop_on(failed, fail_fast)
        finally:
            for reference in waiting:
                self.ray.cancel(reference, force=True)
            progress.end()

    def _result(self, reference: Any, group: Group) -> tuple[list[str], str, dict[str, bytes]]:
        try:
            return self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            reason = f"lost {TRIES} times: {str(error).splitlines()[0]}"
            for block in group:
                if not block.finished:
                    block.fail(reason)
            return [f"{'/'.join(block.folder.parts[-3:])}: {reason}" for block in group], "", {}


def _work(stored: list[dict[str, Any]], root: str, token: str, begun: dict[str, bytes]) -> tuple[list[str], str, dict[str, bytes]]:
    """On a node: compute a group in the runs folder, or, if the node does not see it, in a folder of its own, and send the files back."""
    from stagewise.lab.engines import attempt
    from stagewise.lab.jobs import read_group

    shared = Path(root)
    try:
        if (shared / token).exists():
            return attempt(read_group(stored, shared), Silent()), "", {}
        with tempfile.TemporaryDirectory() as own:
            _store(begun, Path(own))
            failed = attempt(read_group(stored, Path(own)), Silent())
            return failed, "", _files(Path(own), [one["folder"] for one in stored])
    except Refused as refusal:
        return [], str(refusal), {}


def _left_behind(group: Group) -> dict[str, bytes]:
    """Checkpoints of an interrupted group, for a node that does not see the folder."""
    found = {}
    for block in group:
        for name in ("previous.safetensors", "checkpoint.safetensors"):
            if (path := block.folder / name).exists():
                found["/".join(path.parts[-4:])] = path.read_bytes()
    return found


def _files(root: Path, folders: list[str]) -> dict[str, bytes]:
    return {f"{folder}/{path.name}": path.read_bytes() for folder in folders for path in sorted(root.joinpath(*folder.split("/")).glob("*")) if path.is_file() and not path.name.startswith(".")}


def _store(files: dict[str, bytes], root: Path) -> None:
    """Put files in their places, those that say that a run is finished last."""
    for name in sorted(files, key=lambda name: name.endswith(LAST)):
        path = root.joinpath(*name.split("/"))
        make_folder(path.parent)
        write(path, files[name])


def _check_reachable(address: str) -> None:
    """Refuse at once where nobody listens; Ray itself would try for a long time."""
    plain = address.removeprefix("ray://")
    if plain in ("auto", "local"):
        return
    host, _, port = plain.rpartition(":")
    try:
        socket.create_connection((host or plain, int(port)), timeout=5).close()
    except (OSError, ValueError) as error:
        raise Refused(f"nobody answers at the Ray address {address}: {error} (set --address host:port)") from error
