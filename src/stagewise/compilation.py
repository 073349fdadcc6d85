"""jax's compilation cache: what was compiled once on this machine is not compiled again.

It is in the user's cache folder, a part for each kind of processor and version of the compiler, and what was
not used for longest goes when it grows beyond a limit. STAGEWISE_COMPILATION_CACHE names another folder, or
is `off`; whoever has given jax a cache of their own (JAX_COMPILATION_CACHE_DIR) keeps it."""

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
    "jax_persistent_cache_min_compile_time_secs": 0.05,  # less is sooner compiled than looked up
    "jax_persistent_cache_min_entry_size_bytes": 0,
}


def compilation_cache(folder: Path | str | None = None) -> Path | None:
    """Keep what jax compiles in this process from now on, the host's own functions too, in a folder or in the
    usual place; None if it is switched off."""
    import jax

    chosen = settings(folder)
    for name, value in chosen.items():
        jax.config.update(name, value)
    return Path(chosen[_FOLDER]) if chosen else None


def begin() -> None:
    """The same for a process of ours, unless its user has chosen for jax, which reads it when imported."""
    if _FOLDER.upper() not in os.environ:
        if "jax" in sys.modules:
            compilation_cache()
        else:
            for name, value in settings().items():
                os.environ.setdefault(name.upper(), str(value))


def settings(folder: Path | str | None = None) -> Mapping[str, Any]:
    """What jax is told; nothing where the cache is off, or nobody chose its place and that cannot be
    written."""
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
    """Drop what a killed process has left half written: each entry is followed by the time of its use."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(place / ".lockfile", timeout=0):  # jax's own
            names = set(os.listdir(place))
            for name in names:
                if name.endswith("-cache") and name.removesuffix("-cache") + "-atime" not in names:
                    (place / name).unlink(missing_ok=True)
    except Timeout:  # others are at work: they have tidied
        pass


def _kind_of_machine() -> str:
    """What compiled code depends on: it must not be run by another processor that shares the folder."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        features = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    except OSError:
        features = platform.processor()
    told = f"{platform.machine()} {features} {version('jax')} {version('jaxlib')}"
    return hashlib.sha256(told.encode()).hexdigest()[:12]
