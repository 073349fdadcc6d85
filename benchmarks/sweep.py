"""A sweep of 256 mixture jobs against the same jobs one after another, and against Ray with a task for each;
what a finished job costs; listing many."""

import json
import os
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.timing import row, seconds

JOBS, ON_RAY, STEPS, LISTED = 256, 64, 6000, 10_000


def rows() -> list[dict]:
    import stagewise as sw
    from stagewise.lab import catalogue
    from stagewise.lab.execute import sweep
    from stagewise.lab.execute.engines import InProcess, engine
    from stagewise.lab.execute.engines.on_ray import OnRay
    from stagewise.lab.execute.progress import Progress
    from stagewise.lab.store.runs import listing

    rates = tuple(float(rate) for rate in np.linspace(0.01, 0.1, JOBS).round(6))

    def chosen(steps: int, jobs: int = JOBS):
        return sw.Sweep(
            "mixture.joint",
            {"learning_rate": rates[:jobs]},
            "quick",
            {"steps": steps, "seeds": 1, "width": 32},
        )

    def run(folder: Path, by, lanes: int | None = None, steps: int = STEPS, jobs: int = JOBS) -> float:
        """Jobs a second, compilation included, as a user waits for it."""
        folder.mkdir(exist_ok=True)
        planned = sweep.plan(chosen(steps, jobs), folder, most_lanes=lanes)
        return jobs / seconds(lambda: by.run(planned.jobs.to_run, folder, Progress(), False))

    found = []
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        # And the draw of a start, which all of them need.
        run(root / "imports", InProcess(), steps=20, jobs=1)
        together = run(root / "together", InProcess())
        alone = run(root / "alone", InProcess(), lanes=1)
        on_ray = run(root / "ray", OnRay(), lanes=1, jobs=ON_RAY)
        pooled = run(root / "pool", engine("pool"), lanes=JOBS // (os.cpu_count() or 1))
        unit = "seed-steps/s"
        found += [
            row(
                f"sweep: {JOBS} mixture jobs as one block, vs one after another",
                unit,
                STEPS * together,
                STEPS * alone,
            ),
            row(
                f"sweep: {JOBS} mixture jobs as one block, vs Ray with a task for each of {ON_RAY}",
                unit,
                STEPS * together,
                STEPS * on_ray,
            ),
            row(
                f"sweep: {JOBS} mixture jobs as one block, vs two blocks in a pool",
                unit,
                STEPS * together,
                STEPS * pooled,
            ),
            row(
                "sweep: cost of a finished job in process, from its settings to the dataset, against 5",
                "ms",
                _overhead(chosen, root),
                5.0,
            ),
        ]
        finished_jobs(root / "many", LISTED)
        known = catalogue.experiments()
        listing(root / "together", known)
        return [
            *found,
            row(
                f"sweep: listing {LISTED:,} finished jobs, against 2",
                "s",
                seconds(lambda: listing(root / "many", known)),
                2.0,
            ),
        ]


def _overhead(chosen, root: Path) -> float:
    """Milliseconds a job, beyond drawing its start and the program itself: the difference between a whole
    sweep and computing what it computes, each at its quickest."""
    import jax

    import stagewise as sw
    from stagewise.lab.execute import sweep

    sw.sweep(chosen(20), runs=root / "warm")  # compiles
    [group] = sweep.plan(chosen(20), root / "cost-0").jobs.to_run

    def only_compute():
        program = group[0].experiment.program()
        parts = [block.experiment.start(np.arange(block.first, block.last)) for block in group]
        state = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
        for chunk in range(program.chunks):
            state, _ = program.advance(state, chunk)
        jax.block_until_ready(state)

    whole = min(seconds(lambda: sw.sweep(chosen(20), runs=root / f"cost-{n}")) for n in range(3))
    return 1000 * (whole - min(seconds(only_compute) for _ in range(3))) / JOBS


def finished_jobs(root: Path, count: int) -> None:
    """So many finished runs, as far as a list reads them."""
    from stagewise.lab.store.block import Block, code_of
    from stagewise.papers.mixture.experiments import JointTraining

    code = code_of(JointTraining)
    for n in range(count):
        experiment = JointTraining(learning_rate=0.01 + n / 1e6, seeds=1)
        folder = root / experiment.name / experiment.digest / f"seeds-0-1.{code}"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(Block(experiment, 0, 1, folder).config))
        (folder / "result.json").write_text(
            json.dumps({"format": 1, "finished": "2026-01-01T00-00-00Z", "seconds": 1.0, "files": {}})
        )
