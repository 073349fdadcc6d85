"""Evidence of several machines: the figures behind two verdicts of a claim, judged as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from stagewise.lab.judge import statistics
from stagewise.lab.judge.bounds import Bounds
from stagewise.lab.judge.verdict import Verdict, all_of

RULES: dict[str, Callable[..., Verdict]] = {
    rule.__name__: rule
    for rule in (
        statistics.share_of_seeds,
        statistics.every_seed,
        statistics.difference_of_shares,
        statistics.median_over_seeds,
        statistics.slope,
        statistics.exactly,
    )
}
Figure = Mapping[str, Any]


def judged_again(figures: Mapping[str, Figure]) -> Verdict | None:
    """The verdict on figures as a ledger keeps them; None if there are none, or of an unknown rule."""
    if not figures or not all(figure.get("rule") in RULES for figure in figures.values()):
        return None
    return all_of(*(_again(name, figure) for name, figure in figures.items()))


def united(old: Mapping[str, Figure], new: Mapping[str, Figure]) -> dict[str, Figure] | None:
    """The figures of both, where a seed that both have counts as the newer has it; None if they do not add
    up: other rules or thresholds, or values that do not say of which seeds they are."""
    if not old or set(old) != set(new):
        return None
    both = {name: _united(old[name], new[name]) for name in new}
    return None if None in both.values() else {name: figure for name, figure in both.items() if figure}


def _united(old: Figure, new: Figure) -> Figure | None:
    if any(old.get(part) != new.get(part) for part in ("rule", "given", "x")):
        return None
    if new["rule"] == "exactly":
        return new
    if new["rule"] == "difference_of_shares":
        rows = [
            _merged(old["seeds"][group], old["values"][group], new["seeds"][group], new["values"][group])
            for group in (0, 1)
        ]
        return _with_rows(new, rows, [seeds for seeds, _ in filter(None, rows)])
    if _is_between(old) or _is_between(new):
        old, new = _between(old), _between(new)
        rows = [_merged(old["seeds"], old["values"][i], new["seeds"], new["values"][i]) for i in (0, 1)]
        return _with_rows(new, rows, rows[0] and rows[0][0])
    merged = _merged(old["seeds"], old["values"], new["seeds"], new["values"])
    return merged and dict(new) | {"seeds": merged[0], "values": merged[1]}


def _with_rows(figure: Figure, rows: list, seeds: Any) -> Figure | None:
    if None in rows:
        return None
    return dict(figure) | {"seeds": seeds, "values": [values for _, values in rows]}


def _merged(old_seeds: list, old_values: list, new_seeds: list, new_values: list) -> Any:
    """Seeds in order, and the value of each; None if some values are of no known seed."""
    if not (len(old_seeds) == len(old_values) > 0 and len(new_seeds) == len(new_values) > 0):
        return None
    by_seed = dict(zip(old_seeds, old_values)) | dict(zip(new_seeds, new_values))
    return sorted(by_seed), [by_seed[seed] for seed in sorted(by_seed)]


def _is_between(figure: Figure) -> bool:
    """Whether values are known within bounds only: then there are two rows, the least and the largest."""
    values = figure["values"]
    rows = figure["rule"] not in ("slope", "difference_of_shares") and isinstance(values, list)
    return bool(rows and values and isinstance(values[0], list))


def _between(figure: Figure) -> Figure:
    return figure if _is_between(figure) else dict(figure) | {"values": [figure["values"], figure["values"]]}


def _again(name: str, figure: Figure) -> Verdict:
    rule, values, given = RULES[figure["rule"]], figure["values"], figure["given"]
    if figure["rule"] == "slope":
        return rule(name, figure["x"], np.array(values), **given)
    if figure["rule"] == "difference_of_shares":
        return rule(name, *values, **given)
    if _is_between(figure):
        return rule(name, Bounds(*(np.array(row) for row in values)), **given)
    return rule(name, values, **given)
