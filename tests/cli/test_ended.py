"""Commands that are ended before their time, or that cannot print or write what they found."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import typer

from polypath import plots
from polypath.cli import signals
from polypath.results import OutputError, Recording

from ..processes import LIMIT_S, as_in_a_terminal, wait
from ..slow import others_slow, slow

#: Heard whatever the tests were started under, such as nohup.
COMMAND = (
    sys.executable,
    "-c",
    "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL); from polypath.command import main; main()",
)

#: Writes a file once it loops, and loops in the runs of odd seeds only.
LOOP = """
import pathlib

class Loop:
    def __init__(self, seed=1):
        self.seed = seed

    def select(self, view):
        if self.seed % 2:
            pathlib.Path("looping").touch()
            while True:
                pass
        return next((path.index for path in view.paths if path.ready), None)
"""

#: Has the first Ctrl-C come while it is destroyed, where Python drops the exception.
DESTROYED = """
import os, pathlib, signal

class Destroyed:
    def select(self, view):
        return next((path.index for path in view.paths if path.ready), None)

    def __del__(self):
        if not pathlib.Path("destroyed").exists():
            pathlib.Path("destroyed").touch()
            os.kill(os.getpid(), signal.SIGINT)
"""

SCENARIO = """
name = "loop"
duration = "100 ms"

[host.client]
[host.server]

[link.path0]
ends = ["client", "server"]
rate = "10 Mbps"
delay = "5 ms"

[[application]]
name = "iperf"
kind = "bulk"
transport = "mptcp"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "loop.py").write_text(LOOP)
    (tmp_path / "plain.toml").write_text(SCENARIO)
    (tmp_path / "loop.toml").write_text(SCENARIO + '[defaults]\nscheduler = { kind = "loop.py:Loop", seed = 1 }\n')
    return tmp_path


def started(home: Path, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=home,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        **{"preexec_fn": as_in_a_terminal, **options},
    )


