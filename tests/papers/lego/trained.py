"""A small decoder, trained for a moment: right on some chains and wrong on others."""

from functools import cache

import stagewise as sw
from stagewise.papers.lego.experiments import DecoderTraining


@cache
def small_decoder():
    import tempfile

    settings = {
        "task.variables": 24,
        "decoder.width": 32,
        "decoder.embedding": 32,
        "decoder.inner": 64,
        "steps": 700,
        "tested": (5, 10),
        "seeds": 1,
        "task.action.group": "C3",
        "evaluations": 1,
    }
    experiment = DecoderTraining.at("quick", **settings)
    with tempfile.TemporaryDirectory() as folder:
        run = sw.run(experiment, runs=folder)
        return run.model(0), experiment.task
