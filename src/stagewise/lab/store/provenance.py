"""Where a result came from: which code, which versions, which machine. Reads source files; imports nothing
heavy.

The digest of an experiment's code covers what its runs execute. It covers the modules of stagewise and of the
experiment's own package that the experiment imports, directly or through others; of the experiments in these
modules, only those that the code names. It also covers the versions of all other packages that these modules
import, and of the packages that those require. Comments and docstrings do not count."""

from __future__ import annotations

import ast
import hashlib
import platform
import re
import subprocess
import sys
import sysconfig
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from stagewise import threads
from stagewise.lab.spec.experiment import Experiment

SHOWN = ("stagewise", "jax", "jaxlib", "numpy", "scipy", "equinox", "optax", "diffrax", "optimistix")
"""Packages whose versions are written down beside every run."""

ALWAYS = ("jax", "jaxlib", "numpy")
"""Packages that every run computes with. They always count, since modules may import them only when they are
first used."""

NOT_RUN = ("stagewise.lab", "stagewise.commands")
"""Rooms that plan, store, judge, draw and print. They compute no number of a run, so their code does not
count, except that of `lab/spec`."""


class Unit(NamedTuple):
    """A piece of code: a module without its experiments, or one of its experiments."""

    module: str
    experiment: str = ""


@cache
def code_digest(experiment: type[Experiment], format: int = 0) -> str:
    """Return a digest of the code behind an experiment and of the versions that matter. `format` is the
    format of the run folder."""
    units = units_of(experiment)
    whole = hashlib.sha256(repr([format, sorted(versions_of(units).items())]).encode())
    for unit in sorted(units):
        whole.update(repr(unit).encode() + _piece(unit).code)
    return whole.hexdigest()[:8]


def units_of(experiment: type[Experiment]) -> set[Unit]:
    """Every piece of code that a run of the experiment may execute."""
    own = {experiment.__module__.partition(".")[0], "stagewise"}
    found: set[Unit] = set()
    waiting = [
        unit
        for base in experiment.__mro__
        if base is not object and base.__module__.partition(".")[0] in own
        for unit in (Unit(base.__module__), Unit(base.__module__, base.__name__))
        if not unit.experiment or unit.experiment in _experiments(unit.module)
    ]
    while waiting:
        unit = waiting.pop()
        if unit not in found and not _is_not_run(unit.module):
            found.add(unit)
            waiting += _used_by(unit, frozenset(own))
    return found


def _used_by(unit: Unit, own: frozenset[str]) -> set[Unit]:
    """The pieces that a piece names: modules it imports, and experiments, by import, by name or as an
    attribute of a module."""
    piece = _piece(unit)
    used = {Unit(unit.module, name) for name in piece.names & _experiments(unit.module)}
    for module, name in piece.imports:
        if not _follows(module, own):
            continue
        whole = f"{module}.{name}" if name else module
        if name and _is_module(whole):
            used |= {Unit(whole)} | {Unit(whole, each) for each in piece.attributes & _experiments(whole)}
        elif _is_module(module):
            used.add(Unit(module))
        if name in _experiments(module):
            used.add(Unit(module, name))
    return used


def versions_of(units: set[Unit]) -> dict[str, str]:
    """The versions of all installed packages that some code imports, and of those that they require."""
    own = {unit.module.partition(".")[0] for unit in units}
    tops = {module.partition(".")[0] for unit in units for module, _ in _piece(unit).imports}
    waiting = [name for top in tops - own - sys.stdlib_module_names for name in _distributions(top)]
    waiting += ALWAYS
    found: dict[str, str] = {}
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = _version(name)
            waiting += _required(name)
    return found


def versions() -> dict[str, str]:
    return {name: _version(name) for name in SHOWN}


