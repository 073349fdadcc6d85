"""stagewise: how transformers learn to reason, stage by stage.

import stagewise as sw
run = sw.run("mixture.joint", preset="quick")   # or sw.run(JointTraining(width=32))
run.trajectory                                   # an xarray.Dataset: seed x record x ...
run.model(seed=0).attention(tokens)              # the trained model, ready to call
"""

from typing import TYPE_CHECKING

__version__ = "0.2.0.dev0"

if TYPE_CHECKING:
    from stagewise.compilation import compilation_cache
    from stagewise.errors import Failed, Refused
    from stagewise.lab.api import experiment, figure, load, reproduce, run, study, sweep
    from stagewise.lab.execute.sweep import Sweep
    from stagewise.lab.spec.experiment import Experiment
    from stagewise.lab.spec.study import Study

__all__ = [
    "Experiment",
    "Failed",
    "Refused",
    "Study",
    "Sweep",
    "compilation_cache",
    "experiment",
    "figure",
    "load",
    "reproduce",
    "run",
    "study",
    "sweep",
]
_ROOMS = {
    "Sweep": "stagewise.lab.execute.sweep",
    "Experiment": "stagewise.lab.spec.experiment",
    "Study": "stagewise.lab.spec.study",
    "Failed": "stagewise.errors",
    "Refused": "stagewise.errors",
    "compilation_cache": "stagewise.compilation",
}


def __getattr__(name: str):
    """Return a name of `__all__`. Its module is imported only when the name is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'stagewise' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_ROOMS.get(name, "stagewise.lab.api")), name)


def __dir__():
    return __all__
