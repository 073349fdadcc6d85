"""The window on running work: real processes, a real browser, hostile folders."""

import json
import shutil
import signal
import subprocess
import sys
import time
from http.client import HTTPConnection

import pytest

from tests.lab.browsing import until, watched

pytestmark = pytest.mark.slow

LONG = [
    "composition.encoding",
    "--steps",
    "200000",
    "--evaluations",
    "4000",
    "--seeds",
    "2",
    "--form",
    "readouts",
]


def stagewise(*arguments, **more) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-m", "stagewise", *arguments], text=True, **more)


@pytest.fixture
def server(runs, server_of):
    runs.mkdir(parents=True, exist_ok=True)
    return server_of(runs)


@pytest.fixture
def server_of(oracle):
    """`stagewise serve` for a folder on a free port: asks it for a path, answers (status, headers, body)."""
    oracle("starlette")
    running = []

    def serve(folder):
        ask, process = _served(folder)
        running.append(process)
        return ask

    yield serve
    for process in running:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) in (0, 130)


def _served(folder):
    process = stagewise("serve", "--runs", str(folder), "--port", "0", stdout=subprocess.PIPE)
    address = process.stdout.readline().split(" at ")[1].split()[0]
    port = int(address.rstrip("/").rpartition(":")[2])

    def ask(path: str, host: str | None = None):
        connection = HTTPConnection("127.0.0.1", port, timeout=120)
        connection.putrequest("GET", path, skip_host=True)
        connection.putheader("Host", host or f"127.0.0.1:{port}")
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()

    ask.address = address
    return ask, process


@pytest.fixture
def finished(runs):
    """Two finished runs of an experiment that takes a second."""
    import stagewise as sw

    return [
        sw.run("parity.embeddings", runs=runs, seeds=2),
        *(sw.run("mixture.symmetric", runs=runs, learning_rate=rate, steps=50) for rate in (0.1, 0.2)),
    ]


def test_what_is_stored_is_listed_shown_and_compared(finished, server):
    status, headers, body = server("/api/runs")
    listed = json.loads(body)["runs"]
    assert status == 200 and {run["state"] for run in listed} == {"finished"} and len(listed) == 3
    assert (
        "default-src 'none'" in headers["content-security-policy"]
        and headers["x-content-type-options"] == "nosniff"
    )
    alike = [run["folder"] for run in listed if run["experiment"] == "mixture.symmetric"]
    shown = json.loads(server(f"/api/run/{alike[0]}")[2])
    assert shown["chart"] and shown["finished"] and shown["settings"]["steps"] == "50"
    both = json.loads(server("/api/compare?" + "&".join(f"run={folder}" for folder in alike))[2])
    assert both["differing"] == {"learning_rate": ["0.1", "0.2"]} or both["differing"] == {
        "learning_rate": ["0.2", "0.1"]
    }
    other = next(run["folder"] for run in listed if run["experiment"] == "parity.embeddings")
    assert server(f"/api/compare?run={alike[0]}&run={other}")[0] == 404


def test_nothing_outside_of_the_folder_is_served(runs, server, tmp_path):
    secret = tmp_path / "secret.json"
    secret.write_text('{"secret": 1}')
    report = runs / "reports" / "mine.quick"
    (report / "figures").mkdir(parents=True)
    (report / "report.html").write_text("<h1>mine</h1>")
    (report / "link.json").symlink_to(secret)
    (runs / "reports" / "away").symlink_to(tmp_path)
    assert server("/reports/mine.quick/report.html")[0] == 200
    assert "sandbox" in server("/reports/mine.quick/report.html")[1]["content-security-policy"]
    tried = [
        "/reports/mine.quick/link.json",
        "/reports/away/secret.json",
        "/reports/../secret.json",
        "/reports/mine.quick/../../../secret.json",
        "/reports/..%2f..%2fsecret.json/x",
        "/reports/mine.quick/%2e%2e%2f%2e%2e%2f%2e%2e%2fsecret.json",
        "/reports/mine.quick/..%5c..%5csecret.json",
        "/reports//etc/passwd",
        "/reports/mine.quick/figures/%00",
        "/api/run/../../secret.json",
        "/api/run/%2e%2e/%2e%2e/secret.json",
        "/api/run/a/b/..%2fc",
        "/..%2fsecret.json",
        "/%2e%2e/secret.json",
        "/reports/%c0%ae%c0%ae/secret.json",
    ]
    for path in tried:
        status, _, body = server(path)
        assert status in (400, 404) and b"secret" not in body.replace(b"secret.json", b""), path
    assert server("/", host="evil.example")[0] == 400  # a name that some page made point here


