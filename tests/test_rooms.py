"""Which room imports which. An arrow that is meant goes into ARROWS and docs/architecture.md."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "stagewise"
LIGHT = {"errors", "lazy", "precision", "threads"}  # a few lines each, which every room may use

ARROWS = {
    "compilation": set(),
    "process": {"compilation"},
    "tasks": set(),
    "models": set(),
    "probes": set(),
    "training": set(),
    "lab.spec": {"training"},
    "lab.store": {"lab.spec", "training"},
    "lab.judge": {"lab.spec", "lab.store"},
    "lab.draw": {"lab.spec", "lab.store", "lab.judge"},
    "lab.catalogue": {"lab.spec", "lab.judge", "lab.draw", "papers"},
    "lab.execute": {"lab.catalogue", "lab.spec", "lab.store", "process", "training"},
    "lab.report": {
        "lab.catalogue",
        "lab.draw",
        "lab.execute",
        "lab.judge",
        "lab.spec",
        "lab.store",
        "process",
    },
    "lab.reproduction": {
        "lab.catalogue",
        "lab.draw",
        "lab.execute",
        "lab.judge",
        "lab.report",
        "lab.spec",
        "lab.store",
    },
    "lab.api": {
        "lab.reproduction",
        "lab.catalogue",
        "lab.draw",
        "lab.execute",
        "lab.judge",
        "lab.report",
        "lab.spec",
        "lab.store",
    },
    "lab.serve": {
        "lab.reproduction",
        "lab.catalogue",
        "lab.draw",
        "lab.judge",
        "lab.report",
        "lab.spec",
        "lab.store",
    },
    "papers": {"lab.draw", "lab.judge", "lab.spec", "models", "probes", "tasks", "training"},
    "hub": {"lab.draw", "lab.execute", "lab.store", "models", "probes"},
    "commands": {
        "hub",
        "lab.api",
        "lab.catalogue",
        "lab.draw",
        "lab.execute",
        "lab.judge",
        "lab.report",
        "lab.serve",
        "lab.spec",
        "lab.store",
        "models",
        "process",
        "training",
    },
}


def room_of(module: str) -> str | None:
    """The room of a module, by its dotted name; None for the package itself and for what all may use."""
    parts = module.split(".")[1:]
    if not parts or parts[0] in LIGHT or parts[0].startswith("__"):
        return None
    return ".".join(parts[:2]) if parts[0] == "lab" and len(parts) > 1 else parts[0]


def imported(path: Path) -> set[str]:
    """Every stagewise module that a file imports, at the top or inside a function, types included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] == "stagewise"}


def arrows() -> dict[str, dict[str, set[str]]]:
    """room -> room it imports -> files that do."""
    found: dict[str, dict[str, set[str]]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        module = ".".join(("stagewise", *path.relative_to(SOURCE).with_suffix("").parts))
        room = room_of(module.removesuffix(".__init__"))
        if room is None or room == "lab":
            continue
        for name in imported(path):
            target = room_of(name)
            if target and target not in (room, "lab"):
                found.setdefault(room, {}).setdefault(target, set()).add(str(path.relative_to(SOURCE)))
    return found


def test_rooms_import_only_what_they_may():
    found = arrows()
    print()
    print("\n".join(f"{room:14} -> {', '.join(sorted(targets))}" for room, targets in found.items()))
    new = {
        f"{room} -> {target} ({', '.join(sorted(files))})"
        for room, targets in found.items()
        for target, files in targets.items()
        if target not in ARROWS[room]
    }
    assert not new, f"new arrows between rooms: {sorted(new)}"
    gone = {
        f"{room} -> {target}"
        for room, targets in ARROWS.items()
        for target in targets
        if target not in found.get(room, {})
    }
    assert not gone, f"arrows that are no longer there, take them out of ARROWS: {sorted(gone)}"


def test_no_two_rooms_import_each_other():
    """Over any number of steps; only the catalogue looks into papers, which are found like a user's own."""
    found = {room: set(targets) - {"papers"} for room, targets in arrows().items()}
    for room in found:
        seen, waiting = set(), [room]
        while waiting:
            for target in found.get(waiting.pop(), ()):
                assert target != room, f"{room} imports itself through others"
                if target not in seen:
                    seen.add(target)
                    waiting.append(target)


def test_figures_do_not_import_claims():
    for path in SOURCE.glob("papers/*/figures*"):
        for file in [path] if path.suffix else path.glob("*.py"):
            assert not any(".claims" in name and ".papers." in name for name in imported(file)), file