def environment() -> dict[str, Any]:
    """The machine and the versions, for `environment.json`."""
    return {
        "versions": versions(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": len(threads.cores()),
        "threads": str(threads.of_xla()),
        "commit": _commit(),
    }


def source_of(module: str) -> str:
    """The text of a module."""
    path = _path(module)
    return path.read_text() if path else ""


class Piece(NamedTuple):
    """What matters of a piece of code: a digest of what it does, and what it names."""

    code: bytes
    names: frozenset[str]
    attributes: frozenset[str]
    imports: frozenset[tuple[str, str]]


def _piece(unit: Unit) -> Piece:
    return _pieces(unit.module, _source(unit.module), _experiments(unit.module))[unit.experiment]


@cache
def _source(module: str) -> str:
    return source_of(module)


def forget() -> None:
    """Read sources and versions again from now on: for tests, which change them."""
    code_digest.cache_clear()
    _source.cache_clear()


@cache
def _pieces(module: str, text: str, experiments: frozenset[str]) -> dict[str, Piece]:
    """Return the pieces of a module: each of its experiments under its name, and all other code under the
    empty name."""
    bodies: dict[str, list[ast.stmt]] = {"": [], **{name: [] for name in experiments}}
    for node in ast.parse(text).body:
        name = node.name if isinstance(node, ast.ClassDef) and node.name in experiments else ""
        bodies[name].append(node)
    return {name: _read(module, body) for name, body in bodies.items()}


def _read(module: str, body: list[ast.stmt]) -> Piece:
    """Return a piece of code from its statements, without what does not run: docstrings, and imports for type
    checkers. The statements are walked only once."""
    told: list[str] = []
    names, attributes, imports = set(), set(), set()
    waiting: list[Any] = [body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            parts = [part for part in node if not _is_text(part)]
            told.append(f"[{len(parts)}")
            waiting += parts
        elif not isinstance(node, ast.AST):
            told.append(repr(node))
        elif _is_for_type_checkers(node):
            waiting.append(node.orelse)
        else:
            told.append(type(node).__name__)
            waiting += [getattr(node, field, None) for field in node._fields]
            if isinstance(node, ast.Name):
                names.add(node.id)
            elif isinstance(node, ast.Attribute):
                attributes.add(node.attr)
            elif isinstance(node, ast.Import):
                imports |= {(alias.name, "") for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                base = ".".join(part for part in (_above(module, node.level), node.module) if part)
                imports |= {(base, alias.name) for alias in node.names}
    code = hashlib.sha256("\0".join(told).encode(errors="surrogatepass")).digest()
    return Piece(code, frozenset(names), frozenset(attributes), frozenset(imports))


def _is_text(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_for_type_checkers(node: ast.AST) -> TypeGuard[ast.If]:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _experiments(module: str) -> frozenset[str]:
    """Return the names of the experiments that a module defines. If the module is not imported, its
    experiments are not known, and it counts as one piece."""
    there = list(vars(sys.modules[module]).items()) if module in sys.modules else ()
    return frozenset(
        name
        for name, value in there
        if isinstance(value, type)
        and issubclass(value, Experiment)
        and value is not Experiment
        and value.__module__ == module
    )


@cache
def _path(module: str) -> Path | None:
    """The source file of a module, found without importing it or the packages that it is in."""
    top, *inner = module.split(".")
    try:
        found = find_spec(top)
    except ValueError:  # a script: `__main__`
        script = getattr(sys.modules.get(top), "__file__", None)
        return Path(script) if script and not inner else None
    path = Path(found.origin) if found and found.origin and found.origin.endswith(".py") else None
    folders = list(found.submodule_search_locations or ()) if found else []
    for name in inner:
        places = [Path(folder, name) for folder in folders]
        files = [place / "__init__.py" for place in places] + [Path(f"{place}.py") for place in places]
        path = next((file for file in files if file.is_file()), None)
        folders = [str(place) for place in places if place.is_dir()]
    return path


def _above(module: str, level: int) -> str:
    """The package that a relative import of this level starts from."""
    if not level:
        return ""
    path = _path(module)
    package = module if path and path.name == "__init__.py" else module.rpartition(".")[0]
    return package.rsplit(".", level - 1)[0] if level > 1 else package


def _is_not_run(module: str) -> bool:
    within = [room for room in NOT_RUN if module == room or module.startswith(room + ".")]
    return bool(within) and not module.startswith("stagewise.lab.spec")


@cache
def _follows(module: str, own: frozenset[str]) -> bool:
    """Whether a module counts by its code and not by its version. These are our modules, those of the
    experiment's own package, and those that lie beside it without being installed."""
    if module.partition(".")[0] in own:
        return True
    if module.partition(".")[0] in sys.stdlib_module_names or not _is_module(module):
        return False
    installed = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    return not str(_path(module)).startswith(installed)


def _is_module(name: str) -> bool:
    return _path(name) is not None


@cache
def _distributions(top: str) -> tuple[str, ...]:
    """Return the installed packages that a module comes from: `yaml` comes from PyYAML."""
    try:
        version(top)
        return (_plain(top),)
    except PackageNotFoundError:
        return tuple(map(_plain, _all_distributions().get(top, ())))


@cache
def _all_distributions() -> dict[str, list[str]]:
    return dict(packages_distributions())


@cache
def _required(name: str) -> tuple[str, ...]:
    """Return the installed packages that a package requires; those of its extras are left out."""
    lines = (requires(name) or []) if _version(name) != "not installed" else []
    words = [re.match(r"[\w.-]+", line) for line in lines if "extra ==" not in line]
    return tuple(_plain(word[0]) for word in words if word and _version(word[0]) != "not installed")


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


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