@pytest.mark.oracle
def test_hostile_names_and_broken_folders_do_no_harm(runs, server, browser):
    evil = "<img src=x onerror=alert(1)>"
    for n, (name, config) in enumerate(
        {
            evil: {
                "format": 1,
                "experiment": evil,
                "settings": {"<script>alert(2)</script>": evil},
                "seeds": [0, 1],
                "code": "x",
            },
            "mixture.joint": {
                "format": 1,
                "experiment": "mixture.joint",
                "settings": {"task": {"groups": "</td><script>alert(3)</script>"}},
                "seeds": [0, 1],
                "code": "x",
            },
            "newer": {"format": 99},
        }.items()
    ):
        folder = runs / name / f"{n}" / "seeds-0-1.00000000"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(config))
    half = runs / "mixture.joint" / "half" / "seeds-0-1.00000000"
    half.mkdir(parents=True)
    (half / "config.json").write_text('{"format": 1, "exper')
    page = browser.new_page()
    wrong, said = watched(page), []
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.goto(server.address)
    page.wait_for_selector("#rows tr")
    assert page.locator("#rows tr").count() == 4 and evil in page.locator("#rows").inner_text()
    for row in range(4):
        page.locator("#rows button").nth(row).click()
        until(page, "document.querySelector('#shown div').innerText != 'reading'")
    shutil.rmtree(runs / "mixture.joint")  # a folder vanishes
    until(page, "document.querySelectorAll('#rows tr').length == 2")
    assert not said and page.locator("main img, main script").count() == 0
    assert all("404" in text for text in wrong)


BROKEN = {
    "infinite seconds": {"result.json": '{"format": 1, "seconds": 1e999, "finished": "x", "files": {}}'},
    "seconds in words": {"result.json": '{"format": 1, "seconds": "abc", "finished": "x"}'},
    "no number": {"failed.json": '{"reason": NaN}'},
    "seeds": {
        "config.json": (
            '{"format": 1, "experiment": "mixture.joint", "settings": {}, "seeds": [0, Infinity], '
            '"code": "x"}'
        )
    },
    "half a letter": {
        "config.json": (
            '{"format": 1, "experiment": "mixture.joint", "settings": {"a": "\\ud800"}, "seeds": '
            '[0, 1], "code": "x"}'
        )
    },
    "a number for a name": {
        "config.json": '{"format": 1, "experiment": 7, "settings": {}, "seeds": [0, 1], "code": "x"}'
    },
    "no end": {"config.json": "[" * 100_000},
    "a list of settings": {
        "config.json": (
            '{"format": 1, "experiment": "mixture.joint", "settings": [], "seeds": [0, 1], "code": "x"}'
        )
    },
}


