"""Quantities of the paper, read off a recorded trajectory."""

from __future__ import annotations

import math

import numpy as np

from stagewise.lab.judge.bounds import Bounds, censored
from stagewise.lab.spec.settings import setting
from stagewise.lazy import xr
from stagewise.papers.mixture import appendix_b
from stagewise.probes.crossing import first_above, first_below
from stagewise.tasks.mixture import Mixture

HALF_LEARNED = math.log(2) / 2  # half of the loss of knowing nothing
ONSET = 0.5  # the score at which attention has clearly begun to choose
TWO_GROUPS = Mixture()  # the setting of the paper's theory

# Lemma E.5 for the + head, rows and columns c1, c2, v1, v2. In `key_self`, v with v as meant, not as printed.
_UP = np.array([[1.0, -1.0], [-1.0, 1.0]])
SIGNS = {
    "scores": np.block([[_UP, _UP], [-_UP, -_UP]]),
    "query_self": np.block([[_UP, _UP], [_UP, _UP]]),
    "key_self": np.block([[_UP, -_UP], [-_UP, _UP]]),
}
STATE = ("neurons", "scores", "key_self", "query_self")


def time_to_learn(joint: xr.Dataset, kind: str) -> xr.DataArray:
    """Step at which the loss of a kind of sample has fallen to half of log 2."""
    return first_below(joint.loss.sel(kind=kind), HALF_LEARNED)


def steps_to_learn(joint: xr.Dataset, kind: str) -> Bounds:
    """The same as a bound where the run ended before: it took more steps than there were. Of a seed that
    diverged nothing is known."""
    found = censored(time_to_learn(joint, kind), above=float(joint.step.values[-1]))
    known = (joint.diverged_at < 0) | ~found.open
    return Bounds(found.low.where(known, -np.inf), found.high)


def score(trajectory: xr.Dataset, key: str, query: str, head: str = "+") -> xr.DataArray:
    """key^T W_K^T W_Q query, over records."""
    return trajectory.scores.sel(head=head, key=key, query=query, drop=True)


def onset(joint: xr.Dataset) -> xr.DataArray:
    """Step at which the query v1 has begun to look for the key c1."""
    return first_above(score(joint, "c1", "v1"), ONSET)


def score_error(finite: xr.Dataset, infinite: xr.Dataset) -> xr.DataArray:
    """The largest difference of any score at any time from the infinite-width run."""
    return abs(finite.scores - infinite.scores.isel(seed=0, drop=True)).max(
        ["record", "head", "key", "query"]
    )


def learned(joint: xr.Dataset, loss: float) -> xr.DataArray:
    """Whether a seed ends with every sample right and a loss below the threshold."""
    end = joint.isel(record=-1)
    return (end.accuracy > 1 - 1e-9) & (end.loss.sel(kind="all") < loss)


def ended_by_event(stages: xr.Dataset) -> xr.DataArray:
    """Whether every stage of a flow ended by its event, by seed."""
    return (stages.outcome == 0).all("stages")


def duration(stages: xr.Dataset, stage: str) -> xr.DataArray:
    """How long a stage lasted; NaN where it did not end by its event."""
    lasted = (
        stages.ended.diff("stages").sel(stages=stage) if stage != "1.1" else stages.ended.sel(stages=stage)
    )
    return lasted.where(stages.outcome.sel(stages=stage) == 0)


def whole(stages: xr.Dataset, stage: str) -> xr.Dataset:
    """All records of a stage, its ends included."""
    return stages.isel(record=np.flatnonzero(stages.stage.values == stage))


def during(stages: xr.Dataset, stage: str) -> xr.Dataset:
    """The records inside a stage of a single run, a millionth of its length away from the ends, where ReLUs
    switch."""
    inside = np.flatnonzero(stages.stage.values == stage)
    time = stages.time.isel(seed=0).values[inside]
    margin = 1e-6 * (time[-1] - time[0])
    return stages.isel(record=inside[(time > time[0] + margin) & (time < time[-1] - margin)])


def at_end_of(stages: xr.Dataset, stage: str) -> xr.Dataset:
    """The last record of a stage."""
    return whole(stages, stage).isel(record=-1)


def respond(trajectory: xr.Dataset) -> appendix_b.Response:
    """Attention, outputs and errors on every sample of the two-group task, at every record."""
    return appendix_b.respond(
        TWO_GROUPS, trajectory.neurons.values, trajectory.scores.values, setting(trajectory, "bias")
    )


def velocity(trajectory: xr.Dataset, kind: str = "all") -> dict[str, np.ndarray]:
    """Gradient flow at every record, on a kind of sample of the two-group task."""
    neurons, scores, key_self, query_self = (trajectory[name].values for name in STATE)
    return appendix_b.velocity(
        TWO_GROUPS, neurons, scores, key_self, query_self, setting(trajectory, "bias"), kind
    )


def attention(trajectory: xr.Dataset, tokens: list[str], head: str = "+") -> xr.DataArray:
    """Attention of one head on a sequence of tokens such as ["c1", "v1", "-v2"], with dimensions at and to.

    `at` is the token that asks (the query), `to` the token it looks at (the key)."""
    names = [token.lstrip("-") for token in tokens]
    sign = np.array([-1.0 if token.startswith("-") else 1.0 for token in tokens])
    signs = xr.DataArray(np.outer(sign, sign), dims=("to", "at"), coords={"to": tokens, "at": tokens})
    key, query = xr.DataArray(names, dims="to"), xr.DataArray(names, dims="at")
    pairs = (
        trajectory.scores.sel(head=head, drop=True).sel(key=key, query=query).drop_vars(["key", "query"])
        * signs
    )
    raised = np.exp(pairs - pairs.max("to"))
    return raised / raised.sum("to")
