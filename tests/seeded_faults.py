"""Does `make test` protect? Small faults, one at a time, at random places of the numerical rooms.

    python -m tests.seeded_faults CLONE --count 20 --seed 0 --out faults.json

CLONE is a clone of the project with its `.venv`, which is changed and put back. Each fault is a sign, an
index, a dropped term or a wrong key; the tests for every day are run on it, and with --rest, where they find
nothing, all others. A line tells each as it is done."""

from __future__ import annotations

import argparse
import ast
import json
import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOMS = ("tasks", "models", "training", "probes", "papers")
NOT_NUMBERS = (
    "__init__",
    "claims",
    "figures",
    "story",
    "experiments",
    "studies",
    "readings",
    "sizes",
    "exchange",
)
TINY = "tests/lab/test_tiny_runs.py"
KEYS = {"INITIAL": "DATA", "DATA": "EVALUATION", "EVALUATION": "INITIAL"}


@dataclass(frozen=True)
class Fault:
    """One changed expression: where, what it was, and what it is."""

    file: str
    line: int
    kind: str
    before: str
    after: str
    text: str  # of the whole file with the fault


def faults_of(path: Path, root: Path) -> list[Fault]:
    """Every fault that can be seeded in a file."""
    source = path.read_text()
    tree = ast.parse(source)
    found = []
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        if function.name.startswith("__") or function.name.startswith("check"):
            continue
        for node in [inner for statement in function.body for inner in _numbers(statement)]:
            for kind, after in _changes(node):
                text = _with(source, node, after)
                before = ast.get_source_segment(source, node) or ""
                found.append(Fault(str(path.relative_to(root)), node.lineno, kind, before, after, text))
    return found


def _numbers(node: ast.AST):
    """Expressions that compute; not annotations, messages and checks."""
    if isinstance(node, (ast.Raise, ast.JoinedStr, ast.FunctionDef, ast.ClassDef)):
        return
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "require":
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns"):
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, ast.AST):
                    yield from _numbers(inner)


def _changes(node: ast.AST):
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        other = "-" if isinstance(node.op, ast.Add) else "+"
        yield "sign", f"({ast.unparse(node.left)}) {other} ({ast.unparse(node.right)})"
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
        if not isinstance(node.left, (ast.Constant, ast.List, ast.Tuple)):
            yield "dropped term", f"({ast.unparse(node.left)})"
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and not isinstance(node.operand, ast.Constant)
    ):
        yield "sign", f"({ast.unparse(node.operand)})"
    if (
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, int)
    ):
        index = node.slice.value
        yield "index", f"{ast.unparse(node.value)}[{index - 1 if index else 1}]"
    if isinstance(node, ast.Name) and node.id in KEYS:
        yield "wrong key", KEYS[node.id]


def _with(source: str, node: ast.AST, after: str) -> str:
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    begin, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
    whole = source.encode()
    return (whole[:begin] + b"(" + after.encode() + b")" + whole[end:]).decode()


def chosen(root: Path, count: int, seed: int) -> list[Fault]:
    """Random faults, each in a function of its own: first a room, then a file, then a place."""
    rng, found = random.Random(seed), []
    files = [
        path
        for room in ROOMS
        for path in sorted((root / "src" / "stagewise" / room).rglob("*.py"))
        if not any(part.split(".")[0] in NOT_NUMBERS for part in path.parts)
    ]
    while len(found) < count:
        options = faults_of(rng.choice(files), root)
        kinds = sorted({fault.kind for fault in options})
        if kinds:
            kind = rng.choice(kinds)
            found.append(rng.choice([fault for fault in options if fault.kind == kind]))
    return found


def every_day(clone: Path, fault: Fault, near_only: bool) -> str:
    """What finds a fault every day. The likeliest tests come first, since the order does not matter."""
    room, *inner = Path(fault.file).parts[2:]
    near = [f"tests/papers/{inner[0]}", "-k", "not claims"] if room == "papers" else [f"tests/{room}"]
    paper = [TINY, "-k", inner[0]] if room == "papers" else [TINY]
    return finds(clone, *near) or finds(clone, *paper) or ("" if near_only else finds(clone))


def finds(clone: Path, *which: str) -> str:
    """The first test that fails, or nothing."""
    words = [clone / ".venv/bin/python", "-m", "pytest", "-n", "2", "-x", "-q", *which]
    done = subprocess.run(words, cwd=clone, capture_output=True, text=True)
    failed = [
        line.split(" - ")[0] for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))
    ]
    return failed[0] if failed else ("" if done.returncode == 0 else f"exit code {done.returncode}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("clone", type=Path)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--skip", type=int, default=0, help="so many that are known already")
    parser.add_argument("--near", action="store_true", help="only the likeliest of the tests for every day")
    parser.add_argument("--rest", action="store_true", help="run all other tests where those find nothing")
    parser.add_argument("--out", type=Path, default=Path("faults.json"))
    options = parser.parse_args()
    told = []
    for fault in chosen(options.clone, options.count, options.seed)[options.skip :]:
        path = options.clone / fault.file
        right = path.read_text()
        path.write_text(fault.text)
        try:
            by = {"every day": every_day(options.clone, fault, options.near)}
            if options.rest and not by["every day"]:
                by["all others"] = finds(options.clone, "-m", "slow")
        finally:
            path.write_text(right)
        told.append(
            {
                "file": fault.file,
                "line": fault.line,
                "kind": fault.kind,
                "before": fault.before,
                "after": fault.after,
                "found by": by,
            }
        )
        options.out.write_text(json.dumps(told, indent=1))
        print(
            f"{fault.file}:{fault.line} {fault.kind}: {fault.before!r} -> {fault.after!r}: {by}", flush=True
        )


if __name__ == "__main__":
    main()
