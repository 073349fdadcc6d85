"""Where a result came from: which code, which versions, which machine. Reads source files; imports nothing
heavy."""

from __future__ import annotations

import ast
import hashlib
import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGES = ("jax", "jaxlib", "numpy", "equinox", "diffrax", "optimistix")
"""Whose version may change a number."""

UNUSED_BY_RUNS = ("stagewise.lab", "stagewise.commands", "stagewise.errors", "stagewise.lazy")


@cache
def code_digest(module: str, without: frozenset[str] = frozenset(), format: int = 0) -> str:
    """Digest of a module, of every stagewise module it imports, however indirectly, and of the versions that
    matter.

    Comments and docstrings do not count: a run is stale when what computed it has changed, not how it is
    told. `without` names classes of the module itself that this run does not use; `format` is that of the run
    folder."""
    own = _less(_tree(module), without)
    codes = {name: _whole(name) for name in _reachable(module, own) if name != module} | {module: _code(own)}
    whole = hashlib.sha256(repr([format, *((name, versions()[name]) for name in PACKAGES)]).encode())
    for name in sorted(codes):
        whole.update(name.encode() + codes[name].encode())
    return whole.hexdigest()[:8]


@cache
def versions() -> dict[str, str]:
    found = {}
    for name in ("stagewise", *PACKAGES):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def environment() -> dict[str, Any]:
    """The machine and the versions, for `environment.json`."""
    return {
        "versions": versions(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": os.environ.get("PJRT_NPROC", "default"),
        "commit": _commit(),
    }


def _reachable(module: str, own: ast.Module) -> set[str]:
    found, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name in found or any(name == u or name.startswith(u + ".") for u in UNUSED_BY_RUNS):
            continue
        found.add(name)
        waiting += _imports(name, own) if name == module else _all_imports(name)
    return found


@cache
def _whole(name: str) -> str:
    return _code(_tree(name))


@cache
def _all_imports(name: str) -> set[str]:
    return _imports(name, _tree(name))


@cache
def _tree(name: str) -> ast.Module:
    found = find_spec(name)
    assert found and found.origin, f"{name} has no source"
    return ast.parse(Path(found.origin).read_text())


def _less(tree: ast.Module, without: frozenset[str]) -> ast.Module:
    body = [node for node in tree.body if not (isinstance(node, ast.ClassDef) and node.name in without)]
    return ast.Module(body, tree.type_ignores)


def _imports(name: str, tree: ast.Module) -> set[str]:
    found = find_spec(name)
    package = name if found and found.submodule_search_locations else name.rpartition(".")[0]
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            base = ".".join(part for part in (above, node.module) if part)
            modules |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return {m for m in modules if m.startswith("stagewise.") and _is_module(m)}


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _code(tree: ast.Module) -> str:
    tree = ast.parse(ast.unparse(tree))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            body[:] = [part for part in body if not _is_text(part)]
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(
            (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown"
        )
    except OSError:
        return platform.processor() or "unknown"


@cache
def _commit() -> str:
    here = Path(__file__).parent
    try:
        head = subprocess.run(
            ["git", "-C", here, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5
        )
        dirty = subprocess.run(
            ["git", "-C", here, "status", "--porcelain", "-uno"], capture_output=True, timeout=5
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return head.stdout.strip() + ("+" if dirty.stdout.strip() else "") if head.returncode == 0 else "unknown"
