"""stagewise: how transformers learn to reason, stage by stage.

import stagewise as sw
run = sw.run("mixture.joint", preset="quick")   # or sw.run(JointTraining(width=32))
run.trajectory                                   # an xarray.Dataset: seed x record x ...
run.model(seed=0).attention(tokens)              # the trained model, ready to call
"""

import os
import sys

from stagewise import threads

__version__ = "0.1.0"

# Theorems are checked in double precision. Said once, here; jax itself is imported when something first needs
# it.
if "jax" in sys.modules:
    sys.modules["jax"].config.update("jax_enable_x64", True)
else:
    os.environ["JAX_ENABLE_X64"] = "1"

threads.one()

_ROOMS = {
    "run": "stagewise.lab.api",
    "load": "stagewise.lab.api",
    "reproduce": "stagewise.lab.api",
    "experiment": "stagewise.lab.api",
    "study": "stagewise.lab.api",
    "figure": "stagewise.lab.api",
    "sweep": "stagewise.lab.api",
    "Sweep": "stagewise.lab.execute.sweep",
    "Experiment": "stagewise.lab.spec.experiment",
    "Study": "stagewise.lab.spec.study",
    "Refused": "stagewise.errors",
}
__all__ = sorted(_ROOMS)


def __getattr__(name: str):
    if name not in _ROOMS:
        raise AttributeError(f"module 'stagewise' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_ROOMS[name]), name)


def __dir__():
    return __all__
