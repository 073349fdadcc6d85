"""Settings as plain values: flattened, overridden, stored and read back.

A setting is named by its path through nested dataclasses: `learning_rate`, `task.groups`."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
import typing
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

from stagewise.errors import Refused, nearest

WHICH_SEEDS = ("seeds", "first_seed")
"""Settings that say which seeds are run. They do not change what any one seed gives."""


def flatten(settings: Any, prefix: str = "") -> dict[str, Any]:
    """Every setting by its path."""
    flat = {}
    for field in fields(settings):
        value, path = getattr(settings, field.name), prefix + field.name
        flat |= flatten(value, path + ".") if is_dataclass(value) else {path: value}
    return flat


def changed(settings: Any) -> dict[str, Any]:
    """Return the settings that differ from their defaults, by path. Settings that say which seeds are run are
    left out."""
    default = flatten(type(settings)())
    return {
        path: value
        for path, value in flatten(settings).items()
        if value != default[path] and path not in WHICH_SEEDS
    }


def by_path(nested: Mapping[str, Any], separator: str = ".", prefix: str = "") -> dict[str, Any]:
    """Return the values of nested tables, such as stored settings, by their paths."""
    flat: dict[str, Any] = {}
    for name, value in nested.items():
        path = prefix + name
        inner = isinstance(value, dict)
        flat |= by_path(value, separator, path + separator) if inner else {path: value}
    return flat


def override(settings: Any, changes: Mapping[str, Any]) -> Any:
    """Return the same settings with the values at some paths changed; refuse an unknown path."""
    known = flatten(settings)
    for path in changes:
        if path not in known and path not in (whole := [field.name for field in fields(settings)]):
            raise Refused(f"{_name(settings)} has no setting {path!r}{nearest(path, [*known, *whole])}")
    try:
        return _overridden(settings, changes)
    except Refused as refusal:
        raise Refused(with_whole_options(str(refusal), known)) from refusal


def _overridden(settings: Any, changes: Mapping[str, Any]) -> Any:
    nested: dict[str, dict[str, Any]] = {}
    direct: dict[str, Any] = {}
    for path, value in changes.items():
        head, _, rest = path.partition(".")
        if rest:
            nested.setdefault(head, {})[rest] = value
        else:
            direct[path] = value
    for head, inner in nested.items():
        direct[head] = _overridden(direct.get(head, getattr(settings, head)), inner)
    return replace(settings, **direct)


def with_whole_options(message: str, known: Iterable[str]) -> str:
    """Return the message of a refusal with its options as the user types them. A part, such as an action,
    does not know which settings it belongs to, so its message says --group where the option is
    --task.action.group."""

    def whole(option: re.Match) -> str:
        said = option[1]
        for name in (said, said.partition(".")[2]):
            found = [path for path in known if path == name] or [
                path for path in known if name and path.endswith("." + name)
            ]
            if len(found) == 1:
                return "--" + found[0]
        return option[0]

    return re.sub(r"--([a-z_]\w*(?:\.\w+)*)", whole, message)


@cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def check_kinds(settings: Any, name: str, within: str = "") -> None:
    """Refuse a setting whose value is not of its kind: a word that is none of its choices, or no number where
    a number is needed."""
    hints = _hints(type(settings))
    for field in fields(settings):
        value, hint = getattr(settings, field.name), hints[field.name]
        if not fits(value, hint):
            raise Refused(
                f"{name}: {within}{field.name} must be {kind_of(hint)}, not "
                f"{value!r}{nearest(str(value), words_of(hint))} (set --{within}{field.name})"
            )
        if is_dataclass(value):
            check_kinds(value, name, f"{within}{field.name}.")


def check_ranges(settings: Any, **ranges: tuple[float, float]) -> None:
    """Refuse a number outside of its range; both ends are inside."""
    for name, (low, high) in ranges.items():
        value = getattr(settings, name)
        if not low <= value <= high:
            raise Refused(
                f"{settings.name}: {name} must lie between {low:g} and {high:g}, not {value:g} (set --{name})"
            )


def check_used(settings: Any, name: str, used: bool, where: str) -> None:
    """Refuse a setting that was changed and would be ignored; `where` says what must be set for it to
    count."""
    value, usual = getattr(settings, name), type(settings).__dataclass_fields__[name].default
    if not used and value != usual:
        raise Refused(
            f"{_name(settings)}: {name} {value} would be ignored: it counts with {where} (leave --{name})"
        )


def hint_of(cls: type, path: str) -> Any:
    """The type of a setting."""
    for part in path.split("."):
        cls = _hints(cls)[part]
    return cls


def typed(hint: Any, value: Any) -> Any:
    """Return a value in the type of its setting: a whole number becomes a float where the setting is a float,
    a list becomes a tuple, and numpy's values become plain ones."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if typing.get_origin(hint) is tuple and isinstance(value, (list, tuple)):
        return tuple(typed(typing.get_args(hint)[0], each) for each in value)
    if (
        isinstance(value, int)
        and not isinstance(value, bool)
        and not _fits_closely(value, hint)
        and fits(as_float(value), hint)
    ):
        return as_float(value)
    return value


