"""A stored result is never another program's: the digest covers what a run executes, found by running it."""

import ast
import sys
import textwrap
import threading
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import stagewise
from stagewise.lab import catalogue
from stagewise.lab.store import provenance
from tests.lab.tiny import TINY
from tests.tiers import some_fast

SOURCE = Path(stagewise.__file__).parent


def executed(work, below: Path) -> set[tuple[Path, int]]:
    """(file, first line) of every function of a folder that is called while `work` is done, in any thread."""
    found: set[tuple[Path, int]] = set()
    prefix = str(below)

    def watch(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(prefix):
            found.add((Path(frame.f_code.co_filename), frame.f_code.co_firstlineno))

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def run_to_the_end(experiment) -> None:
    """Everything that computes a number of a run, without the lab."""
    program = experiment.program()
    state = experiment.start(np.arange(experiment.lanes))
    for chunk in range(program.chunks):
        state, _ = program.advance(state, chunk)
    program.outcomes(state), program.final(state), program.labels()


def begins(node: ast.FunctionDef) -> int:
    """The line a function begins at, decorators included."""
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


@cache
def with_a_change(path: Path) -> dict[int, str]:
    """For each function of a file, by the line it begins at, the file's text if it did one thing more."""
    tree, found = ast.parse(path.read_text()), {}
    for node in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        node.body.append(ast.fix_missing_locations(ast.parse("_changed = 1")).body[0])
        found[begins(node)] = ast.unparse(tree)
        node.body.pop()
    return found


def module_of(path: Path, root: Path, name: str) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join((name, *parts)).removesuffix(".__init__")


def digest_with(monkeypatch, experiment, module: str, text: str) -> str:
    """The digest of an experiment's code if a module had another text."""
    real = provenance.source_of
    with monkeypatch.context() as patch:
        patch.setattr(provenance, "source_of", lambda name: text if name == module else real(name))
        provenance.forget()
        found = provenance.code_digest(experiment)
    provenance.forget()
    return found


FAST = ("mixture.joint", "parity.construction")


@pytest.mark.parametrize("name", some_fast(TINY, *FAST))
def test_whatever_a_run_executes_is_in_its_digest(name, monkeypatch):
    cls = catalogue.experiments()[name]
    experiment = cls.at("quick", **TINY[name])
    before, missed = provenance.code_digest(cls), []
    ran = executed(lambda: run_to_the_end(experiment), SOURCE)
    assert ran
    for path, line in sorted(ran):
        if line in with_a_change(path):  # not a lambda or a comprehension: those are inside of one
            module = module_of(path, SOURCE, "stagewise")
            if digest_with(monkeypatch, cls, module, with_a_change(path)[line]) == before:
                missed.append(f"{module}:{line}")
    assert not missed
    assert provenance.code_digest(cls) == before


def test_what_does_not_execute_does_not_count(monkeypatch):
    cls = catalogue.experiments()["mixture.joint"]
    before = provenance.code_digest(cls)
    for module in (
        "stagewise.lab.report.front",
        "stagewise.papers.parity.learning",
        "stagewise.papers.mixture.claims.joint",
        "stagewise.papers.mixture.figures",
        "stagewise.commands.run",
    ):
        other = provenance.source_of(module) + "\nUNSEEN = 1\n"
        assert digest_with(monkeypatch, cls, module, other) == before, module
    for module in ("stagewise.papers.mixture.closed", "stagewise.papers.mixture.experiments"):
        other = provenance.source_of(module) + "\nSEEN = 1\n"
        assert digest_with(monkeypatch, cls, module, other) != before, module
    text = provenance.source_of("stagewise.papers.mixture.closed")
    told = text.replace('"""', '"""Another word. ', 1) + "\n# and a comment\n"
    assert digest_with(monkeypatch, cls, "stagewise.papers.mixture.closed", told) == before


@pytest.mark.parametrize("package", ("optax", "scipy", "jaxlib", "diffrax", "lineax"))
def test_another_version_of_a_package_is_another_digest(package, monkeypatch):
    cls = catalogue.experiments()["parity.training" if package == "optax" else "lego.one_step"]
    before, real = provenance.code_digest(cls), provenance._version
    monkeypatch.setattr(provenance, "_version", lambda name: "99" if name == package else real(name))
    provenance.forget()
    assert provenance.code_digest(cls) != before
    provenance.forget()


def test_experiments_that_train_others_follow_their_code(monkeypatch):
    """`lego.two_steps` trains a OneStep inside, and `composition.same` a Theory."""
    for name, module, inner in (
        ("lego.two_steps", catalogue.experiments()["lego.one_step"].__module__, "OneStep"),
        ("composition.same", catalogue.experiments()["composition.theory"].__module__, "Theory"),
    ):
        cls = catalogue.experiments()[name]
        tree = ast.parse(provenance.source_of(module))
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name == inner:
                node.body.append(ast.parse("changed = 1").body[0])
        other = ast.unparse(ast.fix_missing_locations(tree))
        assert digest_with(monkeypatch, cls, module, other) != provenance.code_digest(cls)


OUTSIDE = {
    "experiments.py": """
        from dataclasses import dataclass
        import numpy as np
        import stagewise as sw
        from outsider.rules import Halving

        @dataclass(frozen=True)
        class Halve(sw.Experiment):
            rate: float = 0.5
            name = "outsider.halve"

            def program(self):
                from stagewise.training.loop import TrainingLoop

                return TrainingLoop(Halving(), (0, 1, 4))

            def start(self, seeds):
                from stagewise.training.loop import begin

                count = len(seeds)
                return begin({"x": np.ones(count)}, {"rate": np.full(count, self.rate)}, seeds)
        """,
    "rules.py": """
        from dataclasses import dataclass
        from stagewise.training.loop import Rule
        from outsider import deep

        @dataclass(frozen=True)
        class Halving(Rule):
            dims = {"x": ()}
            coords = {}

            def step(self, weights, constants, key):
                return {"x": deep.scaled(weights["x"], constants["rate"])}

            def measure(self, weights, constants, key):
                return {"x": weights["x"]}
        """,
    "deep.py": """
        def scaled(x, rate):
            return rate * x

        def unused_here(x):
            return x
        """,
}


def test_a_package_outside_the_project_is_followed_too(tmp_path, monkeypatch):
    package = tmp_path / "outsider"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for file, text in OUTSIDE.items():
        (package / file).write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(tmp_path)
    from outsider.experiments import Halve  # pyright: ignore

    before = provenance.code_digest(Halve)
    ran = executed(lambda: run_to_the_end(Halve(seeds=2)), package)
    assert {path.name for path, _ in ran} == set(OUTSIDE)
    for path, line in ran:
        if line in with_a_change(path):
            module = module_of(path, package, "outsider")
            assert digest_with(monkeypatch, Halve, module, with_a_change(path)[line]) != before, module
    inner = module_of(SOURCE / "training" / "loop.py", SOURCE, "stagewise")
    text = provenance.source_of(inner) + "\nUNSEEN = 1\n"
    assert digest_with(monkeypatch, Halve, inner, text) != before
