"""Shapes in signatures are checked in tests: jaxtyping with beartype wraps the numerical rooms when they are
imported."""

import os
from pathlib import Path

os.environ["JAX_ENABLE_X64"] = "1"  # tests call pieces of programs without what runs them
os.environ.pop("JAX_COMPILATION_CACHE_DIR", None)  # what tests count as compiled is compiled

import pytest  # noqa: E402
from jaxtyping import install_import_hook  # noqa: E402

from stagewise import threads  # noqa: E402

threads.one()

ROOMS = (
    "tasks",
    "models",
    "training",
    "papers.mixture.closed",
    "papers.mixture.initial",
    "papers.mixture.weights",
    "papers.cooccurrence.closed",
    "papers.cooccurrence.response",
    "papers.cooccurrence.measured",
    "papers.cooccurrence.forms",
    "papers.parity.learning",
    "papers.lego.learning",
    "papers.lego.activation",
    "papers.lego.one_step",
    "papers.lego.two_steps",
    "papers.lego.retrieval",
    "papers.lego.plain",
    "papers.lego.gradients",
    "papers.lego.algorithms",
    "papers.lego.identities",
    "papers.composition.learning",
    "papers.composition.gradients",
    "papers.composition.queries",
    "papers.composition.identities",
    "papers.composition.construction",
    "papers.composition.encoder_steps",
)
_hook = install_import_hook([f"stagewise.{room}" for room in ROOMS], "beartype.beartype")
_hook.__enter__()


READ_QUICK_RUNS = ("test_claims.py", "test_report.py", "test_serve.py")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Of two processes one takes all files that read the quick runs, so that they are read once; other tests
    go file by file, so that what they share is made once."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return "quick" if file.endswith(READ_QUICK_RUNS) else file

    return ByFile(config, log)


@pytest.fixture
def runs(tmp_path):
    """A folder for runs of one test."""
    return tmp_path / "runs"


@pytest.fixture(scope="session")
def quick(tmp_path_factory):
    """Everything at preset quick, once for all tests that read it; from runs that CI has made already, if it
    says where."""
    import stagewise as sw

    out = tmp_path_factory.mktemp("quick")
    return sw.reproduce("all", "quick", out=out, runs=os.environ.get("STAGEWISE_QUICK_RUNS") or out / "runs")


@pytest.fixture(scope="session")
def quick_mixture(tmp_path_factory):
    """One paper at preset quick, for real: from the runs of all, if CI says where they are."""
    import stagewise as sw

    out = tmp_path_factory.mktemp("mixture")
    runs = os.environ.get("STAGEWISE_QUICK_RUNS") or out / "runs"
    return sw.reproduce("mixture", "quick", out=out, runs=runs)


@pytest.fixture
def quick_folder(quick):
    """Where those runs are."""
    return Path(os.environ.get("STAGEWISE_QUICK_RUNS") or quick.report.parent / "runs")


@pytest.fixture
def injected(record_property):
    """Counts faults: injected(3, "kills"). It is called last, when nothing was found to be lost."""
    return lambda count, what: record_property("injected", (count, what))


def pytest_terminal_summary(terminalreporter):
    """How many faults were injected by the tests that passed, and were survived without a loss."""
    counts: dict[str, int] = {}
    for report in terminalreporter.stats.get("passed", []):
        for count, what in (value for name, value in report.user_properties if name == "injected"):
            counts[what] = counts.get(what, 0) + count
    if counts:
        terminalreporter.write_line(
            "faults injected: "
            + ", ".join(f"{count} {what}" for what, count in counts.items())
            + "; lost: nothing"
        )


@pytest.fixture
def oracle():
    """Import an optional package that no one here wrote; where all must be there (CI), a missing one is a
    failure."""

    def get(name: str):
        if os.environ.get("STAGEWISE_ALL_ORACLES"):
            return __import__(name)
        return pytest.importorskip(name)

    return get


@pytest.fixture
def browser(oracle):
    """A real one."""
    oracle("playwright")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        opened = p.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        yield opened
        opened.close()


@pytest.fixture
def compilations():
    """Counts how often XLA compiled a jitted function since the test began: compilations("_advance")."""
    import jax

    names = []

    def listen(event, seconds, **about):
        if event.endswith("backend_compile_duration"):
            names.append(about.get("fun_name", ""))

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield lambda function: names.count(f"jit({function})")
    jax.monitoring.clear_event_listeners()
