"""A process of our own: the command line, or a worker. A process that only imports us is left as it is."""

from __future__ import annotations

import os

from stagewise import compilation, threads


def begin() -> None:
    """Set what holds for the whole process, before jax is imported; what the user has set stays."""
    threads.one()
    compilation.begin()


def settings() -> dict[str, str]:
    """The environment of a worker on another machine: threads, and what the user has set for the cache; each
    machine finds its own place for that."""
    chosen = {name: os.environ[name] for name in (compilation.PLACE,) if name in os.environ}
    return {name: os.environ.get(name, value) for name, value in threads.ONE.items()} | chosen
