"""Values along the axes of a sweep: lists, ranges and log-ranges, typed by the experiment's settings.

1,2,4        these values (of a list setting, 1+2+4,2+4)
2..8         whole numbers
0..1/5       so many values, evenly spaced
1e-4..1/5log the same, evenly spaced in the logarithm"""

from __future__ import annotations

import re
from typing import Any, Mapping

from stagewise.errors import require
from stagewise.lab.experiment import Experiment

_RANGE = re.compile(r"(?P<low>[^,]+?)\.\.(?P<high>[^,/]+?)(/(?P<count>\d+)(?P<log>log)?)?")
MOST_VALUES = 100_000


def parse(path: str, text: str, base: Experiment) -> tuple[Any, ...]:
    """The values of a setting from words such as `1,2,4` or `1e-4..1e-1/7log`."""
    from stagewise.options import parse_settings

    require(bool(text.strip()), f"{path} has no values to sweep over (give {path}=1,2,4 or {path}=1e-4..1e-1/7log)")
    match = _RANGE.fullmatch(text.strip())
    words = _spread(path, **match.groupdict()) if match else [word.strip() for word in text.split(",")]
    require(all(words), f"{path}: {text!r} has an empty value between its commas")
    found = [_at(parse_settings(type(base), base, [f"--{path}", *word.split("+")] if word not in ("True", "False") else [f"--{path}" if word == "True" else _no(path)]), path) for word in words]
    return checked(path, found)


def spread(path: str, low: float, high: float, count: int, log: bool = False) -> tuple[Any, ...]:
    """Evenly spaced values, the ends included; whole numbers where both ends are and the steps are."""
    import numpy as np

    require(1 <= count <= MOST_VALUES, f"{path}: a range has between 1 and {MOST_VALUES} values, not {count}")
    require(low < high or (low == high and count == 1), f"{path}: the range from {low:g} to {high:g} is empty")
    require(not log or low > 0, f"{path}: a range in the logarithm needs positive ends, not {low:g}")
    values = np.geomspace(low, high, count) if log else np.linspace(low, high, count)
    values = [float(f"{value:.12g}") for value in values]
    return tuple(int(v) if float(v).is_integer() and isinstance(low, int) and isinstance(high, int) else v for v in values)


def checked(path: str, values: list[Any] | tuple[Any, ...]) -> tuple[Any, ...]:
    require(len(values) > 0, f"{path} has no values to sweep over")
    require(len(set(map(str, values))) == len(values), f"{path}: a value comes twice in {', '.join(map(str, values))}")
    return tuple(values)


def from_toml(path: str, given: Any) -> tuple[Any, ...]:
    """A list of values, or a table {from, to, count, log}."""
    if isinstance(given, list):
        return checked(path, [tuple(value) if isinstance(value, list) else value for value in given])
    require(isinstance(given, Mapping) and {"from", "to", "count"} <= set(given) <= {"from", "to", "count", "log"},
            f"{path}: an axis is a list of values or a table with from, to, count and log, not {given!r}")  # fmt: skip
    numbers = all(isinstance(given[name], (int, float)) for name in ("from", "to", "count"))
    require(numbers and isinstance(given["count"], int), f"{path}: from and to are numbers and count a whole number, not {given!r}")
    return spread(path, given["from"], given["to"], given["count"], bool(given.get("log")))


def _spread(path: str, low: str, high: str, count: str | None, log: str | None) -> list[str]:
    ends = []
    for word in (low, high):
        try:
            ends.append(int(word) if re.fullmatch(r"[+-]?\d+", word) else float(word))
        except ValueError:
            require(False, f"{path}: {word!r} is not a number, so {low}..{high} is not a range")
    first, last = ends
    if count is None:
        require(isinstance(first, int) and isinstance(last, int), f"{path}: how many values from {low} to {high}? (give {path}={low}..{high}/5 or {low}..{high}/5log)")
        require(first <= last, f"{path}: the range from {low} to {high} is empty")
        require(last - first < MOST_VALUES, f"{path}: a range has at most {MOST_VALUES} values")
        return [str(value) for value in range(first, last + 1)]
    return [repr(value) for value in spread(path, first, last, int(count), bool(log))]


def _no(path: str) -> str:
    head, dot, last = path.rpartition(".")
    return f"--{head}{dot}no_{last}"


def _at(settings: Any, path: str) -> Any:
    for part in path.split("."):
        settings = getattr(settings, part)
    return settings
