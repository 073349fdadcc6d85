"""What there is: papers, experiments, studies, claims and figures, found by looking into `papers/`."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

import stagewise.papers
from stagewise.lab.draw.story import Part
from stagewise.lab.judge.claims import Claim
from stagewise.lab.spec.experiment import Experiment
from stagewise.lab.spec.study import Study

if TYPE_CHECKING:
    from stagewise.lab.draw.figures import Figure


@dataclass(frozen=True)
class Paper:
    """What a paper's folder holds."""

    name: str
    title: str
    story: str
    experiments: dict[str, type[Experiment]]
    studies: dict[str, Study]
    claims: dict[str, Claim]

    def figures(self) -> dict[str, Figure]:
        """The paper's figures; imports the chart library."""
        from stagewise.lab.draw.figures import Figure

        return {figure.id: figure for figure in _of_kind(f"stagewise.papers.{self.name}.figures", Figure)}

    def told(self) -> tuple[Part, ...]:
        """The parts in which the report tells the paper; imports the chart library."""
        return import_module(f"stagewise.papers.{self.name}.story").STORY


@cache
def papers() -> dict[str, Paper]:
    """Every paper that exists, by name."""
    names = [module.name for module in pkgutil.iter_modules(stagewise.papers.__path__) if module.ispkg]
    return {name: _read(name) for name in names}


def experiments() -> dict[str, type[Experiment]]:
    return {name: cls for paper in papers().values() for name, cls in paper.experiments.items()}


def studies() -> dict[str, Study]:
    return {name: study for paper in papers().values() for name, study in paper.studies.items()}


def claims() -> dict[str, Claim]:
    return {name: claim for paper in papers().values() for name, claim in paper.claims.items()}


def figures() -> dict[str, Figure]:
    """Return every figure by its id; imports the chart library."""
    return {name: figure for paper in papers().values() for name, figure in paper.figures().items()}


def _read(name: str) -> Paper:
    room = f"stagewise.papers.{name}"
    about = import_module(room)
    classes = [
        value for value in vars(import_module(f"{room}.experiments")).values() if _is_experiment(value)
    ]
    return Paper(
        name,
        about.TITLE,
        about.__doc__ or "",
        {cls.name: cls for cls in classes},
        {
            study.name: study
            for study in _of_kind(f"{room}.experiments", Study) + _of_kind(f"{room}.studies", Study)
        },
        {claim.id: claim for claim in _of_kind(f"{room}.claims", Claim)},
    )


def _is_experiment(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Experiment) and "name" in vars(value)


def _of_kind(room: str, kind: type) -> list:
    found = {
        id(value): value
        for module in _modules(room)
        for value in vars(module).values()
        if isinstance(value, kind)
    }
    return list(found.values())


def _modules(room: str) -> Iterator[ModuleType]:
    """Yield a module and, if it is a folder, the modules in it."""
    if find_spec(room) is None:
        return
    module = import_module(room)
    yield module
    for inner in pkgutil.iter_modules(getattr(module, "__path__", [])):
        yield import_module(f"{room}.{inner.name}")