def as_float(value: float) -> float:
    """Return a number as a float. A whole number that is too large for a float becomes infinite, and is
    refused later because it is not finite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _fits_closely(value: Any, hint: Any) -> bool:
    """Whether a value is of its kind without being turned into a float."""
    return any(part is int or value in words_of(part) for part in (typing.get_args(hint) or (hint,)))


def read(hint: Any, word: str) -> Any:
    """Return the value that a word stands for, or the word itself if it is not of the setting's kind. Lists
    are written 1+2+4."""
    if typing.get_origin(hint) is tuple:
        return tuple(read(typing.get_args(hint)[0], each) for each in word.split("+") if word)
    if word in words_of(hint) or word == "None" and type(None) in typing.get_args(hint):
        return None if word == "None" and "None" not in words_of(hint) else word
    for kind in (int, float, bool):
        if kind in (typing.get_args(hint) or (hint,)):
            try:
                return {int: _whole, float: float, bool: _truth}[kind](word)
            except (ValueError, KeyError, OverflowError):
                pass
    return word


def _whole(word: str) -> int:
    """Read a whole number, which may be written as 1e3."""
    try:
        return int(word)
    except ValueError:
        number = float(word)
        if int(number) != number:
            raise
        return int(number)


def _truth(word: str) -> bool:
    return {"true": True, "false": False}[word.lower()]


def kind_of(hint: Any) -> str:
    """What a setting takes, in words."""
    if typing.get_origin(hint) is tuple:
        return f"a list, each {kind_of(typing.get_args(hint)[0])}"
    plain = {int: "a whole number", float: "a finite number", bool: "True or False", str: "a word"}
    kinds = [plain[part] for part in (typing.get_args(hint) or (hint,)) if part in plain]
    words = [*words_of(hint)] + (["None"] if type(None) in typing.get_args(hint) else [])
    if words:
        kinds.append(f"one of {', '.join(words)}" if len(words) > 1 else words[0])
    return " or ".join(kinds) or str(hint)


def fits(value: Any, hint: Any) -> bool:
    if typing.get_origin(hint) is typing.Literal:
        return value in typing.get_args(hint)
    if typing.get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(fits(each, typing.get_args(hint)[0]) for each in value)
    if typing.get_args(hint):
        return any(fits(value, part) for part in typing.get_args(hint))
    if hint is float:
        return (
            isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(as_float(value))
        )
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def words_of(hint: Any) -> tuple[str, ...]:
    """Return the words that a setting must be one of; empty if its values are not words to choose from."""
    if typing.get_origin(hint) is typing.Literal:
        return typing.get_args(hint)
    if typing.get_origin(hint) is tuple:
        return ()
    return tuple(word for part in typing.get_args(hint) for word in words_of(part))


def to_json(settings: Any) -> dict[str, Any]:
    """Nested plain values, ready for a file."""
    return json.loads(json.dumps(dataclasses.asdict(settings)))


def from_json(cls: type, stored: Mapping[str, Any]) -> Any:
    """Read the settings that `to_json` wrote. Refuse a setting that the class does not have, and a value of
    the wrong kind.

    If the class has `renamed`, it gives the new names of settings that were stored under old names. If it has
    `never_counted`, the settings of parts that it names are left out: they were stored once and changed
    nothing."""
    hints, renamed = _hints(cls), getattr(cls, "renamed", {})
    if not isinstance(stored, Mapping):
        raise Refused(f"{cls.__name__} cannot be {stored!r}")
    stored = {renamed.get(name, name): value for name, value in stored.items()}
    for path in getattr(cls, "never_counted", ()):
        part, _, name = path.partition(".")
        if isinstance(stored.get(part), dict):
            stored[part] = {each: value for each, value in stored[part].items() if each != name}
    known = {field.name for field in fields(cls)}
    for name in stored:
        if name not in known:
            raise Refused(f"{cls.__name__} has no setting {name!r}{nearest(name, known)}")
    values = {}
    for name, value in stored.items():
        hint = hints[name]
        inner = isinstance(hint, type) and is_dataclass(hint)
        values[name] = from_json(hint, value) if inner else _tuples(value)
    try:
        return cls(**values)
    except (TypeError, AttributeError) as error:  # for instance a word that is compared with a number
        raise Refused(f"{cls.__name__} cannot be made of {values}: {error}") from error


def which(first: int, last: int) -> dict[str, int]:
    """Return the settings that ask for the seeds first, …, last - 1."""
    return {"seeds": last - first, "first_seed": first}


def digest(value: Any) -> str:
    """A short name for plain values, such as settings, the same on every machine."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def _tuples(value):
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _name(settings: Any) -> str:
    return getattr(settings, "name", type(settings).__name__)


def setting(trajectory: Any, path: str) -> Any:
    """Return a setting of the run behind a trajectory, such as `task.samples`. The dataset of a study has
    only one value of it, so all cells must share the setting."""
    value = json.loads(trajectory.attrs["settings"])
    for part in path.split("."):
        value = value[part]
    return value
