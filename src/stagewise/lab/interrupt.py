"""Requests to stop: Ctrl-C, and SIGTERM as clusters send it.

The exception that a signal raises may get lost in a library's callback, so the request is also remembered, and long work
asks for it between chunks."""

from __future__ import annotations

import signal

_requested = False


def listen() -> None:
    """Take both signals as a request to stop."""
    for sent in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sent, _stop)


def check() -> None:
    """Stop here if a request has come."""
    if _requested:
        raise KeyboardInterrupt


def _stop(*_) -> None:
    global _requested
    _requested = True
    raise KeyboardInterrupt
