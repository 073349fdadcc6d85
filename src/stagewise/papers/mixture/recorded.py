"""Quantities of the paper, read off a recorded trajectory."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from stagewise.probes.crossing import first_above, first_below
from stagewise.tasks.mixture import Mixture

HALF_LEARNED = math.log(2) / 2  # half of the loss of knowing nothing
ONSET = 0.5  # the score at which attention has clearly begun to choose


def time_to_learn(joint: xr.Dataset, kind: str) -> xr.DataArray:
    """Step at which the loss of a kind of sample has fallen to half of log 2."""
    return first_below(joint.loss.sel(kind=kind), HALF_LEARNED)


def score(trajectory: xr.Dataset, key: str, query: str, head: str = "+") -> xr.DataArray:
    """key^T W_K^T W_Q query, over records."""
    return trajectory.scores.sel(head=head, key=key, query=query, drop=True)


def onset(joint: xr.Dataset) -> xr.DataArray:
    """Step at which the query v1 has begun to look for the key c1."""
    return first_above(score(joint, "c1", "v1"), ONSET)


def ended_by_event(stages: xr.Dataset) -> xr.DataArray:
    """Whether every stage of a flow ended by its event, by seed."""
    return (stages.outcome == 0).all("stages")


def duration(stages: xr.Dataset, stage: str) -> xr.DataArray:
    """How long a stage lasted; NaN where it did not end by its event."""
    lasted = stages.ended.diff("stages").sel(stages=stage) if stage != "1.1" else stages.ended.sel(stages=stage)
    return lasted.where(stages.outcome.sel(stages=stage) == 0)


def weights(trajectory: xr.Dataset) -> dict[str, np.ndarray]:
    """Neurons and Gram matrices of every record: the state of the closed system, leading dimensions kept."""
    scores = trajectory.scores.values
    rows = [[trajectory.key_self.values, scores], [np.swapaxes(scores, -1, -2), trajectory.query_self.values]]
    return {"neurons": trajectory.neurons.values, "gram": np.block(rows)}


def errors_of_samples(trajectory: xr.Dataset, task: Mixture, bias: float) -> np.ndarray:
    """g(X) = 1 / (1 + exp(y f(X))) of every sample of the population, at every record."""
    import jax

    from stagewise.papers.mixture.closed import outputs

    state = weights(trajectory)
    lead = state["neurons"].shape[:-2]
    flat = [state["neurons"].reshape(-1, *state["neurons"].shape[-2:]), trajectory.scores.values.reshape(-1, *trajectory.scores.shape[-3:])]
    f = jax.jit(jax.vmap(lambda neurons, scores: outputs(task, neurons, scores, bias)[1]))(*flat)
    return np.asarray(jax.nn.sigmoid(-task.population().label * f)).reshape(*lead, -1)


def velocity(trajectory: xr.Dataset, task: Mixture, bias: float, kind: str = "all") -> dict[str, np.ndarray]:
    """The gradient flow at every record, computed by automatic differentiation of the loss."""
    import jax

    from stagewise.papers.mixture.closed import ClosedFlow

    state = weights(trajectory)
    lead = state["neurons"].shape[:-2]
    flat = {name: array.reshape(-1, *array.shape[len(lead):]) for name, array in state.items()}
    field = jax.jit(jax.vmap(lambda w: ClosedFlow(task).velocity(w, {"bias": bias}, task.kinds()[kind])))(flat)
    return {name: np.asarray(array).reshape(*lead, *array.shape[1:]) for name, array in field.items()}
