"""A process of our own: the command line, or a worker. A process that only imports us is left as it is."""

from __future__ import annotations

import gc
import os

from stagewise import compilation, threads

# Python looks for garbage after so many new objects. Tracing makes millions that live on, so its usual 700
# costs several seconds in every hundred.
OBJECTS = 100_000


def begin() -> None:
    """Set the number of threads and the compilation cache of this process. Call it before jax is imported;
    environment variables that the user has set are kept."""
    threads.one()
    compilation.begin()
    gc.set_threshold(OBJECTS, 20, 100)


def settings() -> dict[str, str]:
    """Return the environment variables for a worker on another machine: the numbers of threads, and the
    user's STAGEWISE_COMPILATION_CACHE if it is set. Without it each machine uses its own usual place for the
    cache."""
    chosen = {name: os.environ[name] for name in (compilation.PLACE,) if name in os.environ}
    return {name: os.environ.get(name, value) for name, value in threads.ONE.items()} | chosen
