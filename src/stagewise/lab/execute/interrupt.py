"""Requests to stop: Ctrl-C, and SIGTERM as clusters send it.

The exception that a signal raises may get lost in a library's callback, so the request is also remembered,
and long work asks for it between chunks."""

from __future__ import annotations

import signal
import sys

_requested = False


def listen() -> None:
    """Take both signals as requests to stop. If the exception of one is lost in a callback, it is not shown
    there as an error."""
    for sent in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sent, _stop)
    sys.unraisablehook = _unless_requested(sys.unraisablehook)


def check() -> None:
    """Stop here if a request has come."""
    if _requested:
        raise KeyboardInterrupt


def _stop(*_) -> None:
    global _requested
    _requested = True
    raise KeyboardInterrupt


def _unless_requested(show):
    def hook(lost) -> None:
        if not (_requested and lost.exc_type is KeyboardInterrupt):
            show(lost)

    return hook
