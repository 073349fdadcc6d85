"""Settings as plain values: flattened, overridden, stored and read back.

A setting is named by its path through nested dataclasses: `learning_rate`, `task.groups`."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import typing
from dataclasses import fields, is_dataclass, replace
from typing import Any, Mapping

from stagewise.errors import Refused, nearest


def flatten(settings: Any, prefix: str = "") -> dict[str, Any]:
    """Every setting by its path."""
    flat = {}
    for field in fields(settings):
        value, path = getattr(settings, field.name), prefix + field.name
        flat |= flatten(value, path + ".") if is_dataclass(value) else {path: value}
    return flat


def override(settings: Any, changes: Mapping[str, Any]) -> Any:
    """The same settings with some paths changed; an unknown path is refused."""
    known = flatten(settings) | {f.name: None for f in fields(settings)}
    for path in changes:
        if path not in known:
            raise Refused(f"{_name(settings)} has no setting {path!r}{nearest(path, known)}")
    nested: dict[str, dict[str, Any]] = {}
    direct: dict[str, Any] = {}
    for path, value in changes.items():
        head, _, rest = path.partition(".")
        if rest:
            nested.setdefault(head, {})[rest] = value
        else:
            direct[path] = value
    for head, inner in nested.items():
        direct[head] = override(direct.get(head, getattr(settings, head)), inner)
    return replace(settings, **direct)


def to_json(settings: Any) -> dict[str, Any]:
    """Nested plain values, ready for a file."""
    return json.loads(json.dumps(dataclasses.asdict(settings)))


def from_json(cls: type, stored: Mapping[str, Any]) -> Any:
    """The settings that `to_json` wrote; a field that the class does not have is refused."""
    hints = typing.get_type_hints(cls)
    known = {field.name for field in fields(cls)}
    for name in stored:
        if name not in known:
            raise Refused(f"{cls.__name__} has no setting {name!r}{nearest(name, known)}")
    values = {}
    for name, value in stored.items():
        hint = hints[name]
        values[name] = from_json(hint, value) if is_dataclass(hint) else _tuples(value)
    return cls(**values)


def digest(settings: Mapping[str, Any]) -> str:
    """A short name for a set of settings, the same on every machine."""
    canonical = json.dumps(settings, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def _tuples(value):
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _name(settings: Any) -> str:
    return getattr(settings, "name", type(settings).__name__)
