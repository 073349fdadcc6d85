"""jax's compilation cache: what was compiled once on this machine is not compiled again.

The cache lies in the user's cache folder, with one subfolder for each kind of processor and version of jax.
When a subfolder grows beyond MOST_BYTES, jax deletes what was not used for the longest time. Set
STAGEWISE_COMPILATION_CACHE to another folder, or to `off`. If the user has given jax a cache of their own
(JAX_COMPILATION_CACHE_DIR), our processes use that one."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from stagewise.errors import Refused

PLACE = "STAGEWISE_COMPILATION_CACHE"
MOST_BYTES = 2 * 1024**3
_FOLDER = "jax_compilation_cache_dir"
_LIMITS = {
    "jax_compilation_cache_max_size": MOST_BYTES,
    "jax_persistent_cache_min_compile_time_secs": 0.0,  # small functions too: there are many
    "jax_persistent_cache_min_entry_size_bytes": 0,
}


def compilation_cache(folder: Path | str | None = None) -> Path | None:
    """Let jax keep everything that it compiles in this process from now on, also functions that are not ours.

    The cache is kept in `folder`, or in the usual place if none is given. Returns the folder that is used, or
    None if the cache is off or the usual place cannot be written."""
    import jax

    chosen = settings(folder)
    for name, value in chosen.items():
        jax.config.update(name, value)
    return Path(chosen[_FOLDER]) if chosen else None


def begin() -> None:
    """Switch the cache on in a process of ours, unless JAX_COMPILATION_CACHE_DIR is set. jax reads its
    settings from the environment when it is imported, so they are put there if it is not imported yet."""
    if _FOLDER.upper() not in os.environ:
        if "jax" in sys.modules:
            compilation_cache()
        else:
            for name, value in settings().items():
                os.environ.setdefault(name.upper(), str(value))


def settings(folder: Path | str | None = None) -> Mapping[str, Any]:
    """Return the settings that switch jax's cache on. They are empty if the cache is off, or if the usual
    place cannot be written. A folder that the user chose and that cannot be written is refused."""
    given = str(folder) if folder is not None else os.environ.get(PLACE, "")
    if given == "off":
        return {}
    usual = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "stagewise" / "compiled"
    place = Path(given or usual).expanduser() / _kind_of_machine()
    try:
        place.mkdir(parents=True, exist_ok=True)
        _tidy(place)
    except (OSError, RuntimeError) as error:
        if given:
            raise Refused(
                f"cannot keep compilations in {given}: {getattr(error, 'strerror', None) or error} (set "
                f"{PLACE} to a folder, or to off)"
            ) from error
        return {}
    return {_FOLDER: str(place)} | _LIMITS


def _tidy(place: Path) -> None:
    """Delete entries that a killed process left half written. A whole entry has a second file with the time
    of its last use, which is written after the entry itself."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(place / ".lockfile", timeout=0):  # the lock that jax uses too
            names = set(os.listdir(place))
            for name in names:
                if name.endswith("-cache") and name.removesuffix("-cache") + "-atime" not in names:
                    (place / name).unlink(missing_ok=True)
    except Timeout:  # another process is using the cache and has tidied it
        pass


def _kind_of_machine() -> str:
    """Return a digest of the processor and of jax's versions. Compiled code must not run on another kind of
    processor that shares the cache folder."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        features = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    except OSError:
        features = platform.processor()
    told = f"{platform.machine()} {features} {version('jax')} {version('jaxlib')}"
    return hashlib.sha256(told.encode()).hexdigest()[:12]