def test_no_folder_takes_the_list_of_the_others_along(runs, finished, server, tmp_path):
    import os

    whole = '{"format": 1, "experiment": "mixture.joint", "settings": {}, "seeds": [0, 1], "code": "x"}'
    for n, files in enumerate(BROKEN.values()):
        folder = runs / "mixture.joint" / f"bad{n}" / "seeds-0-1.00000000"
        folder.mkdir(parents=True)
        for name, content in ({"config.json": whole} | files).items():
            (folder / name).write_text(content)
    pipe = runs / "mixture.joint" / "pipe" / "seeds-0-1.00000000"
    pipe.mkdir(parents=True)
    os.mkfifo(pipe / "config.json")
    bytes_only = os.path.join(os.fsencode(runs), b"mixture.joint", b"\xff\xfe", b"seeds-0-1.00000000")
    os.makedirs(bytes_only)
    with open(os.path.join(bytes_only, b"config.json"), "w") as opened:
        opened.write(whole)
    outside = tmp_path / "outside" / "seeds-0-1.00000000"
    outside.mkdir(parents=True)
    (outside / "config.json").write_text(whole.replace("{}", '{"secret": "TOP"}'))
    (runs / "mixture.joint" / "away").symlink_to(outside.parent)
    (runs / "mixture.joint" / "in" / "seeds-0-1.00000000").mkdir(parents=True)
    (runs / "mixture.joint" / "in" / "seeds-0-1.00000000" / "config.json").symlink_to(outside / "config.json")
    status, _, body = server("/api/runs")
    listed = json.loads(body)["runs"]
    assert status == 200 and sum(run["state"] == "finished" for run in listed) == 3 and b"TOP" not in body
    assert len(listed) == 3 + len(BROKEN) + 2
    [good] = [run["folder"] for run in listed if run["experiment"] == "parity.embeddings"]
    (runs / good / "trajectory.nc").write_bytes(b"CDF\x01" + bytes(range(200)))
    assert server(f"/api/run/{good}")[0] == 404 and server(f"/api/run/a/b/{'c' * 300}")[0] == 404
    status, headers, _ = server("/no/such/place")
    assert status == 404 and "default-src 'none'" in headers["content-security-policy"]


def test_a_paper_is_told_from_what_is_stored(quick_folder, server_of):
    ask = server_of(quick_folder)
    before = _contents(quick_folder)
    ready = json.loads(ask("/api/figures")[2])
    assert {"paper": "mixture", "preset": "quick"} in ready["pages"] and len(ready["figures"]) >= 20
    status, headers, body = ask("/told/mixture/quick")
    assert (
        status == 200
        and "sandbox" in headers["content-security-policy"]
        and b"mixture.scrub" in body
        and b"claim-mixture.fig1a" in body
    )
    assert ask("/told/mixture/paper")[0] == ask("/told/none/quick")[0] == 404
    assert _contents(quick_folder) == before


@pytest.mark.oracle
def test_a_run_that_is_training_is_shown_and_updates(runs, server, browser, tmp_path):
    training = stagewise(
        "run", *LONG, "--runs", str(runs), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    try:
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        wrong = watched(page)
        page.goto(server.address)
        until(page, "document.querySelector('.running')?.dataset.records > 0", 120)
        first, done = (
            page.evaluate(f"Number(document.querySelector('.running').{what})")
            for what in ("dataset.records", "querySelector('progress').value")
        )
        assert (
            "steps/s" in page.locator(".running .how").inner_text()
            and page.locator(".running svg").count() == 1
        )
        until(
            page,
            f"Number(document.querySelector('.running').dataset.records) > {first} && "
            f"document.querySelector('.running progress').value > {done}",
            60,
        )
        page.screenshot(path=tmp_path / "live.png")
        before = _contents(runs)
    finally:
        training.send_signal(signal.SIGKILL)
        training.wait()
    until(page, "document.querySelectorAll('.running').length == 0", 30)
    assert "unfinished" in page.locator("#rows").inner_text() and not wrong
    after = _contents(runs)
    time.sleep(3)
    assert set(before) <= set(after) and _contents(runs) == after  # watching writes nothing


def _contents(folder) -> dict:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_what_cannot_be_served_is_refused(runs, oracle):
    oracle("starlette")
    for arguments, said in (
        (["--runs", str(runs / "none")], "there is no folder"),
        (["--port", "99999"], "a port lies between"),
        (["--host", "no.such.host.invalid"], "cannot listen"),
    ):
        runs.mkdir(exist_ok=True)
        given = arguments if "--runs" in arguments else ["--runs", str(runs), *arguments]
        refused = stagewise("serve", *given, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        _, error = refused.communicate(timeout=60)
        assert refused.returncode == 2 and said in error and "Traceback" not in error
