"""What claims and figures read off trajectories."""

from __future__ import annotations

from typing import Any

import numpy as np

from stagewise.lab.judge.statistics import FAILS, HOLDS, Verdict
from stagewise.lab.spec.settings import setting
from stagewise.lazy import xr


def fewest_bits(perfect: xr.DataArray) -> xr.DataArray:
    """The fewest bits of precision from which on every finer rounding works too; NaN if none does."""
    stays = (
        perfect.isel(precision=slice(None, None, -1))
        .cumprod("precision")
        .isel(precision=slice(None, None, -1))
    )
    return perfect.precision.where(stays > 0).min("precision")


def samples_needed(run: xr.Dataset) -> xr.DataArray:
    """Samples seen when every answer was first right; where that never came, the budget, a lower bound."""
    batch = setting(run, "batch")
    return run.done_at.where(solved(run), setting(run, "samples") // batch) * batch


def solved(run: xr.Dataset) -> xr.DataArray:
    """Which seeds got every answer right within the budget."""
    return run.done_at >= 0


def learned_within(verdict: Verdict, run: xr.Dataset, full: int = 10_000_000) -> Verdict:
    """A verdict on something that is to be learned within the paper's budget: with a smaller one, failing
    says nothing."""
    return _cut_off(verdict, run, full, FAILS)


def not_learned_within(verdict: Verdict, run: xr.Dataset, full: int = 10_000_000) -> Verdict:
    """A verdict on something that is not to be learned within the paper's budget: with a smaller one, holding
    says nothing."""
    return _cut_off(verdict, run, full, HOLDS)


def _cut_off(verdict: Verdict, run: xr.Dataset, full: int, outcome: str) -> Verdict:
    samples = setting(run, "samples")
    if samples >= full or verdict.outcome != outcome:
        return verdict
    return verdict.left_open(
        f"the budget was cut from {full:,} to {samples:,} samples", f"a budget of {full:,} samples"
    )


def at_best_rate(needed: xr.DataArray) -> xr.DataArray:
    """At the learning rate whose median over seeds is least."""
    if "learning_rate" not in needed.dims:
        return needed
    best = needed.median("seed").argmin("learning_rate")
    return needed.isel(learning_rate=best)


def single_seed_minimum(needed: xr.DataArray) -> xr.DataArray:
    """What the paper reports: one seed, the least over rates."""
    return needed.isel(seed=0).min("learning_rate") if "learning_rate" in needed.dims else needed.isel(seed=0)


def first_reaching(run: xr.Dataset, accuracy: float = 0.95) -> xr.DataArray:
    """The jump: samples at the first evaluation with at least this exact match; NaN if there is none."""
    return _samples(run).where(run.accuracy >= accuracy).min("record")


def half_fallen(run: xr.Dataset, entropy: xr.DataArray) -> xr.DataArray:
    """The drop: samples at the first evaluation where the entropy is half-way between its first tenth
    (median) and its end."""
    early = entropy.isel(record=slice(0, max(1, run.sizes["record"] // 10))).median("record")
    middle = (early + entropy.isel(record=-1)) / 2
    return _samples(run).where(entropy <= middle).min("record")


def _samples(run: xr.Dataset) -> xr.DataArray:
    return run.step * setting(run, "batch")


def rank_correlation(first: xr.DataArray, second: xr.DataArray) -> np.ndarray:
    """Spearman's correlation along the records, for each seed."""
    from scipy.stats import spearmanr

    found: list[Any] = [spearmanr(first.sel(seed=seed), second.sel(seed=seed)) for seed in first.seed.values]
    return np.array([one.statistic for one in found])
