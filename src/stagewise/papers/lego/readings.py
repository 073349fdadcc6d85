"""What is watched of a decoder in training, and what claims and figures read off trajectories."""

from __future__ import annotations

import json

import numpy as np

from stagewise.lab.spec.settings import setting
from stagewise.lazy import xr
from stagewise.papers.lego import closed
from stagewise.tasks.groups import Action, fibres

RAISED = ("nothing", "predicate", "answer")
BONUS = 2.0  # by which the score of the clause that is needed is raised, for the predicate or the answer
LOOKED = (5, 10, 20)  # lengths at which attention is watched, as in Figures 2, 6 and 7
WATCHED = 100  # sentences, as there
ORDER = np.array([3, 0, 4, 2, 1])  # of the predicates, in Figure 5
STOP = 2.97  # the paper stops at loss d^-2.97 for a clip of 6 (Lemma E.35)


def action_of(run: xr.Dataset) -> Action:
    """The group action of a theory run."""
    return Action(**json.loads(run.attrs["settings"])["action"])


def top_of(run: xr.Dataset) -> float:
    """B."""
    return setting(run, "clip") * np.log(setting(run, "vocabulary"))


# Stage 1
# ----------------------------------------------------------------------------


def half_sums(V: np.ndarray, action: Action) -> np.ndarray:
    """V_psi: what a neuron gives to a value and, in the mean, to the actions that lead from it to the
    neuron's class: [..., j, r, y]."""
    there = fibres(action.maps())  # [j, y, g]
    of_action = np.einsum(
        "...jrg,jyg->...jry", V[..., : action.actions], there / there.sum(-1, keepdims=True)
    )
    return (of_action + V[..., action.actions :]) / 2


def in_order(first: np.ndarray) -> list[tuple[int, int, int]]:
    """Sigma* (Definitions B.3 and C.4) from V_psi at the start [j, r, y]: (j, r, y) by size, each neuron and
    each (j, y) once."""
    left, chosen = first.copy(), []
    while np.isfinite(left).any():
        j, r, y = np.unravel_index(np.argmax(left), left.shape)
        chosen.append((int(j), int(r), int(y)))
        left[j, r, :] = left[j, :, y] = -np.inf
    return chosen


def winners(last: np.ndarray) -> np.ndarray:
    """The neuron of each class that is largest for each value at the end, [..., j, y]."""
    return last.argmax(-2)


