"""The one way to run: what is stored is found, what is missing is computed by an engine, what breaks is
stored with its reason, and the rest goes on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from stagewise.lab.execute import memory
from stagewise.lab.execute.engines import Engine, InProcess
from stagewise.lab.execute.jobs import Jobs, jobs_of
from stagewise.lab.execute.progress import Progress
from stagewise.lab.spec.experiment import Experiment
from stagewise.lab.store.run import Runs, load_runs


def run_all(
    experiments: Iterable[Experiment],
    root: Path,
    progress: Progress = Progress(),
    engine: Engine = InProcess(),
    retry: bool = False,
) -> Runs:
    """Run what is not stored yet, side by side where only numbers differ, and load everything. What failed
    before is tried again only with `retry`."""
    jobs = jobs_of(experiments, root, progress)
    if retry:
        jobs.forgive()
    run_jobs(jobs, root, engine, progress)
    return load_runs(jobs.blocks)


def run_jobs(
    jobs: Jobs, root: Path, engine: Engine, progress: Progress = Progress(), fail_fast: bool = False
) -> Jobs:
    """Run what is missing, without what failed before; the same jobs, as they are afterwards."""
    for block, reason in jobs.failed.items():
        progress.note(f"{block.folder} failed before: {reason.splitlines()[0]} (set --retry to try it again)")
    if groups := jobs.to_run:
        memory.check_many(groups)
        engine.run(groups, root, progress, fail_fast)
    return jobs.left()
