"""The command line as a user meets it: real processes, one sentence for every mistake."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stagewise.commands.main import main
from tests.tiers import some_fast

ROOT = Path(__file__).parents[2]


def stagewise(*arguments, cwd=None):
    command = [sys.executable, "-m", "stagewise", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=600)


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["run", "mixture.joint", "--task.groups", "1"], "groups must be at least 2, not 1"),
        (["run", "mixture.joint", "--task.length", "2"], "length must be at least 3, not 2"),
        (
            ["run", "mixture.joint", "--task.dimension", "3"],
            "dimension must be at least 2 * groups = 4, not 3",
        ),
        (["run", "mixture.joint", "--learning_rate", "-1"], "learning_rate must not be negative"),
        (["run", "mixture.joint", "--width", "0"], "width must lie between 1 and 1000000, or be infinite"),
        (
            ["run", "mixture.joint", "--width", "infinite", "--form", "weights"],
            "infinite width has no weights",
        ),
        (["run", "mixture.joint", "--steps", "many"], "--steps takes a whole number, not many"),
        (["run", "mixture.joint", "--learning_rte", "1"], "did you mean --learning_rate?"),
        (["run", "mixture.joint", "0.1"], "is not an option"),
        (["run", "mixture.join"], "did you mean mixture.joint?"),
        (["run"], "which experiment?"),
        (["run", "mixture.widths", "--steps", "3"], "is a study"),
        (["run", "mixture.joint", "--preset", "quik"], "did you mean quick?"),
        (["run", "mixture.joint", "--seeds", "0"], "seeds must lie between 1 and 100000"),
        (["run", "mixture.joint", "--runs", "/proc/x"], "cannot create the folder"),
        (
            ["run", "mixture.joint", "--learning_rate", "inf"],
            "--learning_rate takes a finite number, not inf",
        ),
        (
            ["run", "mixture.joint", "--trains", "neuron"],
            "--trains takes one of both, neurons, attention, not neuron",
        ),
        (["run", "mixture.joint", "--initial_scale", "1e300"], "initial_scale must lie between 0 and 100"),
        (["run", "mixture.joint", "--bias", "-1"], "bias must not be negative"),
        (["run", "mixture.joint", "--steps", "100000000000000000000"], "steps must lie between 1 and 10^9"),
        (["run", "mixture.joint", "--task.groups", "100000"], "different samples to enumerate"),
        (["run", "mixture.fig1a"], "is a claim: use `stagewise reproduce mixture.fig1a`"),
        (["reproduce", "mixture.joint"], "is something to run"),
        (["run", "mixture.joint", "--runs", ""], "must not be empty"),
        (["runs", "--runs", "/nowhere"], "there is no folder /nowhere"),
        (["list", "mixture.nothing"], "unknown paper, experiment, study, claim or figure"),
        (["report", "mixture"], "are not stored yet"),
        (["reproduce", "mixture.fig1z"], "unknown paper or claim 'mixture.fig1z' (did you mean mixture.fig1"),
        (["reproduce", "mixture", "--preset", "huge"], "unknown preset"),
        (["reproduce", "mixture", "--out", "/proc/x"], "cannot create the folder"),
        (["figure", "mixture.fig1a", "--out", "/proc/x.svg"], "cannot write /proc/x.svg"),
        (["runs", "--runs", "/etc/hostname"], "/etc/hostname is a file, not a folder"),
        (["reproduce", "mixture", "--against", "/nowhere.json"], "is not a ledger that can be read"),
        (["reproduce", "mixture", "--wrong"], "unknown option '--wrong'"),
        (
            ["run", "parity.training", "--task.secret_size", "31"],
            "secret_size must lie between 1 and the 16 bits, not 31",
        ),
        (
            ["run", "parity.training", "--task.secret", "1", "4", "99"],
            "the secret must lie between 0 and 15, not [1, 4, 99]",
        ),
        (["run", "parity.training", "--gpt.heads", "7"], "7 heads do not divide a width of 64"),
        (
            ["run", "parity.training", "--samples", "100"],
            "a budget of 100 samples is smaller than one batch of 128",
        ),
        (["run", "parity.three_steps", "--task.format", "code"], "the theory has the paper's format"),
        (["export", "/nowhere", "out"], "/nowhere"),
        (["frobnicate"], "invalid choice: 'frobnicate'"),
        (["run", "lego.training", "--lengths", "5", "5"], "must grow from one phase to the next"),
        (["run", "lego.training", "--tested", "5", "200"], "a length between 1 and 63"),
        (["run", "lego.training", "--task.action.group", "E8"], "unknown group 'E8'"),
        (
            [
                "run",
                "lego.training",
                "--task.action.group",
                "A4",
                "--task.action.on",
                "cosets",
                "--task.action.subgroup",
                "(0 1)",
            ],
            "which it must divide",
        ),
        (["run", "lego.two_steps", "--vocabulary", "1e12", "--last", "100"], "beyond what numbers hold"),
        ([], "COMMAND"),
    ],
)
def test_mistakes_get_one_sentence_and_exit_code_2(arguments, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, said = main(arguments), capsys.readouterr().err
    assert code == 2 and says in said, said
    assert "Traceback" not in said and said.startswith("stagewise: ")
    assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "runs").exists() or not list((tmp_path / "runs").rglob("*.json"))


def test_a_mistake_in_a_process_of_its_own(tmp_path):
    done = stagewise("run", "mixture.joint", "--task.groups", "1", cwd=tmp_path)
    assert done.returncode == 2 and not done.stdout
    assert done.stderr == "stagewise: mixture: groups must be at least 2, not 1 (set --task.groups)\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["list"],
        ["list", "--json"],
        ["runs"],
        ["run", "mixture.joint", "--help"],
        ["run", "mixture.rates", "--help"],
        ["list", "mixture.fig1a"],
    ],
)
def test_quick_answers_import_no_jax(arguments, tmp_path):
    script = (
        f"import sys; from stagewise.commands.main import main\ntry: main({arguments!r})\nexcept SystemExit: "
        "pass\nassert 'jax' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    piped = f"{sys.executable} -m stagewise list lego | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", piped], capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("lego: ")


def test_list_json_names_everything(tmp_path):
    listed = json.loads(stagewise("list", "--json", cwd=tmp_path).stdout)
    assert {"mixture.joint", "mixture.three_stages"} <= {e["name"] for e in listed["experiments"]}
    assert "mixture.widths" in {s["name"] for s in listed["studies"]}
    assert "mixture.fig1a" in {c["id"] for c in listed["claims"]}


@pytest.mark.slow
def test_run_and_runs(tmp_path):
    done = stagewise(
        "run", "mixture.joint", "--steps", "50", "--seeds", "2", "--task.groups", "3", cwd=tmp_path
    )
    assert done.returncode == 0 and "seeds: 2, of which none diverged" in done.stdout, done.stderr
    staged = stagewise("run", "mixture.three_stages", "--width", "infinite", cwd=tmp_path)
    assert "stage 3: 1 event" in staged.stdout, staged.stderr
    listed = stagewise("runs", cwd=tmp_path).stdout
    assert listed.count("finished") == 2


@pytest.mark.slow
def test_runs_says_of_each_what_is_true_of_its_files(tmp_path):
    stagewise("run", "mixture.joint", "--steps", "50", "--seeds", "2", cwd=tmp_path)
    stagewise("run", "mixture.joint", "--steps", "60", "--seeds", "2", cwd=tmp_path)
    one, other = sorted((tmp_path / "runs").glob("*/*/*/result.json"))
    trajectory = one.parent / "trajectory.nc"
    trajectory.write_bytes(bytes(len(trajectory.read_bytes())))
    (other.parent / "config.json").write_text("{")
    first, second, _ = stagewise("runs", cwd=tmp_path).stdout.splitlines()
    assert "damaged" in first and "finished" not in first and "steps" in first
    assert "damaged" in second and "settings that cannot be read" in second and "by default" not in second


@pytest.mark.parametrize("what, says", [("a file", "is a file"), ("a link", "is a link to nothing")])
def test_a_runs_folder_that_is_none_is_refused(what, says, tmp_path, monkeypatch):
    place = tmp_path / "place"
    place.write_text("") if what == "a file" else place.symlink_to(tmp_path / "nowhere")
    monkeypatch.setenv("STAGEWISE_RUNS", str(place))
    for command in (["runs"], ["run", "mixture.joint", "--steps", "50"]):
        done = stagewise(*command, cwd=tmp_path)
        assert done.returncode == 2 and says in done.stderr, done.stderr


@pytest.mark.slow
def test_a_figure_says_which_folders_it_makes(tmp_path):
    drawn = stagewise("figure", "mixture.fig1a", "--out", "new/folder/fig.svg", cwd=tmp_path)
    assert drawn.returncode == 0, drawn.stderr
    assert f"{tmp_path / 'new/folder'} was not there: it is made" in drawn.stderr


def long_run(tmp_path):
    command = [
        sys.executable,
        "-m",
        "stagewise",
        "run",
        "mixture.joint",
        "--steps",
        "3000000",
        "--seeds",
        "8",
    ]
    return subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def stopped(process, sent):
    process.send_signal(sent)
    _, said = process.communicate(timeout=300)
    assert (
        process.returncode == 130
        and "stagewise: interrupted" in said.splitlines()[-1]
        and "Traceback" not in said
    )


@pytest.mark.parametrize("sent", some_fast([signal.SIGINT, signal.SIGTERM], signal.SIGINT))
def test_a_request_to_stop_is_one_sentence_and_saves_what_is_done(tmp_path, sent):
    process = long_run(tmp_path)
    assert "chunks" in process.stderr.readline()  # it has begun
    time.sleep(8)
    stopped(process, sent)
    assert list(tmp_path.glob("runs/*/*/*/checkpoint.safetensors"))


@pytest.mark.slow
@pytest.mark.parametrize("after", [1.5, 2.5, 3.5])
def test_a_request_to_stop_is_taken_while_starting_up(tmp_path, after):
    process = long_run(tmp_path)
    time.sleep(after)
    stopped(process, signal.SIGINT)


def test_a_request_lost_in_a_callback_is_remembered_and_not_shown():
    script = """
