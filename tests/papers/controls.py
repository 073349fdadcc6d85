"""Controls that could not fool their claim: whose runs are those of the claim itself, and whose reading only
multiplies, negates, exchanges or shifts what the claim measured."""

from __future__ import annotations

import numpy as np

from stagewise.lab.judge.claims import Claim
from stagewise.lab.judge.ledger import Entry, experiments_of, missing, next_preset

TURNED = ("exchang", "mixed", "revers", "turned")  # flags that say so themselves


def by_its_needs(claim: Claim, exact: bool) -> str:
    """What a control does to the needs of its claim, if that is arithmetic; else nothing."""
    preset = "quick" if not missing(claim.needs_at("quick")) else next_preset(claim, "quick")
    own, others = (set(experiments_of(claim.needs_at(preset, control))) for control in (False, True))
    if not others <= own:
        return ""
    for name, value in claim.control.items():
        before = claim.needs[name]
        if isinstance(before, bool):
            if name.startswith(TURNED):
                return f"{name} turned round"
        elif isinstance(before, float):
            if not exact or value == -before:
                return f"{name} {before:g} is {value:g}"
        elif not isinstance(before, int) and any(
            value == other for each, other in claim.needs.items() if each != name
        ):
            return f"{name} is another part of the claim"
    return ""


def by_its_figures(entry: Entry) -> str:
    """Whether what a control measured is a straight line of what its claim did, or of one over it."""
    for name, figure in entry.verdict.figures.items():
        other = entry.control.figures.get(name)
        if other and figure["rule"] == other["rule"] == "median_over_seeds":
            x, y = (np.array(each["values"], float) for each in (figure, other))
            if x.ndim == 1 and x.shape == y.shape and len(set(x)) > 3 and not np.array_equal(x, y):
                if _is_straight(x, y) or (np.all(x != 0) and _is_straight(1 / x, y)):
                    return f"{name} is a straight line of itself"
    return ""


def _is_straight(x: np.ndarray, y: np.ndarray) -> bool:
    if not (np.isfinite(x).all() and np.isfinite(y).all()) or np.ptp(y) == 0:
        return False
    slope, offset = np.polyfit(x, y, 1)
    return bool(np.max(abs(slope * x + offset - y)) < 1e-4 * np.ptp(y))