def by_role(V: np.ndarray, action: Action, chosen: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """What winning neurons, or those chosen, give, one array for each role: their actions, their value, other
    actions, other values; and the two mixed half sums (one part theirs, one not); and the ratios of equation
    18. The first axes are kept."""
    actions, there = action.actions, fibres(action.maps())
    chosen = winners(half_sums(V, action)) if chosen is None else chosen
    found: dict[str, list] = {
        role: []
        for role in (
            "action",
            "value",
            "other_action",
            "other_value",
            "mixed",
            "action_over_value",
            "other_value_over_action",
            "other_action_over_value",
        )
    }
    for j in range(action.values):
        for y in range(action.values):
            neuron = np.take_along_axis(V[..., j, :, :], chosen[..., j, y][..., None, None], -2)[..., 0, :]
            theirs, rest = neuron[..., :actions][..., there[j, y]], neuron[..., :actions][..., ~there[j, y]]
            value, others = neuron[..., actions + y][..., None], np.delete(neuron[..., actions:], y, -1)
            mixed = [
                (theirs[..., :, None] + others[..., None, :]) / 2,
                (rest[..., :, None] + value[..., None, :]) / 2,
            ]
            mixed = np.concatenate([part.reshape(*part.shape[:-2], -1) for part in mixed], -1)
            ratios = theirs / value, others / theirs.mean(-1, keepdims=True), rest / value
            for role, part in zip(found, (theirs, value, rest, others, mixed, *ratios)):
                found[role].append(part)
    return {role: np.concatenate(parts, -1) for role, parts in found.items()}


def arrivals(run: xr.Dataset, share: float) -> np.ndarray:
    """When V_psi of the winning neuron first reaches a share of B, [seed, j, y]; NaN if never."""
    action = action_of(run)
    sums = half_sums(run.V.values, action)  # [seed, record, j, r, y]
    chosen = winners(sums[:, -1])
    own = np.take_along_axis(sums, chosen[:, None, :, None, :], 3)[:, :, :, 0]
    reached = own >= share * top_of(run)
    at = np.where(
        reached.any(1),
        np.take_along_axis(run.time.values[:, :, None, None], reached.argmax(1)[:, None], 1)[:, 0],
        np.nan,
    )
    return at


# Stage 2
# ----------------------------------------------------------------------------


def at_time(run: xr.Dataset, name: str, time: float) -> np.ndarray:
    """A recorded quantity of every seed at a time, between records by its logarithm's."""
    return np.array(
        [
            np.interp(np.log(time), np.log(np.maximum(t, 1e-300)), value)
            for t, value in zip(run.time.values, run[name].values)
        ]
    )


def at_loss(run: xr.Dataset, name: str, loss: float) -> np.ndarray:
    """A recorded quantity of every seed where the loss first is so small; NaN if it never is."""
    found = []
    for losses, values in zip(run.loss.values, run[name].values):
        below = np.flatnonzero(losses <= loss)
        if not len(below):
            found.append(np.nan)
            continue
        k = max(int(below[0]), 1)
        span = np.log(losses[k - 1]) - np.log(losses[k])
        part = (np.log(losses[k - 1]) - np.log(loss)) / span if span > 0 else 1.0
        found.append(values[k - 1] + np.clip(part, 0, 1) * (values[k] - values[k - 1]))
    return np.array(found)


def least_loss(run: xr.Dataset, vocabulary: float) -> float:
    """The least loss that the clip allows, of all answers trained."""
    answers = 2 if setting(run, "trains") == "both" else 1
    return answers * closed.least_loss(vocabulary, setting(run, "clip") * np.log(vocabulary))


# Training
# ----------------------------------------------------------------------------


def at_end_of(run: xr.Dataset, number: int) -> xr.Dataset:
    """The last record of a phase; 0 is the first phase at full length, warm-ups aside."""
    stages = [stage for stage in dict.fromkeys(run.stage.values.tolist()) if stage != "warm-up"]
    return run.isel(record=np.flatnonzero(run.stage.values == stages[number])[-1])


def half_length(chain: xr.DataArray) -> np.ndarray:
    """L50: the length at which every other chain is right, on the logarithm of lengths; the longest tested if
    more are right there, a lower bound, and the shortest if fewer are already at that one."""
    return np.array([half_way(row, chain.tested.values) for row in chain.transpose("seed", "tested").values])


def half_way(shares: np.ndarray, at: np.ndarray) -> float:
    """Where falling shares first are one half, on the logarithm of what they are at; the last place if they
    never are, the first if they are from the start."""
    below = np.flatnonzero(shares < 0.5)
    if not len(below) or below[0] == 0:
        return float(at[-1] if not len(below) else at[0])
    k = below[0]
    return float(np.exp(np.interp(0.5, [shares[k], shares[k - 1]], np.log(at[[k, k - 1]].astype(float)))))


def trend(attention: xr.DataArray, length: int) -> np.ndarray:
    """The slope of attention over the place l / L, of each seed."""
    place = np.arange(1, length + 1) / length
    rows = attention.sel(looked=length).isel(place=slice(0, length)).values
    return np.array([np.polyfit(place, row, 1)[0] for row in rows])


def missed_at(runs: xr.Dataset, rule: str) -> np.ndarray:
    """log epsilon at each size, stopped by loss (1.1 times its least), by the paper's loss, or by time."""
    found = []
    for d, run in each(runs):
        if rule == "loss":
            value = at_loss(run, "missed", 1.1 * least_loss(run, d))
        elif rule == "paper":
            value = at_loss(run, "missed", d**-STOP)
        else:
            value = at_time(run, "missed", d ** float(rule))
        found.append(np.log(value[0]))
    return np.array(found)


def each(runs: xr.Dataset):
    """(d, run) of a study over vocabulary sizes."""
    return [(float(d), runs.sel(vocabulary=d).assign_attrs(runs.attrs)) for d in runs.vocabulary.values]
