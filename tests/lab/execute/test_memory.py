"""Nothing is started that cannot end: memory is compared with what there is, and long work says how long."""

import numpy as np
import pytest

import stagewise as sw
from stagewise.commands.main import main
from stagewise.lab.execute import memory
from stagewise.lab.execute.progress import Lines
from tests.tiers import some_fast

HUGE = {
    "a step": "run parity.training --task.bits 4096 --task.secret_size 4096",
    "many seeds": "run mixture.joint --width 1000000 --seeds 100000 --form weights",
    "a wide encoder": "run composition.encoding --encoder.width 65536 --encoder.heads 1",
    "a long sentence": "run lego.training --preset paper --decoder.width 32768 --decoder.heads 1",
}


@pytest.mark.parametrize("what", some_fast(HUGE, "many seeds"))
def test_what_does_not_fit_is_refused_before_work_starts(what, runs, capsys):
    assert main([*HUGE[what].split(), "--runs", str(runs)]) in (1, 2)
    said = capsys.readouterr().err
    assert "GB of memory" in said and "Traceback" not in said, said
    assert not list(runs.rglob("checkpoint.safetensors"))


def test_a_limit_of_the_machine_counts(monkeypatch, tmp_path):
    most, used = tmp_path / "max", tmp_path / "current"
    monkeypatch.setattr(memory, "_LIMITS", (most, used))
    most.write_text("5000\n"), used.write_text("1000\n")
    assert memory.available() == 4000
    (tmp_path / "memory.stat").write_text("anon 300\ninactive_file 600\n")
    assert memory.available() == 4600  # cached files are given back when they are needed
    most.write_text("max\n")
    assert memory.available() > 10**6
    with pytest.raises(sw.Refused, match="takes 1,000,000,000.0 GB of memory"):
        memory.check(10**18, "it", "less may do")
    assert memory.size({"a": np.zeros((3, 4)), "b": np.zeros(2, np.float32)}) == 3 * 4 * 8 + 2 * 4


def test_compiling_is_announced_off_a_terminal_and_long_work_says_how_long(capsys, monkeypatch):
    clock = iter(range(0, 10**6, 5))
    monkeypatch.setattr("stagewise.lab.execute.progress.time.monotonic", lambda: float(next(clock)))
    lines = Lines()
    lines.begin("x (2 seeds)", 1000)
    assert "compiling" in capsys.readouterr().err
    for _ in range(3):
        lines.advance("training", 10, 5.0)
    said = capsys.readouterr().err
    assert said.count("to go") == 1 and "about 2.8 h to go" in said
