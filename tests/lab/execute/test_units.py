"""Long work comes in units that a session can finish."""

import stagewise as sw
from stagewise.lab.execute.engines import InProcess
from stagewise.lab.execute.jobs import jobs_of
from stagewise.lab.execute.run import run_jobs
from stagewise.lab.execute.units import in_units
from stagewise.lab.store.run import load_runs
from tests.lab.sharing import Notes


def joint(**changes):
    return sw.experiment("mixture.joint", steps=20, **changes)


def a_minute_a_seed(group):
    return 60.0 * sum(block.last - block.first for block in group)


def test_no_unit_takes_longer_and_all_seeds_are_there(runs):
    experiments = [joint(seeds=100, first_seed=1000), joint(seeds=7, width=8), joint(seeds=3, width=16)]
    jobs = in_units(jobs_of(experiments, runs), most=600, seconds=a_minute_a_seed)
    assert all(a_minute_a_seed(group) <= 600 for group in jobs.groups)
    for experiment in experiments:
        seeds = [seed for block in jobs.blocks[experiment] for seed in range(block.first, block.last)]
        assert seeds == list(range(experiment.seeds_from, experiment.seeds_to))
    assert {block.folder for group in jobs.groups for block in group} == {block.folder for block in jobs.all}


def test_what_is_cut_is_found_again_with_the_same_numbers(runs, tmp_path):
    experiment = joint(seeds=5)
    jobs = in_units(jobs_of([experiment], runs), most=130, seconds=a_minute_a_seed)
    assert len(jobs.groups) == 3
    done = load_runs(run_jobs(jobs, runs, InProcess()).blocks)[experiment]
    assert not jobs_of([experiment], runs).missing
    whole = sw.run(experiment, runs=tmp_path / "whole").trajectory
    assert abs(whole.loss - done.trajectory.loss).max() < 1e-12 and len(done.folders) == 3


def test_a_seed_that_takes_longer_is_told(runs):
    notes = Notes()
    jobs = in_units(jobs_of([joint(seeds=2)], runs), notes, most=50, seconds=a_minute_a_seed)
    assert len(jobs.groups) == 2 and "one seed of mixture.joint takes about 60 s" in notes.said[0]