import gc, os, signal
from stagewise.lab.execute import interrupt
from tests.tiers import some_fast
interrupt.listen()
def callback(phase, info):
    if phase == "start":
        os.kill(os.getpid(), signal.SIGINT)
gc.callbacks.append(callback)
gc.collect()
gc.callbacks.remove(callback)
try:
    interrupt.check()
except KeyboardInterrupt:
    print("remembered")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout == "remembered\n" and done.stderr == "", done.stderr


def test_a_bad_environment_variable_is_one_sentence(tmp_path):
    words = [
        sys.executable,
        "-m",
        "stagewise",
        "run",
        "mixture.joint",
        "--steps",
        "20",
        "--seeds",
        "1",
    ]
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"STAGEWISE_CHECKPOINT_SECONDS": "x"},
    )
    assert (
        done.returncode == 2
        and "STAGEWISE_CHECKPOINT_SECONDS must be a number above 0, not 'x'" in done.stderr
        and done.stderr.count("\n") == 1
    )


@pytest.mark.slow
def test_readme_commands_run(tmp_path):
    """Every command line of the README's tour, as printed."""
    readme = (ROOT / "README.md").read_text()
    commands = re.findall(r"^\$ stagewise (.*?)(?: *#.*)?$", readme, re.M)
    assert len(commands) >= 5
    for command in commands:
        if not command.startswith("reproduce --preset"):  # minutes: everything at standard
            done = stagewise(*shlex.split(command), cwd=tmp_path)
            assert done.returncode == 0, (command, done.stderr)


