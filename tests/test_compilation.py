"""The compilation cache: on in our own processes, bounded, safe side by side, movable, and off on request."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stagewise import compilation
from stagewise.errors import Refused
from tests.lab.sharing import same

RUN = [sys.executable, "-m", "stagewise", "run", "mixture.joint", "--steps", "40", "--seeds", "2"]


def run(runs: Path, **chosen: str) -> subprocess.CompletedProcess:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JAX_COMPILATION")}
    command = [*RUN, "--runs", str(runs)]
    return subprocess.run(command, capture_output=True, text=True, env=kept | chosen)


def entries(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*-cache"))


@pytest.mark.slow
def test_what_was_compiled_once_is_found_again_with_the_same_bits(tmp_path):
    place = tmp_path / "cache"
    plain = run(tmp_path / "off", STAGEWISE_COMPILATION_CACHE="off", XDG_CACHE_HOME=str(tmp_path / "xdg"))
    assert plain.returncode == 0 and not (tmp_path / "xdg").exists()
    found = []
    for where in ("first", "second"):
        assert run(tmp_path / where, STAGEWISE_COMPILATION_CACHE=str(place)).returncode == 0
        found.append(entries(place))
    assert found[0] and found[0] == found[1]
    assert same(tmp_path / "first", tmp_path / "off") and same(tmp_path / "second", tmp_path / "off")


def test_the_usual_place_is_the_users_cache_folder(tmp_path):
    assert run(tmp_path / "runs", XDG_CACHE_HOME=str(tmp_path / "xdg")).returncode == 0
    assert entries(tmp_path / "xdg" / "stagewise" / "compiled")


@pytest.mark.slow
def test_whoever_has_a_cache_of_their_own_keeps_it(tmp_path):
    own = tmp_path / "own"
    done = run(tmp_path / "runs", XDG_CACHE_HOME=str(tmp_path / "xdg"), JAX_COMPILATION_CACHE_DIR=str(own))
    assert done.returncode == 0 and not (tmp_path / "xdg").exists()


def test_a_place_that_cannot_be_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    done = run(tmp_path / "runs", STAGEWISE_COMPILATION_CACHE=str(tmp_path / "file"))
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "cannot keep compilations in" in done.stderr and "STAGEWISE_COMPILATION_CACHE" in done.stderr
    with pytest.raises(Refused):
        compilation.settings(tmp_path / "file")


@pytest.mark.slow
def test_processes_side_by_side_share_it_and_a_torn_entry_is_no_obstacle(tmp_path):
    place, kept = tmp_path / "cache", os.environ | {"STAGEWISE_COMPILATION_CACHE": str(tmp_path / "cache")}
    commands = [[*RUN, "--runs", str(tmp_path / f"run{n}")] for n in range(4)]
    started = [subprocess.Popen(command, env=kept, stderr=subprocess.PIPE) for command in commands]
    assert [process.wait() for process in started] == [0] * 4
    assert all(same(tmp_path / "run0", tmp_path / f"run{n}") for n in range(1, 4))
    torn, foreign, *_ = entries(place)
    torn.write_bytes(torn.read_bytes()[:20])
    foreign.write_bytes(b"nothing that jax wrote")
    half = place.glob("*").__next__() / "half-written-cache"
    half.write_bytes(b"x")
    assert run(tmp_path / "after", STAGEWISE_COMPILATION_CACHE=str(place)).returncode == 0
    assert same(tmp_path / "run0", tmp_path / "after") and not half.exists()


@pytest.mark.slow
def test_it_is_bounded(tmp_path):
    script = """
import sys
from stagewise import compilation
compilation._LIMITS["jax_compilation_cache_max_size"] = 40_000
compilation._LIMITS["jax_persistent_cache_min_compile_time_secs"] = 0.0
folder = compilation.compilation_cache(sys.argv[1])
import jax, jax.numpy as jnp
for n in range(2, 14):
    jax.jit(lambda x: jnp.linalg.inv(x @ x) + n)(jnp.ones((n, n)))
print(sum(path.stat().st_size for path in folder.rglob("*-cache")), len(list(folder.rglob("*-cache"))))
"""
    done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    size, count = map(int, done.stdout.split())
    assert 0 < size <= 40_000 and count > 0


def test_counted_compilations_are_compilations(compilations):
    """Tests compile without the cache, so that what is counted is what was compiled."""
    import jax
    import jax.numpy as jnp

    assert jax.config.jax_compilation_cache_dir is None

    def fresh(x):
        return jnp.sin(x) * 3

    for size in (2, 3, 2):
        jax.clear_caches() if size == 2 else None
        jax.jit(fresh)(jnp.ones(size))
    assert compilations("fresh") == 3
