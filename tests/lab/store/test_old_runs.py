"""Run folders of version 0.1 stay readable: one of every experiment, written by commit a4520af at tiny
sizes."""

import tarfile
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import stagewise as sw
from stagewise.lab import catalogue
from stagewise.lab.spec.settings import setting
from stagewise.lab.store.runs import folders, listing

ARCHIVE = Path(__file__).parent / "runs_of_0.1.tar.xz"
with tarfile.open(ARCHIVE) as archive:
    FOLDERS = sorted(str(Path(name).parent) for name in archive.getnames() if name.endswith("config.json"))
GIVE_MODELS = {
    "composition.theory": "AttentionOnly",
    "composition.encoding": "Encoder",
    "cooccurrence.descent": "ScoredOneLayer",
    "cooccurrence.flow": "ScoredOneLayer",
    "cooccurrence.flow_to_times": "ScoredOneLayer",
    "cooccurrence.forms": "ScoredOneLayer",
    "lego.training": "ClauseDecoder",
    "mixture.joint": "ScoredTwoHeads",
    "mixture.many_groups": "ScoredTwoHeads",
    "mixture.symmetric": "ScoredTwoHeads",
    "mixture.symmetric_stages": "ScoredTwoHeads",
    "mixture.three_stages": "ScoredTwoHeads",
    "mixture.three_stages_by_descent": "ScoredTwoHeads",
    "parity.training": "GPT",
}


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    out = tmp_path_factory.mktemp("old")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(out, filter="data")
    return out


def test_there_is_one_of_every_experiment():
    assert {Path(folder).parts[0] for folder in FOLDERS} >= set(catalogue.experiments())


def test_they_are_listed_and_none_is_an_error(old):
    found = listing(old, catalogue.experiments())
    assert len(found) == len(folders(old)) == len(FOLDERS)
    assert {run.state for run in found} <= {"stale", "finished"}


@pytest.mark.parametrize("folder", FOLDERS)
def test_an_old_run_loads_with_its_numbers_and_its_model(old, folder):
    run = sw.load(old / folder)
    stored = xr.open_dataset(old / folder / "trajectory.nc", engine="scipy")
    assert set(stored.data_vars) == set(run.trajectory.data_vars)
    for name in stored.data_vars:
        np.testing.assert_array_equal(run.trajectory[name].values, stored[name].values)
    if run.experiment.name in GIVE_MODELS:
        assert type(run.model(seed=0)).__name__ == GIVE_MODELS[run.experiment.name]


def test_a_renamed_setting_is_read_by_its_old_name(old):
    [folder] = [folder for folder in FOLDERS if folder.startswith("lego.recursion/")]
    run = sw.load(old / folder)
    assert run.experiment.tested_multiples == (1, 2)
    assert setting(run.trajectory, "tested_multiples") == [1, 2]
