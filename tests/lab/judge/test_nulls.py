"""Nulls keep what was measured and say nothing for the claim; a judge that they fool is a defect."""

import numpy as np
import xarray as xr

from stagewise.lab.judge.nulls import calibrated, from_arm, perturbed, replaced, scrambled, shuffled
from stagewise.lab.judge.statistics import exactly, median_over_seeds

RNG = np.random.default_rng(0)
KINDS = ["a", "b", "c", "d"]
DATA = xr.Dataset(
    {"loss": (("seed", "record", "kind"), RNG.normal(size=(8, 5, 4)))},
    {"seed": np.arange(8), "kind": KINDS, "step": ("record", np.arange(5))},
)


def test_shuffling_moves_labels_within_every_seed():
    made = shuffled("run", "kind").make({"run": DATA}, {}, np.random.default_rng(1))["run"]
    assert list(made.kind.values) == KINDS and (made.step == DATA.step).all()
    for seed in range(8):
        found, was = (np.sort(data.loss.sel(seed=seed).values, axis=-1) for data in (made, DATA))
        np.testing.assert_array_equal(found, was)
    assert (made.loss.values != DATA.loss.values).any()


def test_scrambling_keeps_only_the_numbers_of_a_seed():
    made = scrambled("run").make({"run": DATA}, {}, np.random.default_rng(1))["run"]
    for seed in range(8):
        found, was = (np.sort(data.loss.sel(seed=seed).values.ravel()) for data in (made, DATA))
        np.testing.assert_array_equal(found, was)


def test_an_arm_is_drawn_with_replacement_as_often_as_there_are_seeds():
    arm = DATA.isel(seed=[2, 3])
    made = from_arm("run", None, "two").make({"run": DATA}, {"run": arm}, np.random.default_rng(1))["run"]
    assert made.sizes["seed"] == 8 and set(made.seed.values) == {2, 3}


def test_factors_are_never_one():
    null = perturbed("factor", 0.1)
    found = [null.make({"factor": 2.0}, {}, np.random.default_rng(i))["factor"] / 2 for i in range(200)]
    off = abs(np.log(found))
    assert off.min() >= 0.01 and off.max() <= 0.1
    assert (perturbed("run").make({"run": DATA}, {}, RNG)["run"].loss != DATA.loss).all()


def test_a_judge_at_its_level_passes_and_one_that_is_fooled_is_a_defect():
    null = replaced("noise", values=lambda rng: rng.normal(size=12))

    def honest(values):
        return median_over_seeds("x", values, at_least=0)

    def careless(values):
        return exactly("x", values.mean(), at_least=0)

    fine, fooled = (calibrated(judge, null, {}, {}, 200) for judge in (honest, careless))
    assert not fine.defect and fine.share.value < 0.1
    assert fooled.defect.startswith("holds on ") and 70 < fooled.holds < 130
    assert calibrated(honest, null, {}, {}, 200) == fine  # the same every time


def test_a_judge_that_breaks_on_nonsense_is_not_fooled():
    broken = calibrated(
        lambda x: exactly("x", 1 / x, at_least=0), replaced("zero", x=lambda rng: 0), {}, {}, 5
    )
    assert broken.holds == 0 and not broken.defect
