"""Files that are either whole or not there. A file is written under another name beside its place and then
renamed; arrays are read with their digests checked."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any

from stagewise.errors import Unwritable, require

if TYPE_CHECKING:
    import numpy as np


class Damaged(Exception):
    """A file does not hold what was written to it."""


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def digest_of(path: Path) -> str:
    return sha256(path.read_bytes())


def digest_as_last_seen(path: Path) -> str:
    """Return the digest of a file, and read the file again only if its times or size have changed since the
    last call. This is for callers who look often and may see a change a moment late."""
    there = path.stat()
    return _digest_of_file(path, there.st_ino, there.st_size, there.st_mtime_ns, there.st_ctime_ns)


@lru_cache(100_000)
def _digest_of_file(path: Path, *_as_it_is: int) -> str:
    return digest_of(path)


def write(path: Path, fill: bytes | Callable[[Path], None], lasting: bool = True) -> str:
    """Write a whole file or nothing, and return its digest. `fill` is the content, or a function that writes
    the content to the path that it is given.

    A `lasting` file outlives a power failure too. Files that can soon be made again need not be lasting, and
    are written faster."""
    try:
        beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
        try:
            with open(beside, "x+b") as opened:
                if isinstance(fill, bytes):
                    opened.write(fill)
                    opened.flush()
                    content = sha256(fill)
                else:
                    fill(beside)
                    content = digest_of(beside)
                if lasting:
                    os.fsync(opened.fileno())
            os.replace(beside, path)
            if lasting:
                _keep_names(path.parent)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        return content
    except OSError as error:
        raise Unwritable(
            f"cannot write {path}: {error.strerror or error}; what was finished before is kept"
        ) from error


def _keep_names(folder: Path) -> None:
    """Make the names in a folder outlive a power failure, as the files do."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def keep_also(path: Path, other: Path) -> None:
    """Give a file the second name `other`, while it keeps the first. Where the filesystem has no links, the
    second name is a copy."""
    beside = other.with_name(f".{other.name}.part")
    try:
        beside.unlink(missing_ok=True)
        os.link(path, beside)
        os.replace(beside, other)
        beside.unlink(missing_ok=True)  # os.replace leaves it if both names were the same file already
    except OSError:
        write(other, path.read_bytes())


def write_json(path: Path, value: Any, lasting: bool = True) -> str:
    return write(path, (json.dumps(value, indent=1, allow_nan=False) + "\n").encode(), lasting)


def read_json(path: Path) -> Any:
    """Return what a JSON file holds. Raise Damaged if it is not JSON, or holds what we never write: NaN,
    infinities, or brackets nested too deeply to read."""
    try:
        with open(path, "rb", opener=_at_once) as opened:
            if not S_ISREG(os.fstat(opened.fileno()).st_mode):
                raise ValueError("it is not a file")
            return _JSON.decode(opened.read().decode())
    except (OSError, ValueError, RecursionError) as error:
        raise Damaged(f"{path} cannot be read: {error}") from error


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # opening a pipe would otherwise wait, perhaps for ever


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not a number")


_JSON = json.JSONDecoder(parse_constant=_no_number)


def save_arrays(
    path: Path, arrays: Mapping[str, np.ndarray], about: Mapping[str, str], lasting: bool = True
) -> str:
    """Write named arrays with a digest of them inside the file, so that a flipped bit is noticed when they
    are read."""
    import numpy as np
    from safetensors.numpy import save

    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return write(path, save(arrays, metadata=dict(about) | {"digest": _digest_of(arrays, about)}), lasting)


def load_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as opened:
            about = dict(opened.metadata() or {})
            arrays = {name: opened.get_tensor(name) for name in opened.keys()}
    except (OSError, SafetensorError, ValueError) as error:
        raise Damaged(f"{path} cannot be read: {error}") from error
    if about.pop("digest", None) != _digest_of(arrays, about):
        raise Damaged(f"{path} does not match its digest")
    return arrays, about


def header(path: Path) -> dict[str, str]:
    """Return what was written about the arrays in a file; empty if the file cannot be read."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as opened:
            return dict(opened.metadata() or {})
    except (OSError, SafetensorError, ValueError):
        return {}


def check_ending(path: Path, endings: tuple[str, ...], what: str) -> None:
    """Refuse the path of a folder, or of a file of a kind that we do not write, before anything is computed
    for it."""
    require(
        path.suffix.lower() in endings,
        f"{what} written as {', '.join(endings)}, not as {path.name!r} (set --out)",
    )
    require(not path.is_dir(), f"{path} is a folder (set --out to the name of a file)")


def make_folder(path: Path) -> Path:
    """Create a folder, or refuse in one sentence."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise Unwritable(f"{path} is {_what_is(path)}, not a folder") from error
    except OSError as error:
        raise Unwritable(f"cannot create the folder {path}: {error.strerror}") from error
    if not os.access(path, os.W_OK):
        raise Unwritable(f"cannot write to the folder {path}: choose another with --out or STAGEWISE_RUNS")
    return path


def check_folder(path: Path, way_out: str) -> None:
    """Refuse a path where something is that is not a folder. A path where nothing is yet is accepted."""
    require(path.is_dir() or not os.path.lexists(path), f"{path} is {_what_is(path)}, not a folder {way_out}")


def _what_is(path: Path) -> str:
    return "a link to nothing" if path.is_symlink() and not path.exists() else "a file"


def prepare_for(path: Path, note: Callable[[str], None]) -> None:
    """Refuse a file that cannot be written, before anything is computed for it. If its folder is missing, the
    folder is made and `note` is called with a sentence about it."""
    parent = path.absolute().parent
    if not parent.is_dir():
        make_folder(parent)
        note(f"{parent} was not there: it is made")
    beside = parent / f".{path.name}.{secrets.token_hex(6)}.part"
    try:
        beside.touch(exist_ok=False)
        beside.unlink()
    except OSError as error:
        raise Unwritable(f"cannot write {path}: {error.strerror or error} (set --out)") from error


def _digest_of(arrays: Mapping[str, np.ndarray], about: Mapping[str, str]) -> str:
    whole = hashlib.sha256(json.dumps(dict(about), sort_keys=True).encode())
    for name in sorted(arrays):
        whole.update(f"{name}{arrays[name].dtype}{arrays[name].shape}".encode() + arrays[name].tobytes())
    return whole.hexdigest()
