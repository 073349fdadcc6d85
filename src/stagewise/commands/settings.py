"""Settings of an experiment from command-line options, typed by its dataclass."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from stagewise.errors import Refused, nearest


def print_settings(cls, default) -> None:
    """The settings of an experiment: for each its kind or legal values, a word on it, and its value."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from stagewise.lab.spec.experiment import PRESETS, at_preset
    from stagewise.lab.spec.settings import flatten, hint_of, kind_of
    from stagewise.lab.spec.words import words_on

    words, console = words_on(cls), Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    console.print(" ".join((cls.__doc__ or "").split()) + "\n", markup=False)
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    for path, value in flatten(default).items():
        shown = "+".join(map(str, value)) if isinstance(value, tuple) else str(value)
        said = f"{words[path]} " if words[path] else ""
        told = f"{said}({kind_of(hint_of(cls, path))}; {shown or 'none'})"
        table.add_row(f"  --{path}", Text(told))
    console.print("settings, with what they take and what they are at this preset", markup=False)
    console.print(table)
    for preset in PRESETS:
        changes = at_preset(cls.presets, preset)
        told = ", ".join(f"{path} {value}" for path, value in changes.items()) or "as declared"
        console.print(f"preset {preset}: {told}", markup=False)


def parse_settings(cls, default, arguments: list[str]):
    """Settings from options, typed by the dataclass. The first wrong option is named in one sentence."""
    from stagewise.lab.spec.settings import override

    changes: dict[str, Any] = {}
    for option, words in _options(cls, arguments):
        path, value = _setting(cls, default, option, words)
        changes[path] = value
    return override(default, changes)


def _options(cls, arguments: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Each option with the words after it."""
    if arguments and not arguments[0].startswith("--"):
        raise Refused(f"{cls.name}: {arguments[0]!r} is not an option (settings are given as --name value)")
    starts = [i for i, word in enumerate(arguments) if word.startswith("--")] + [len(arguments)]
    for begin, end in zip(starts, starts[1:]):
        option, equals, value = arguments[begin].partition("=")
        yield option, ([value] if equals else []) + arguments[begin + 1 : end]


def _setting(cls, default, option: str, words: list[str]) -> tuple[str, Any]:
    """The path and the value that an option stands for; --no_x is --x False."""
    from stagewise.lab.spec.settings import fits, flatten, hint_of, kind_of, read, typed, words_of

    known = flatten(default)
    path = option.removeprefix("--").replace("-", "_")
    within, dot, last = path.rpartition(".")
    if path not in known and last.startswith("no_") and (plain := within + dot + last[3:]) in known:
        if isinstance(known[plain], bool) and not words:
            path, words = plain, ["False"]
    if path not in known:
        close = nearest(path, [f"--{each}" for each in known])
        raise Refused(f"{cls.name} has no setting {option}{close} (see stagewise run {cls.name} --help)")
    hint = hint_of(cls, path)
    if hint is bool and not words:
        words = ["True"]
    several = isinstance(known[path], tuple)
    value = read(hint, "+".join(words)) if several or len(words) == 1 else None
    value = typed(hint, value)
    if not fits(value, hint) or (not several and len(words) != 1):
        given = " ".join(words) or "nothing"
        raise Refused(
            f"{cls.name}: {option} takes {kind_of(hint)}, not {given}{nearest(given, words_of(hint))}"
        )
    return path, value