@pytest.mark.slow
def test_readme_python_runs(tmp_path):
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[1]
    done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_every_name_there_is_can_be_listed(capsys):
    from stagewise.lab import catalogue

    kinds = (catalogue.papers, catalogue.experiments, catalogue.studies, catalogue.claims, catalogue.figures)
    names = {name for kind in kinds for name in kind()}
    assert len(names) > 400
    for name in names:
        assert main(["list", name]) == 0
        told = capsys.readouterr()
        assert told.out.startswith(name) and not told.err
    for name in catalogue.experiments() | catalogue.studies():
        assert main(["run", name, "--help"]) == 0
        assert name in capsys.readouterr().out


def test_a_name_is_that_of_one_thing_and_of_its_picture():
    from stagewise.lab import catalogue
    from stagewise.lab.judge.ledger import experiments_of
    from stagewise.lab.spec.study import names

    experiments, studies, claims = catalogue.experiments(), catalogue.studies(), catalogue.claims()
    assert not set(experiments) & set(studies) and not set(claims) & (set(experiments) | set(studies))
    for name, figure in catalogue.figures().items():
        drawn = names(figure.needs)
        if name in claims:
            needs = claims[name].needs
            assert drawn & names(needs) or not experiments_of(claims[name].needs_at("quick")), name
        elif name in studies:
            assert studies[name].base.name in drawn, name
        elif name in experiments:
            assert name in drawn, name


def test_a_name_that_is_nearly_right_is_hinted_at(capsys):

    for words in (["list", "mixtrue"], ["reproduce", "mixtrue"], ["report", "mixtrue"]):
        assert main(words) == 2
        assert "did you mean mixture?" in capsys.readouterr().err
