"""The help text of each setting: the comment beside it, or above it, in the class that declares it."""

from __future__ import annotations

import ast
import inspect
import textwrap
import tokenize
from dataclasses import fields, is_dataclass
from functools import cache
from io import StringIO


@cache
def words_on(cls: type) -> dict[str, str]:
    """Return the help text of each setting of a dataclass, and of the dataclasses within it, by path. A class
    that declares a setting of its base anew, without a comment, keeps the comment of the base."""
    found: dict[str, str] = {}
    own = [_comments(base) for base in cls.__mro__ if is_dataclass(base)]
    for field in fields(cls):
        found[field.name] = next((said[field.name] for said in own if said.get(field.name)), "")
        if is_dataclass(field.default):
            inner = words_on(type(field.default))
            found |= {f"{field.name}.{path}": said for path, said in inner.items()}
    return found


def _comments(cls: type) -> dict[str, str]:
    """Return for each field the comment on its lines, or else the comment on the lines just above it."""
    try:
        text = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):  # the class was typed into a session that keeps no source
        return {}
    beside: dict[int, str] = {}
    alone: dict[int, str] = {}
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            there = alone if token.line.strip().startswith("#") else beside
            there[token.start[0]] = token.string.lstrip("# ")
    found = {}
    for node in ast.parse(text).body[0].body:  # type: ignore[attr-defined]
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            last = node.end_lineno or node.lineno
            said = [beside[line] for line in range(node.lineno, last + 1) if line in beside]
            line = node.lineno - 1
            while not said and line in alone:
                line -= 1
            above = [alone[each] for each in range(line + 1, node.lineno)] if not said else []
            found[node.target.id] = " ".join(said or above)
    return found
