"""At which steps a run is recorded."""

from __future__ import annotations

import numpy as np

from stagewise.errors import require


def schedule(
    steps: int, *, evenly: int = 0, log_spaced: int = 0, dense: tuple[int, int, int] | None = None
) -> tuple[int, ...]:
    """Return the steps to record, from 0 to `steps`: evenly spaced, log-spaced, and with `dense` = (start,
    stop, stride) every `stride` steps from start to stop.

    The three may be combined; the first and the last step are always there."""
    require(steps >= 0, f"steps must not be negative, not {steps} (set --steps)")
    chosen = {0, steps}
    if evenly:
        chosen.update(np.linspace(0, steps, evenly + 1).round().astype(int).tolist())
    if log_spaced and steps:
        chosen.update(np.geomspace(1, steps, log_spaced).round().astype(int).tolist())
    if dense:
        start, stop, stride = dense
        chosen.update(range(start, min(stop, steps) + 1, stride))
    return tuple(sorted(step for step in chosen if 0 <= step <= steps))
