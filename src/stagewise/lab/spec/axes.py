"""Values along the axes of a sweep: lists, ranges and log-ranges, typed by the experiment's settings.

1,2,4         these values; the values of a setting that is itself a list are written 1+2+4,2+4
2..8          the whole numbers from 2 to 8
0..1/5        5 values from 0 to 1, evenly spaced
1e-4..1/5log  5 values from 1e-4 to 1, evenly spaced in the logarithm"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from stagewise.errors import Refused, nearest, require
from stagewise.lab.spec.experiment import Experiment
from stagewise.lab.spec.settings import as_float, fits, flatten, hint_of, kind_of, read, typed

_RANGE = re.compile(r"(?P<low>[^,]+?)\.\.(?P<high>[^,/]+?)(/(?P<count>\d+)(?P<log>log)?)?")
MOST_VALUES = 100_000


def parse(path: str, text: str, cls: type[Experiment]) -> tuple[Any, ...]:
    """The values of a setting from words such as `1,2,4` or `1e-4..1e-1/7log`."""
    require(
        bool(text.strip()),
        f"{path} has no values to sweep over (give {path}=1,2,4 or {path}=1e-4..1e-1/7log)",
    )
    hint, match = hint_at(path, cls), _RANGE.fullmatch(text.strip())
    words = _spread(path, **match.groupdict()) if match else [word.strip() for word in text.split(",")]
    require(all(words), f"{path}: {text!r} has an empty value between its commas")
    return checked(path, [read(hint, word) for word in words], cls)


def hint_at(path: Any, cls: type[Experiment]) -> Any:
    """Return the type of a setting; refuse an unknown setting."""
    known = flatten(cls())
    if path not in known:
        raise Refused(f"{cls.name} has no setting {path!r}{nearest(path, known)} (set --over)")
    return hint_of(cls, path)


def checked(path: str, values: Iterable[Any], cls: type[Experiment]) -> tuple[Any, ...]:
    """Return the values of a setting in the setting's type. Refuse a value of another kind, and a value that
    comes twice."""
    require(
        not isinstance(values, (str, Mapping)) and hasattr(values, "__iter__"),
        f"{path} needs a list of values to go over, not {values!r}",
    )
    hint = hint_at(path, cls)
    found = tuple(typed(hint, value) for value in values)
    require(len(found) > 0, f"{path} has no values to sweep over")
    for value in found:
        require(fits(value, hint), f"{cls.name}: {path} takes {kind_of(hint)}, not {value!r}")
    require(
        len(set(map(str, found))) == len(found),
        f"{path}: a value comes twice in {', '.join(map(str, found))}",
    )
    return found


def spread(path: str, low: float, high: float, count: int, log: bool = False) -> tuple[Any, ...]:
    """Return evenly spaced values, the ends included. If both ends are ints, values that are whole numbers
    are ints too."""
    import numpy as np

    require(1 <= count <= MOST_VALUES, f"{path}: a range has between 1 and {MOST_VALUES} values, not {count}")
    require(
        all(math.isfinite(as_float(end)) for end in (low, high)),
        f"{path}: a range has finite ends, and these are not",
    )
    require(
        low < high or (low == high and count == 1), f"{path}: the range from {low:g} to {high:g} is empty"
    )
    require(not log or low > 0, f"{path}: a range in the logarithm needs positive ends, not {low:g}")
    values = np.geomspace(low, high, count) if log else np.linspace(low, high, count)
    values = [float(f"{value:.12g}") for value in values]
    return tuple(
        int(v) if float(v).is_integer() and isinstance(low, int) and isinstance(high, int) else v
        for v in values
    )


def from_toml(path: str, given: Any) -> Any:
    """Return the values of an axis in a TOML file: a list of values, or a table {from, to, count, log}."""
    if isinstance(given, list):
        return given
    require(
        isinstance(given, Mapping)
        and {"from", "to", "count"} <= set(given) <= {"from", "to", "count", "log"},
        f"{path}: an axis is a list of values or a table with from, to, count and log, not {given!r}",
    )
    numbers = all(isinstance(given[name], (int, float)) for name in ("from", "to", "count"))
    require(
        numbers and isinstance(given["count"], int),
        f"{path}: from and to are numbers and count a whole number, not {given!r}",
    )
    require(
        isinstance(given.get("log", False), bool), f"{path}: log is true or false, not {given.get('log')!r}"
    )
    return spread(path, given["from"], given["to"], given["count"], given.get("log", False))


def _spread(path: str, low: str, high: str, count: str | None, log: str | None) -> list[str]:
    ends = []
    for word in (low, high):
        try:
            ends.append(int(word) if re.fullmatch(r"[+-]?\d+", word) else float(word))
        except ValueError:
            require(False, f"{path}: {word!r} is not a number, so {low}..{high} is not a range")
    first, last = ends
    if count is None:
        require(
            isinstance(first, int) and isinstance(last, int),
            f"{path}: how many values from {low} to {high}? (give {path}={low}..{high}/5 or "
            f"{low}..{high}/5log)",
        )
        require(first <= last, f"{path}: the range from {low} to {high} is empty")
        require(last - first < MOST_VALUES, f"{path}: a range has at most {MOST_VALUES} values")
        return [str(value) for value in range(first, last + 1)]
    return [repr(value) for value in spread(path, first, last, int(count), bool(log))]
