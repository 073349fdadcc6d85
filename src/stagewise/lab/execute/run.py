"""The one way to run experiments: stored runs are found, missing ones are computed by an engine, and a run
that breaks is stored with its reason while the others go on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from stagewise.lab.execute import memory
from stagewise.lab.execute.engines import Engine, InProcess
from stagewise.lab.execute.jobs import Jobs, jobs_of
from stagewise.lab.execute.progress import Progress
from stagewise.lab.execute.units import in_units
from stagewise.lab.spec.experiment import Experiment
from stagewise.lab.store.run import Runs, load_runs


def run_all(
    experiments: Iterable[Experiment],
    root: Path,
    progress: Progress = Progress(),
    engine: Engine = InProcess(),
    retry: bool = False,
    units: bool = False,
) -> Runs:
    """Run what is not stored yet, side by side where experiments differ only in constants, and load
    everything. What failed before is tried again only with `retry`. With `units`, no group is planned
    that would take more than 90 minutes."""
    jobs = jobs_of(experiments, root, progress)
    if retry:
        jobs.forgive()
    if units:
        jobs = in_units(jobs, progress)
    run_jobs(jobs, root, engine, progress)
    return load_runs(jobs.blocks)


def run_jobs(
    jobs: Jobs, root: Path, engine: Engine, progress: Progress = Progress(), fail_fast: bool = False
) -> Jobs:
    """Run what is missing, except what failed before. Returns the jobs as they are afterwards."""
    for block, reason in jobs.failed.items():
        progress.note(f"{block.folder} failed before: {reason.splitlines()[0]} (set --retry to try it again)")
    if groups := jobs.to_run:
        memory.check_many(groups)
        engine.run(groups, root, progress, fail_fast)
    return jobs.left()
