"""Ray with two nodes on loopback, real processes: a node dies, the driver dies, and a node that does not see
the runs folder."""

import os
import signal
import time

import pytest

from tests.faults.test_faults import LONG, SHORT, ended, sweeping, undisturbed  # noqa: F401
from tests.lab.sharing import same

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster():
    if os.environ.get("STAGEWISE_ALL_ORACLES"):
        import ray  # noqa: F401
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield made
    made.shutdown()


def on(cluster) -> list[str]:
    return ["--engine", "ray", "--address", cluster.address]


def some_begun(process, runs) -> None:
    begun = time.monotonic()
    while process.poll() is None and not list(runs.glob("*/*/*/checkpoint.safetensors")):
        assert time.monotonic() - begun < 120
        time.sleep(0.05)


@pytest.mark.oracle
def test_a_node_that_dies_in_the_middle_changes_nothing(runs, undisturbed, injected, cluster):
    node = cluster.add_node(num_cpus=1)
    process = sweeping(runs, LONG, *on(cluster))
    some_begun(process, runs)
    time.sleep(1)
    cluster.remove_node(node, allow_graceful=False)
    assert ended(process)[0] == 0
    assert same(runs, undisturbed / "long") and not list(runs.glob("*/*/*/failed.json"))
    injected(1, "lost nodes")


@pytest.mark.oracle
def test_a_driver_that_dies_leaves_only_what_is_missing(runs, undisturbed, injected, cluster):
    process = sweeping(runs, LONG, *on(cluster))
    begun = time.monotonic()
    # One node: the second group has hardly begun.
    while process.poll() is None and not list(runs.glob("*/*/*/result.json")):
        assert time.monotonic() - begun < 120
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    finished = {path: path.stat().st_mtime_ns for path in runs.glob("*/*/*/result.json")}
    assert ended(sweeping(runs, LONG, *on(cluster)))[0] == 0
    assert same(runs, undisturbed / "long") and 0 < len(finished) < 4
    assert all(path.stat().st_mtime_ns == when for path, when in finished.items())
    injected(1, "killed drivers")


@pytest.mark.oracle
def test_without_a_shared_filesystem_results_come_back_through_ray(
    runs, undisturbed, cluster, monkeypatch, tmp_path
):
    """The node is told of a folder that it does not have."""
    import ray

    from stagewise.lab import api
    from stagewise.lab.execute import sweep
    from stagewise.lab.execute.engines.on_ray import _store, _work
    from stagewise.lab.execute.jobs import to_json
    from tests.faults.test_faults import OVER

    runs.mkdir()
    planned = sweep.plan(api.Sweep("mixture.joint", OVER, "quick", SHORT), runs, most_lanes=4)
    ray.init(
        address=cluster.address,
        log_to_driver=False,
        runtime_env={"env_vars": {"PJRT_NPROC": "1", "OPENBLAS_NUM_THREADS": "1"}},
    )
    try:
        for group in planned.jobs.to_run:
            failed, refused, files = ray.get(
                ray.remote(_work).remote(to_json(group), str(tmp_path / "not there"), "token", {})
            )
            assert not failed and not refused
            _store(files, runs)
    finally:
        ray.shutdown()
    assert same(runs, undisturbed / "short") and not (tmp_path / "not there").exists()
    assert not sweep.plan(planned.sweep, runs).jobs.missing  # whole, digests and all
