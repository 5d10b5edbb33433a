"""What a run prints, on terminals of any width and into a pipe."""

import os
import subprocess
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console
from tests.handmade_plans import as_plan

from polypath.cli import console, progress
from polypath.results import Recording, metrics, notes, schema

SECOND = 1_000_000_000
BLOCKS = set("▁▂▃▄▅▆▇█")


@pytest.fixture
def width(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> int:
    monkeypatch.setattr(console.out, "width", request.param)
    return int(request.param)


def run(*command: object, **variables: str) -> subprocess.CompletedProcess[str]:
    around = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    words = [str(each) for each in command]
    return subprocess.run(words, check=True, capture_output=True, text=True, env={**around, **variables})


def words(printed: str) -> set[str]:
    return {word for word in printed.split() if not set(word) <= BLOCKS}


@pytest.mark.parametrize("width", [200, 100, 80, 60], indirect=True)
def test_narrow_terminals_lose_the_course_and_no_word(polypath: Any, engine: Any, scenario: Path, width: int) -> None:
    printed = polypath("run", scenario).out
    assert max(map(len, printed.splitlines())) <= width
    everything = {"10.0.0.1:1000", "10.1.0.1:5001", "[fd00::1]:1001", "[fd01::1]:5001,", "66.7%", "transport", "backup"}
    assert everything <= words(printed)
    assert (width < 100) is not bool(BLOCKS & set(printed))


def with_datagram_samples(recording: Recording) -> Recording:
    name = "datagram_samples"
    rows = [
        [SECOND, 2, 100, 0, 0, None],
        [2 * SECOND, 2, 300, 250, 250_000, 2_000_000],
        [3 * SECOND, 2, 600, 500, 500_000, 1_500_000],
    ]
    table = pl.DataFrame(rows, schema=dict(schema.TABLES[name]), orient="row")
    return Recording({**recording.tables, name: table}, recording.plan, recording.metadata)


def test_a_udp_flow_has_a_course_losses_and_jitter(recording: Recording) -> None:
    made = with_datagram_samples(recording)
    cross = metrics.connection(made, "cross")
    assert metrics.goodput_series(made, cross)[1] == [pytest.approx(rate) for rate in (2.0, 2.0)]
    totals = made.table("datagrams").row(0, named=True)
    lost = (totals["sent_packets"] - totals["received_packets"]) / totals["sent_packets"]
    (line,) = notes.of(made, cross, ())
    assert line.startswith(f"cross: {totals['received_packets']:,} of {totals['sent_packets']:,} datagrams arrived, ")
    assert f"{lost:.2%} lost" in line
    assert line.endswith("jitter 1.5 ms")


def test_what_fell_silent_is_said(recording: Recording) -> None:
    (line,) = notes.of(recording, metrics.connection(recording, "msg"), ())
    assert line.endswith("1 unanswered (33%), nothing arrived after 2.0 s")


def test_a_stream_whose_last_block_came_long_before_its_end_did_not_fall_silent(recording: Recording) -> None:
    first, *others = recording.plan["applications"]
    work = {"kind": "stream", "duration_ns": 3 * SECOND}
    made = replace(recording, plan=as_plan({**recording.plan, "applications": [{**first, "work": work}, *others]}))
    iperf = metrics.connection(made, "iperf")
    assert iperf.until_ns == 4 * SECOND
    assert list(notes.of(made, iperf, metrics.subflows(made, iperf))) == []


FAST = """
duration = "1 s"
host = { client = {}, server = {} }
link.fibre = { ends = ["client", "server"], rate = "10 Gbps", delay = "10 us" }
application = [
    { kind = "ping", count = 2, interval = "100 ms" },
    { kind = "cbr", rate = "1 Mbps" },
    { kind = "bulk", size = "1 MB" },
]
"""


def test_microseconds_are_not_printed_as_nothing(polypath: Any, tmp_path: Path) -> None:
    (tmp_path / "fast.toml").write_text(FAST)
    printed = polypath("run", tmp_path / "fast.toml").out
    assert "2 requests, delay median 0.0202 ms, longest 0.0202 ms" in printed
    assert "mean delay 0.011 ms" in printed
    (row,) = [line for line in printed.splitlines() if " → " in line]
    assert " 0.021 " in row


MESSAGES = """
duration = "2 s"
host = { client = {}, server = {} }
link.wifi = { ends = ["client", "server"], rate = "10 Mbps", delay = "10 ms" }
link.lte = { ends = ["client", "server"], rate = "10 Mbps", delay = "30 ms" }
application = [{ kind = "messages", size = "500 B", interval = "20 ms" }]
"""


def test_paths_that_carry_datagrams_have_blanks_that_are_explained(polypath: Any, tmp_path: Path) -> None:
    (tmp_path / "messages.toml").write_text(MESSAGES)
    printed = polypath("run", tmp_path / "messages.toml").out
    rows = [line for line in printed.splitlines() if " → " in line]
    assert rows
    assert not [line for line in rows if "%" in line]
    assert "bytes in datagrams are not counted by path" in printed
    stream = (tmp_path / "messages.toml").read_text().replace('"20 ms" }', '"20 ms", delivery = "stream" }')
    (tmp_path / "messages.toml").write_text(stream)
    printed = polypath("run", tmp_path / "messages.toml").out
    assert [line for line in printed.splitlines() if " → " in line and "%" in line]
    assert "not counted" not in printed


@pytest.mark.parametrize(
    ("shown", "said"),
    [(progress.shown, "a: 2.0 of 5 s simulated"), (progress.points, "a: 2000000000 of 5000000000 points")],
)
def test_a_pipe_gets_a_line_now_and_then(
    shown: Any, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    with shown("a") as callback:
        for passed in (1.0, 9.0, 9.0):
            now[0] += passed
            callback(2 * SECOND, 5 * SECOND)
    assert capsys.readouterr().err.splitlines() == [said]


NASTY = "a\x1b[31mred\x07 [bold]\u202e"


@pytest.mark.parametrize("kind", ["shown", "points", "runs"])
def test_a_bar_shows_what_a_terminal_would_obey(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = StringIO()
    monkeypatch.setattr(progress, "err", Console(file=screen, force_terminal=True, color_system=None, width=120))
    monkeypatch.setattr(progress, "_PATIENCE_S", 0.0)
    with getattr(progress, kind)(NASTY) as tell:
        tell(1) if kind == "runs" else tell(1, 2)
    assert r"a\x1b[31mred\x07 [bold]\u202e" in screen.getvalue()
    assert "\x1b[31m" not in screen.getvalue()
    assert "\x07" not in screen.getvalue()


def test_names_of_any_script_are_drawn_in_silence(tmp_path: Path) -> None:
    path = tmp_path / "fast.toml"
    path.write_text(FAST)
    run(sys.executable, "-m", "polypath", "run", path, "--out", tmp_path / "out", "--plot")
    made = Recording.load(tmp_path / "out")
    named = made.tables["connection_ends"].with_columns(name=pl.lit("\x1b[31m中文 ") + pl.col("name"))
    replace(made, tables={**made.tables, "connection_ends": named}).save(tmp_path / "received")
    done = run(sys.executable, "-m", "polypath", "plot", tmp_path / "received", "--out", tmp_path / "figures")
    assert "\x1b" not in done.stdout + done.stderr
    assert "Warning" not in done.stderr
    assert "site-packages" not in done.stderr


@pytest.mark.parametrize("given", ["0", "-5", "x", "", "9" * 5000])
def test_a_width_that_no_terminal_has_is_left_alone(given: str) -> None:
    usual = run(sys.executable, "-m", "polypath", "algorithms", "scheduler")
    odd = run(sys.executable, "-m", "polypath", "algorithms", "scheduler", COLUMNS=given, LINES=given)
    assert odd.stdout == usual.stdout != ""
    assert run(sys.executable, "-m", "polypath", "--help", COLUMNS=given).stdout.strip()


def test_a_width_is_kept_to() -> None:
    printed = run(sys.executable, "-m", "polypath", "algorithms", "scheduler", COLUMNS="60").stdout
    assert 40 < max(map(len, printed.splitlines())) <= 60
