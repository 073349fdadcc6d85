"""Faults, with real processes: kills, full and read-only disks, rivals, damaged and foreign files, clocks
that jump. Every test compares with an undisturbed sweep, and says how many faults it injected; the suite's
last lines add them up. Nothing may be lost."""

import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import xarray as xr

import stagewise as sw
from tests.lab.sharing import Notes, same

pytestmark = pytest.mark.slow

OVER = {"width": (4, 8), "learning_rate": (0.02, 0.05)}
SHORT, LONG = dict(steps=40, seeds=2), dict(steps=250_000, seeds=4)
MOST_SECONDS = 100  # of kills; then the sweep may end
EAGER = os.environ | {"STAGEWISE_CHECKPOINT_SECONDS": "0.05"}


def sweeping(runs, settings=SHORT, *more) -> subprocess.Popen:
    """A sweep in a process of its own, with a checkpoint after almost every chunk."""
    words = [
        "sweep",
        "mixture.joint",
        *(f"--over={path}={','.join(map(str, values))}" for path, values in OVER.items()),
    ]
    words += [
        "--set",
        f"steps={settings['steps']}",
        "--seeds",
        str(settings["seeds"]),
        "--lanes",
        str(2 * settings["seeds"]),
        "--runs",
        str(runs),
        *more,
    ]
    return subprocess.Popen(
        [sys.executable, "-m", "stagewise", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=EAGER,
    )


def ended(process, seconds=240) -> tuple[int, str]:
    out, error = process.communicate(timeout=seconds)
    assert "Traceback" not in error, error
    return process.returncode, error


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What a sweep gives that nobody disturbs: short, and long enough to be killed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    for name, settings in (("short", SHORT), ("long", LONG)):
        assert ended(sweeping(folder / name, settings))[0] == 0
    return folder


def saved(runs) -> set[tuple[Path, int]]:
    """Every state and result in the folder, and when it was written."""
    found = set()
    for path in (*runs.glob("*/*/*/checkpoint.safetensors"), *runs.glob("*/*/*/result.json")):
        try:
            found.add((path, path.stat().st_mtime_ns))
        except FileNotFoundError:  # replaced in between
            pass
    return found


@pytest.mark.parametrize("engine", ["process", "pool"])
def test_killed_at_random_moments_until_it_ends_a_sweep_is_as_if_nothing_had_been(
    runs, undisturbed, injected, engine
):
    moments, kills, began = random.Random(engine), 0, time.monotonic()
    while True:
        before, process = saved(runs), sweeping(runs, LONG, "--engine", engine)
        # A kill before that is dull, and nothing would ever end.
        while process.poll() is None and saved(runs) == before:
            time.sleep(0.02)
        time.sleep(moments.uniform(0, 2))
        if process.poll() is not None or time.monotonic() - began > MOST_SECONDS:
            break
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        kills += 1
    assert ended(process)[0] == 0
    assert kills >= 2 and same(runs, undisturbed / "long")
    assert not list(runs.glob("*/*/damaged-*"))
    injected(kills, "kills")


def test_two_sweeps_on_one_folder_do_not_get_in_each_others_way(runs, undisturbed, injected):
    rivals = [sweeping(runs, LONG) for _ in range(2)]
    assert [ended(rival)[0] for rival in rivals] == [0, 0]
    assert same(runs, undisturbed / "long")
    injected(1, "rivals")


@pytest.fixture
def small_disk(tmp_path):
    """A small disk that can be made smaller or larger, or read-only."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("no right to mount a small disk")

    def again(options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", disk], check=True)

    yield disk, again
    subprocess.run(["umount", "-l", disk], check=True)


def test_a_full_disk_stops_the_sweep_in_one_sentence_and_loses_nothing(small_disk, undisturbed, injected):
    disk, again = small_disk
    pages = sum(
        -(-path.stat().st_size // 4096) for path in (undisturbed / "short").rglob("*") if path.is_file()
    )
    again(f"size={4 * int(0.8 * pages)}k")  # room for the first group, not for both
    code, error = ended(sweeping(disk / "runs"))
    assert code == 2 and "No space left" in error and error.strip().count("\nstagewise:") <= 1
    before = {path: path.read_bytes() for path in disk.glob("runs/*/*/*/result.json")}
    assert 0 < len(before) < 4
    again("size=16m")
    assert ended(sweeping(disk / "runs"))[0] == 0
    assert same(disk / "runs", undisturbed / "short") and all(
        path.read_bytes() == content for path, content in before.items()
    )
    injected(1, "full disks")


def test_a_read_only_folder_is_refused_before_anything_runs(small_disk, injected):
    disk, again = small_disk
    (disk / "runs").mkdir()
    again("ro")
    code, error = ended(sweeping(disk / "runs"))
    again("rw")
    assert (
        code == 2
        and "cannot" in error
        and error.strip().count("\n") == 0
        and not list((disk / "runs").iterdir())
    )
    injected(1, "read-only disks")


KINDS = ("config.json", "environment.json", "trajectory.nc", "checkpoint.safetensors", "result.json", "plan")
KINDS_UNFINISHED = (
    "plan",
    "failed.json",
    "alone.json",
    "progress.json",
    "previous.safetensors",
    "checkpoint.safetensors",
)
FAULTS = ("truncated", "flipped", "emptied", "foreign")


def damage(path: Path, fault: str, ran: Path) -> None:
    """Make a file another; the foreign one would touch `ran` if it could run code."""

    class Runs:
        def __reduce__(self):
            return os.system, (f"touch {ran}",)

    content = path.read_bytes()
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    path.write_bytes(
        {"truncated": content[:middle], "flipped": flipped, "emptied": b"", "foreign": pickle.dumps(Runs())}[
            fault
        ]
    )


def plan_in(runs) -> Path:
    return next((runs / "sweeps").glob("*.json"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_file_is_noticed_and_its_run_made_again(runs, undisturbed, injected, kind, fault, tmp_path):
    shutil.copytree(undisturbed / "short", runs)
    damage(
        plan_in(runs) if kind == "plan" else sorted(runs.glob(f"*/*/*/{kind}"))[1], fault, tmp_path / "ran"
    )
    notes = Notes()
    found = sw.sweep("mixture.joint", OVER, runs=runs, progress=notes, lanes=4, **SHORT)
    expected = sw.sweep("mixture.joint", OVER, runs=undisturbed / "short", lanes=4, **SHORT)
    xr.testing.assert_allclose(found, expected, rtol=1e-9)  # made again alone, not with its group
    assert not (tmp_path / "ran").exists() and not found.missing.any()
    # Set aside, and made again: one of four.
    if kind not in ("result.json", "plan") or (kind == "result.json" and fault != "flipped"):
        assert len(notes.begun) == 1 and len(list(runs.glob("*/*/damaged-*"))) == 1
    injected(1, "damaged files")


@pytest.mark.parametrize("kind", KINDS_UNFINISHED)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_file_of_an_unfinished_job_costs_that_job_at_most(
    runs, undisturbed, injected, kind, fault, tmp_path
):
    shutil.copytree(undisturbed / "short", runs)
    folder = sorted(runs.glob("*/*/*/config.json"))[1].parent
    (folder / "result.json").unlink()
    path = plan_in(runs) if kind == "plan" else folder / kind
    if kind == "previous.safetensors":
        shutil.copy(folder / "checkpoint.safetensors", path)
    elif not path.exists():
        path.write_text('{"format": 1, "reason": "none"}')
    damage(path, fault, tmp_path / "ran")
    notes = Notes()
    found = sw.sweep("mixture.joint", OVER, runs=runs, progress=notes, lanes=4, retry=True, **SHORT)
    xr.testing.assert_allclose(
        found, sw.sweep("mixture.joint", OVER, runs=undisturbed / "short", lanes=4, **SHORT), rtol=1e-9
    )
    assert not (tmp_path / "ran").exists() and not found.missing.any() and len(notes.begun) == 1
    injected(1, "damaged files")


def test_damaged_checkpoints_cost_one_chunk(runs, undisturbed, injected):
    process = sweeping(runs, LONG)
    while process.poll() is None and len(list(runs.glob("*/*/*/previous.safetensors"))) < 2:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    begun = [
        path
        for path in runs.glob("*/*/*/checkpoint.safetensors")
        if not (path.parent / "result.json").exists()
    ]
    faults = [
        lambda content: content[:-100],
        lambda content: content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
        lambda content: pickle.dumps([1]),
    ]
    for path, fault in zip(begun, faults):
        content = path.read_bytes()
        path.unlink()  # a link may give the state before its second name: that one stays as it is
        path.write_bytes(fault(content))
    went_on = []

    class From(Notes):
        def resume(self, chunk):
            went_on.append(chunk)

    sw.sweep("mixture.joint", OVER, runs=runs, progress=From(), lanes=2 * LONG["seeds"], **LONG)
    assert len(begun) >= 2 and max(went_on) > 0  # from the state before
    assert same(runs, undisturbed / "long") and len(list(runs.rglob("damaged-*"))) == min(len(begun), 3)
    injected(1, "kills")
    injected(min(len(begun), 3), "damaged files")


def test_clocks_that_jump_change_nothing(runs, undisturbed, injected):
    shutil.copytree(undisturbed / "short", runs)
    paths = sorted(runs.rglob("*"))
    for n, path in enumerate(paths):
        os.utime(path, ((n % 3) * 2_000_000_000,) * 2)
    notes = Notes()
    sw.sweep("mixture.joint", OVER, runs=runs, progress=notes, lanes=4, **SHORT)
    assert not notes.begun and not list(runs.glob("*/*/damaged-*"))
    injected(len(paths), "jumps of file times")


def test_a_request_to_stop_saves_what_is_done(runs, undisturbed, injected):
    process = sweeping(runs, LONG, "--engine", "pool")
    while process.poll() is None and not list(runs.glob("*/*/*/checkpoint.safetensors")):
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    code, error = ended(process)
    assert code == 130 and "goes on from what is saved" in error
    assert ended(sweeping(runs, LONG, "--engine", "pool"))[0] == 0
    assert same(runs, undisturbed / "long")
    injected(1, "requests to stop")


def test_a_run_folder_is_made_of_files_that_cannot_run_code():
    root = Path(sw.__file__).parent
    loads = [
        path
        for path in root.rglob("*.py")
        for line in path.read_text().splitlines()
        if "pickle" in line and "import" in line
    ]
    assert not loads
