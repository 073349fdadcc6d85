"""Quantities of the paper, read off a recorded flow."""

from __future__ import annotations

import json
from typing import TypeVar, cast

import numpy as np

from stagewise.lab.spec.settings import setting  # noqa: F401  (claims and figures take it from here
from stagewise.lazy import xr

Data = TypeVar("Data", bound="xr.Dataset | xr.DataArray")
BALANCE = 0.05  # C of Lemma 4.3: how far -dG3 keeps from its bounds


def phase(flow: xr.Dataset, name: str) -> xr.Dataset:
    """The records of a phase, its ends included."""
    return flow.isel(record=np.flatnonzero(flow.stage.values == name))


def at_T1(flow: xr.Dataset) -> xr.Dataset:
    """The record at the end of Phase 1."""
    return phase(flow, "1").isel(record=-1)


def at_end(flow: Data) -> Data:
    """The record at T*, where the loss reaches its target."""
    return flow.isel(record=-1)


def reached(flow: xr.Dataset) -> xr.DataArray:
    """Whether both phases ended by their events, by seed."""
    return (flow.outcome == 0).all("stages")


def speed_of_G(flow: xr.Dataset) -> xr.DataArray:
    """dG/dt of the three special words."""
    return flow.dG_values + flow.dG_neurons


def lead(flow: xr.Dataset) -> xr.DataArray:
    """How far -dG3 is inside the bounds of Lemma 4.3, (1+C) max(dG1, dG2) and (1-C)(dG1 + dG2), over the
    larger of dG1, dG2."""
    one, two, three = (speed_of_G(flow).isel(word=i, drop=True) for i in range(3))
    larger = np.maximum(one, two)
    inside = np.minimum(-three - (1 + BALANCE) * larger, (1 - BALANCE) * (one + two) + three) / abs(larger)
    return cast("xr.DataArray", inside)


def after_which(positive: xr.DataArray, time: xr.DataArray) -> xr.DataArray:
    """The time after which a quantity stays positive to the end of the records; NaN if it is not positive
    there."""

    def last_entry(value: np.ndarray, time: np.ndarray) -> float:
        below = np.flatnonzero(~(value > 0))
        if len(below) == 0:
            return float(time[0])
        last = below[-1]
        if last + 1 == len(time):
            return np.nan
        share = -value[last] / (value[last + 1] - value[last])
        return float(time[last] + share * (time[last + 1] - time[last]))

    return xr.apply_ufunc(
        last_entry, positive, time, input_core_dims=[["record"], ["record"]], vectorize=True
    )


def half_time(flow: xr.Dataset) -> xr.DataArray:
    """T_0.5: the time after which -dG3 stays inside the bounds of Lemma 4.3."""
    return after_which(lead(flow), flow.time)


def time_all_right(flow: xr.Dataset) -> xr.DataArray:
    """The time from which on every training sample is right."""
    return after_which(flow.margin, flow.time)


def speed(flow: xr.Dataset) -> float:
    """A = s1^2 m m1: scaled time is A t."""
    from stagewise.papers.cooccurrence.experiments import C_T1

    return C_T1 / flow.ended.sel(stages="1").isel(seed=0).item()


def change(flow: xr.Dataset) -> xr.DataArray:
    """Scores minus their start."""
    return flow.scores - flow.scores.isel(record=0)


def entry(table: xr.DataArray, key: int, query: int) -> xr.DataArray:
    """One entry of a 3 x 3 table, words numbered from 1 as in the paper: S12 is key mu1, query mu2."""
    return table.isel(key=key - 1, query=query - 1, drop=True)


def always(condition: xr.DataArray) -> xr.DataArray:
    """Whether a condition holds at every record, by seed."""
    return condition.all("record")


def errors(flow: xr.Dataset) -> tuple[xr.DataArray, ...]:
    """S1 to S4, the summed errors of the four types, over n."""
    return tuple(flow.errors.sel(type=k, drop=True) for k in range(1, 5))


def scales_of(flow: xr.Dataset) -> tuple[float, float]:
    """s0 and s1 of the run behind a trajectory."""
    from stagewise.lab.spec.settings import from_json
    from stagewise.papers.cooccurrence.experiments import TwoPhases

    return from_json(TwoPhases, json.loads(flow.attrs["settings"]) | {"seeds": 1}).scales()


def scores_move_right(flow: xr.Dataset) -> xr.DataArray:
    """Whether the four scores move as Theorem 3.2 (1) says."""
    moving = flow.dscores
    return (
        (entry(moving, 1, 2) > 0)
        & (entry(moving, 2, 1) > 0)
        & (entry(moving, 3, 1) < 0)
        & (entry(moving, 3, 2) < 0)
    )


def values_move_right(flow: xr.Dataset) -> xr.DataArray:
    """Whether the values' inner products move as Theorem 3.2 (2) says."""
    moving = flow.dvalue_self
    return (entry(moving, 1, 2) > 0) & (entry(moving, 1, 3) < 0) & (entry(moving, 2, 3) < 0)


def moves_right(flow: xr.Dataset) -> xr.DataArray:
    return scores_move_right(flow) & values_move_right(flow)


def in_order(flow: xr.Dataset) -> xr.DataArray:
    """Whether the summed errors keep the order of Definition F.1: S4 <= S2, S3 <= S1 <= S2 + S3 + S4."""
    one, two, three, four = errors(flow)
    return (four < np.minimum(two, three)) & (np.maximum(two, three) < one) & (one < two + three + four)
