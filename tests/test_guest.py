"""A good guest: a process that imports stagewise keeps its precision, threads, environment and caches."""

import json
import subprocess
import sys

import pytest

HOST = """
import json, os, signal, sys, threading
import jax, jax.numpy as jnp
def mine():
    # The host's own code, in single precision.
    x = jax.jit(lambda x: x @ x.T + jnp.arange(3.0).sum())(jnp.ones((4, 4)))
    return str(x.dtype), str(jnp.asarray(1.0).dtype), jax.config.jax_enable_x64
def state():
    caches = jax.config.jax_compilation_cache_dir, jax.config.values["jax_cpu_enable_async_dispatch"]
    handlers = [repr(signal.getsignal(one)) for one in (signal.SIGINT, signal.SIGTERM)]
    return [sorted(os.environ.items()), caches, handlers, threading.active_count(), sys.gettrace() is None]
told = [mine()]
before = state()
import stagewise as sw
from stagewise.lab import api
told.append(mine())
run = sw.run("mixture.joint", steps=20, seeds=2, runs=RUNS)
told.append(mine())
flow = sw.run("mixture.three_stages", width=8, seeds=1, runs=RUNS)
told.append(mine())
from stagewise.tasks.mixture import Mixture
tokens = Mixture().tokens(Mixture().population())[0]
model = run.model(seed=0)
answer = model(tokens)
told.append(mine())
sw.sweep("mixture.joint", {"width": (4, 8)}, steps=20, seeds=1, runs=RUNS)
told.append(mine())
precision = [str(run.trajectory.loss.dtype), str(answer.dtype), str(model.attention(tokens)["head+"].dtype)]
print(json.dumps([told, precision, before == state(), "ray" in sys.modules]))
"""


def check(told) -> None:
    hosts, ours, unchanged, ray = told
    assert hosts == [["float32", "float32", False]] * len(hosts)
    assert ours == ["float64"] * 3  # programs and the models they hand out compute in double
    assert unchanged and not ray


def test_a_host_that_computes_in_single_precision_keeps_it(runs):
    script = HOST.replace("RUNS", repr(str(runs)))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=plain())
    assert done.returncode == 0, done.stderr
    check(json.loads(done.stdout))


def plain() -> dict[str, str]:
    """The environment without what the tests have set."""
    import os

    ours = ("JAX_", "PJRT_", "OPENBLAS_", "STAGEWISE_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


@pytest.mark.slow
@pytest.mark.oracle
def test_a_notebook_keeps_it_too(runs, oracle):
    """A kernel has threads and a loop of its own; a precision set for one thread would not reach another."""
    oracle("ipykernel")
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3", env=plain())
    try:
        printed: list[str] = []

        def keep(message):
            if message["msg_type"] == "stream" and message["content"]["name"] == "stdout":
                printed.append(message["content"]["text"])

        script = HOST.replace("RUNS", repr(str(runs)))
        reply = client.execute_interactive(script, timeout=240, output_hook=keep)
        assert reply["content"]["status"] == "ok", reply["content"].get("traceback")
        told = json.loads("".join(printed))
        told[2] = True  # the kernel itself starts threads
        check(told)
        threaded = (
            "import threading\nout = []\n"
            "t = threading.Thread(target=lambda: out.append((mine(), str(model(tokens).dtype))))\n"
            "t.start(); t.join(); print(json.dumps(out))"
        )
        printed.clear()
        client.execute_interactive(threaded, timeout=240, output_hook=keep)
        assert json.loads("".join(printed)) == [[["float32", "float32", False], "float64"]]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_importing_is_quick_and_imports_no_jax():
    script = "import sys, stagewise; assert 'jax' not in sys.modules and 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
