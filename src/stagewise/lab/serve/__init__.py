"""A web page on a folder of runs: what runs now, what is finished, runs side by side, and the figures that
can be drawn. It only reads."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from stagewise.errors import Refused, require
from stagewise.lab.serve.app import app


def serve(root: Path, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve until interrupted; `ready` is called with the address once the server answers."""
    require(0 <= port <= 65535, f"a port lies between 0 and 65535, not {port} (set --port)")
    listening = _listen(host, port)
    name = f"[{host}]" if ":" in host else host
    ready(f"http://{name}:{listening.getsockname()[1]}/")
    config = uvicorn.Config(
        app(root, only_here=is_loopback(host)), log_level="error", lifespan="off", server_header=False
    )
    try:
        asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))
    finally:
        listening.close()


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(128)
    except OSError as error:
        raise Refused(
            f"cannot listen on {host}, port {port}: {error.strerror or error} (set --host or --port)"
        ) from error
    return found