def polypath(home: Path, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    given: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run([*COMMAND, *arguments], cwd=home, text=True, check=False, timeout=120, **given)


def is_gone(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def ended_by(process: subprocess.Popen[str], number: int, home: Path) -> tuple[int, str, str]:
    """Sends the signal once the scheduler loops; the exit code, and what was printed."""
    wait((home / "looping").exists)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    wait(lambda: is_gone(process.pid))
    assert "Traceback" not in err
    return process.returncode, out, err


CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


@pytest.mark.parametrize("number", CODES)
def test_a_run_that_loops_in_python_ends_and_is_kept(home: Path, number: int) -> None:
    process = started(home, "run", "loop.toml", "--out", "out", "--plot")
    code, out, err = ended_by(process, number, home)
    assert code == CODES[signal.Signals(number)]
    assert "interrupted at 0.0" in out
    word = "interrupted" if number == signal.SIGINT else "terminated"
    told = "polypath: loop.toml runs code with your rights: loop.py\n"
    assert err == f"{told}warning: the run was interrupted: no figures are drawn\n{word}\n"
    assert Recording.load(home / "out").metadata.interrupted


#: A file that waits for ever while it is loaded, or while an instance is made.
WAITS = {
    "loaded": """
class Waits:
    {method}

import pathlib
pathlib.Path("looping").touch()
while True:
    pass
""",
    "made": """
class Waits:
    {method}

    def __init__(self):
        import pathlib
        pathlib.Path("looping").touch()
        while True:
            pass
""",
}
KINDS = {
    "scheduler": ("defaults.scheduler", "def select(self, view): ..."),
    "path manager": ("defaults.path_manager", "def manage(self, view): ..."),
    "controller": ("controller.routing", "def choose(self, flow, paths): ..."),
}


#: Each value of each of the three in a process at least.
SOME = (
    ("loaded", "scheduler", signal.SIGINT),
    ("made", "path manager", signal.SIGTERM),
    ("made", "controller", signal.SIGINT),
)


@pytest.mark.parametrize(
    ("when", "kind", "number"), others_slow(product(WAITS, KINDS, (signal.SIGINT, signal.SIGTERM)), *SOME)
)
def test_a_script_that_waits_while_it_is_loaded_is_interrupted(home: Path, when: str, kind: str, number: int) -> None:
    setting, method = KINDS[kind]
    (home / "waits.py").write_text(WAITS[when].format(method=method))
    table, _, key = setting.partition(".")
    text = SCENARIO.replace('ends = ["client", "server"]', 'ends = ["client", "r"]')
    text += f'[router.r]\n[link.s]\nends = ["r", "server"]\n[{table}]\n{key} = "waits.py:Waits"\n'
    (home / "waits.toml").write_text(text)
    code, out, err = ended_by(started(home, "run", "waits.toml"), number, home)
    assert code == CODES[signal.Signals(number)]
    word = "interrupted" if number == signal.SIGINT else "terminated"
    assert err == f"polypath: waits.toml runs code with your rights: waits.py\n{word}\n"
    assert out == ""


@pytest.mark.parametrize("leaves", ["raise SystemExit('no more')", slow("raise GeneratorExit('no more')")])
def test_what_a_script_raises_to_end_a_program_is_its_failure(home: Path, leaves: str) -> None:
    made = f"    def __init__(self, seed=1):\n        {leaves}\n"
    (home / "loop.py").write_text(f"class Loop:\n{made}    def select(self, view): ...\n")
    ran = polypath(home, "run", "loop.toml")
    assert ran.returncode == 2
    _told, failed = ran.stderr.splitlines()
    assert re.fullmatch(r"polypath: .*loop\.py:3: (SystemExit|GeneratorExit): no more", failed)


@pytest.mark.parametrize(
    ("jobs", "number"),
    others_slow(product("12", (signal.SIGINT, signal.SIGTERM)), ("1", signal.SIGTERM), ("2", signal.SIGINT)),
)
def test_a_sweep_that_loops_in_python_ends_and_keeps_what_is_done(home: Path, number: int, jobs: str) -> None:
    axis = "defaults.scheduler.seed=2,4,5"
    process = started(home, "run", "loop.toml", "--vary", axis, "--jobs", jobs, "--out", "out")
    wait(lambda: len(list((home / "out").glob("*/manifest.json"))) == 2)
    code, _, err = ended_by(process, number, home)
    assert code == CODES[signal.Signals(number)]
    word = "interrupted" if number == signal.SIGINT else "terminated"
    _told, *said = err.splitlines()
    assert said == ["2 of 3 points are done; the same command goes on from there", word]
    assert sorted(path.name for path in (home / "out").iterdir()) == [
        "inputs",
        "points.jsonl",
        "scenario.toml",
        "seed=2",
        "seed=4",
        "sweep.json",
    ]
    states = [point["state"] for point in json.loads((home / "out" / "sweep.json").read_text())["points"]]
    assert set(states) == {"done", "missing"}
    axis = "defaults.scheduler.seed=2,4,6"
    assert polypath(home, "run", "loop.toml", "--vary", axis, "--jobs", "1", "--out", "out").returncode == 0
    states = [point["state"] for point in json.loads((home / "out" / "sweep.json").read_text())["points"]]
    assert states == ["done"] * 3


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_signal_that_a_destructor_swallows_ends_a_sweep_all_the_same(home: Path, jobs: str) -> None:
    (home / "destroyed.py").write_text(DESTROYED)
    (home / "destroyed.toml").write_text(SCENARIO + '[defaults]\nscheduler = "destroyed.py:Destroyed"\n')
    ran = polypath(home, "run", "destroyed.toml", "--vary", "seeds=50", "--jobs", jobs, "--out", "out")
    assert (ran.returncode, (home / "destroyed").exists()) == (130, True)
    assert re.search(
        r"^\d+ of 50 points are done; the same command goes on from there\ninterrupted\n$", ran.stderr, re.M
    )
    assert 0 < len(list((home / "out").glob("*/manifest.json"))) < 50


def test_an_error_made_of_an_interrupt_is_the_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    received = signals._Received()
    monkeypatch.setattr(signals, "_received", received)
    with pytest.raises(ValueError, match="of its own"), signals.unwrapped():
        raise ValueError("of its own")

    def wrap(error: Exception) -> None:
        with contextlib.suppress(KeyboardInterrupt):
            received(signal.SIGINT, None)
        raise error

    for error, told in (
        (ValueError("wrapped"), KeyboardInterrupt),
        (OutputError("full"), OutputError),
        (typer.Exit(1), typer.Exit),
    ):
        signals.forgive()
        with pytest.raises(told), signals.unwrapped():
            wrap(error)


def test_an_algorithm_that_catches_everything_ends_at_the_third_signal(home: Path) -> None:
    stubborn = LOOP.replace(
        "            while True:\n                pass\n",
        "            while True:\n                try:\n                    pass\n"
        "                except BaseException:\n                    pass\n",
    )
    (home / "loop.py").write_text(stubborn)
    process = started(home, "run", "loop.toml", "--out", "out")
    wait((home / "looping").exists)
    end = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < end:
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    process.communicate()
    assert process.returncode in (-signal.SIGINT, 130)
    (home / "loop.py").write_text(LOOP)
    assert polypath(home, "run", "plain.toml", "--out", "out").returncode == 0
    assert not list((home / "out").glob(".*"))


@pytest.mark.parametrize(("ignored", "code"), [(False, -signal.SIGINT), (True, 7)])
def test_ctrl_c_ends_a_command_that_still_imports_its_parts_without_a_word(
    tmp_path: Path, ignored: bool, code: int
) -> None:
    (tmp_path / "typer.py").write_text("import os, signal, sys\nos.kill(os.getpid(), signal.SIGINT)\nsys.exit(7)\n")
    before = signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.SIG_DFL)
    try:
        ran = polypath(tmp_path, "labs")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (ran.returncode, ran.stderr) == (code, "")


class TestFigures:
    @pytest.fixture
    def stopped(self, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
        def stop(*given: Any, **options: Any) -> None:
            raise request.param

        monkeypatch.setattr(plots, "save_all", stop)

    @pytest.mark.parametrize(
        ("stopped", "code", "words"),
        [
            (KeyboardInterrupt(), 130, "is complete but has no figures\ninterrupted\n"),
            (OutputError("cannot write rate.png: File too large"), 2, "no figures: cannot write rate.png: File too l"),
        ],
        indirect=["stopped"],
    )
    @pytest.mark.usefixtures("stopped", "engine")
    def test_what_stops_them_does_not_lose_the_run(
        self, scenario: Path, tmp_path: Path, polypath: Any, code: int, words: str
    ) -> None:
        out = tmp_path / "out"
        outcome = polypath("run", scenario, "--out", out, "--plot")
        assert outcome.code == code
        assert words in outcome.err
        assert "iperf" in outcome.out
        assert Recording.load(out).metadata.scenario == "small"
        assert not (out / "plots").exists()
        assert not list(out.glob(".*"))


class TestStandardOutput:
    @pytest.mark.parametrize("arguments", [("run", "plain.toml"), ("labs",), ("schema",)])
    def test_full(self, home: Path, arguments: tuple[str, ...]) -> None:
        with Path("/dev/full").open("w") as full:
            ran = polypath(home, *arguments, stdout=full)
        line = "polypath: cannot write to standard output: No space left on device\n"
        assert (ran.returncode, ran.stderr) == (2, line)

    def test_a_full_one_does_not_lose_the_run(self, home: Path) -> None:
        with Path("/dev/full").open("w") as full:
            ran = polypath(home, "run", "plain.toml", "--out", "out", stdout=full)
        assert ran.returncode == 2
        assert Recording.load(home / "out").metadata.scenario == "loop"

    def test_closed_from_the_start(self, home: Path) -> None:
        script = 'exec "$@" >&-'
        ran = subprocess.run(
            ["sh", "-c", script, "sh", *COMMAND, "run", "plain.toml", "--out", "out"],
            cwd=home,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        warning = "warning: standard output is closed: results are not shown\n"
        assert (ran.returncode, ran.stderr) == (0, f"{warning}results in out\n")
        assert Recording.load(home / "out").metadata.scenario == "loop"

    def test_nobody_reads_it_any_more_but_every_result_is_written(self, home: Path) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        try:
            length = ("--set", "application.iperf.duration=100 ms")
            ran = polypath(home, "run", "aggregation", *length, "--out", "out", stdout=writer)
        finally:
            os.close(writer)
        assert (ran.returncode, ran.stderr) == (0, "results in out\n")
        assert len(list((home / "out").glob("*/manifest.json"))) == 4

    @pytest.mark.parametrize("encoding", ["ascii", slow("latin-1"), "utf-8"])
    def test_of_another_encoding(self, home: Path, encoding: str) -> None:
        environment = os.environ | {"PYTHONIOENCODING": encoding}
        ran = polypath(home, "run", "plain.toml", env=environment, encoding=encoding)
        assert (ran.returncode, ran.stderr) == (0, "")
        arrow = "→" if encoding == "utf-8" else ">"
        assert f"10.0.0.1:32768 {arrow} 10.0.0.2:5001" in ran.stdout


class TestStandardError:
    @pytest.mark.parametrize("unread", [False, True])
    def test_what_cannot_be_said_changes_nothing(self, home: Path, unread: bool) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        with Path("/dev/full").open("w") as full:
            stderr = writer if unread else full
            ran = polypath(home, "run", "plain.toml", "--out", "out", stderr=stderr)
            assert ran.returncode == 0
            assert "10.0.0.1:32768" in ran.stdout
            assert Recording.load(home / "out").metadata.scenario == "loop"
            assert polypath(home, "run", "missing.toml", stderr=stderr).returncode == 2
            assert polypath(home, "run", "--missing", stderr=stderr).returncode == 2
        os.close(writer)


def _limited(number: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (number, number))


class TestDisk:
    @pytest.mark.parametrize(
        ("size", "more", "words"),
        [
            (6000, (), "polypath: cannot write out/series/"),
            (6000, ("--pcap", "hosts"), "polypath: cannot write client.pcapng: File too large"),
            (
                30_000,
                ("--plot",),
                "polypath: the result in out is complete but has no figures: cannot write out/plots/",
            ),
        ],
    )
    def test_full(self, home: Path, size: int, more: tuple[str, ...], words: str) -> None:
        ran = polypath(home, "run", "plain.toml", "--out", "out", *more, preexec_fn=lambda: _limited(size))
        assert ran.returncode == 2
        assert ran.stderr.startswith(words)
        assert ran.stderr.count("\n") == 1
        assert not list(home.rglob(".polypath*"))
        assert (home / "out").exists() == ("--plot" in more)

    @pytest.mark.parametrize("more", [("--pcap", "hosts"), ("--qlog",)])
    def test_full_ends_a_run_that_would_take_hours(self, home: Path, more: tuple[str, ...]) -> None:
        settings = ("duration=100000 s", "application.iperf.transport=quic")
        made = [word for setting in settings for word in ("--set", setting)]
        limited = {"preexec_fn": lambda: _limited(6000)}
        ran = polypath(home, "run", "plain.toml", *made, "--out", "out", *more, **limited)
        assert ran.returncode == 2
        last = ran.stderr.splitlines()[-1]
        assert re.fullmatch(r"polypath: cannot write (client\.pcapng|.*\.sqlog): File too large", last)
        assert not list(home.rglob(".polypath*"))

    def test_full_in_a_sweep(self, home: Path) -> None:
        ran = polypath(
            home, "run", "plain.toml", "--vary", "seeds=2", "--out", "out", preexec_fn=lambda: _limited(6000)
        )
        assert ran.returncode == 2
        assert "polypath: loop at seed=1: cannot write " in ran.stderr
        assert "File too large" in ran.stderr
        assert "internal error" not in ran.stderr

    def test_full_while_a_result_is_exported(self, home: Path) -> None:
        assert polypath(home, "run", "plain.toml", "--out", "out", "--plot").returncode == 0
        for form in ("csv", "iperf3", "xplot"):
            ran = polypath(home, "export", form, "out", "-o", "made", preexec_fn=lambda: _limited(500))
            assert ran.returncode == 2
            assert re.fullmatch(r"polypath: cannot write .*(made|\.csv): File too large\n", ran.stderr), form
            assert not (home / "made").exists()

    def test_a_table_that_is_cut_short(self, home: Path) -> None:
        assert polypath(home, "run", "plain.toml", "--out", "out").returncode == 0
        table = home / "out" / "series" / "subflow_ends.parquet"
        table.write_bytes(table.read_bytes()[:-100])
        ran = polypath(home, "show", "out")
        assert ran.returncode == 2
        assert ran.stderr.count("\n") == 1
        assert "subflow_ends.parquet: it is cut short" in ran.stderr


NUDGED = """
import os, signal, sys
from polypath.cli import signals
signal.signal(signal.SIGTERM, lambda number, frame: None)
with signals.heard_while_reading():
    seen = []
    signal.signal(signal.SIGURG, lambda number, frame: seen.append(number))
    os.kill(os.getpid(), signal.SIGTERM)
    while not seen:
        signal.pause()
print("heard")
"""


def test_a_read_that_begins_after_a_signal_is_ended_by_another() -> None:
    """Between its look at signals and its wait readline hears none: something has to come after."""
    done = subprocess.run([sys.executable, "-c", NUDGED], capture_output=True, text=True, timeout=LIMIT_S)
    assert (done.stdout, done.stderr) == ("heard\n", "")
