"""Whole commands in their own process, on the real simulator."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from polypath.results import Recording

from ..processes import LIMIT_S, captured, wait
from ..slow import others_slow

COMMAND = (sys.executable, "-m", "polypath")

LONG = """
name = "long"
duration = "10000 s"

[host.client]
[host.server]

[link.path0]
ends = ["client", "server"]
rate = "100 Mbps"
delay = "5 ms"

[[application]]
name = "iperf"
kind = "bulk"
transport = "tcp"
"""


def polypath(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    words = [*COMMAND, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)


def test_summary_and_series_agree(tmp_path: Path) -> None:
    ran = polypath("run", "aggregation", "--run", "tcp", "--out", tmp_path)
    assert (ran.returncode, ran.stderr) == (0, f"results in {tmp_path}\n")
    folder = tmp_path / "tcp"
    connection = json.loads((folder / "summary.json").read_text())["connections"][0]
    series = pl.read_parquet(folder / "series" / "connections.parquet").filter(side="server")
    assert series["delivered_bytes"].max() == connection["bytes"]
    assert series["delivered_bytes"].is_sorted()
    rates = connection["goodput_series"]
    edges = [connection["start_s"], *rates["t_s"]]
    carried = sum(rate * (b - a) for rate, a, b in zip(rates["mbps"], edges, edges[1:], strict=False)) / 8 * 1e6
    assert carried == pytest.approx(connection["bytes"], rel=1e-6)


def test_figures_change_neither_plan_nor_hash(tmp_path: Path) -> None:
    length = ("--set", "application.iperf.duration=200 ms")
    found = []
    for more in ((), ("--plot",)):
        out = tmp_path / ("plain", "drawn")[bool(more)]
        assert polypath("run", "aggregation", "--run", "mptcp", *length, *more, "--out", out).returncode == 0
        metadata = Recording.load(out / "mptcp").metadata
        found.append((metadata.plan_sha256, metadata.recording_sha256, (out / "mptcp" / "scenario.toml").read_text()))
    assert found[0] == found[1]
    assert (tmp_path / "drawn" / "mptcp" / "plots" / "sequence-beginning.png").exists()


def test_ctrl_c_keeps_what_there_is(tmp_path: Path) -> None:
    scenario = tmp_path / "long.toml"
    scenario.write_text(LONG)
    out = tmp_path / "out"
    process = subprocess.Popen(
        [*COMMAND, "run", str(scenario), "--out", str(out), "--pcap", "hosts"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # a tenth of a second of its 10,000
    wait(lambda: captured(out) > 1_000_000)
    process.send_signal(signal.SIGINT)
    printed, complaints = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130
    assert "Traceback" not in complaints
    assert "interrupted at" in printed
    assert json.loads((out / "manifest.json").read_text())["interrupted"] is True
    assert json.loads((out / "summary.json").read_text())["interrupted"] is True
    recording = Recording.load(out)
    assert 0 < recording.metadata.end_ns < 10_000 * 10**9
    assert not recording.table("connections").is_empty()
    assert all(path.stat().st_size > 1000 for path in (out / "capture").iterdir())
    assert not list(out.glob(".*"))


@pytest.mark.parametrize("setting", ["scheduler=redundant", "path_manager=default"])
def test_what_does_not_aggregate_fails_the_check(setting: str) -> None:
    ran = polypath("check", "aggregation", "--set", f"defaults.{setting}")
    assert ran.returncode == 1
    assert "MISS" in ran.stdout
    assert ran.stderr == ""


@pytest.mark.parametrize("command", ["algorithms", "schema", "--help"])
def test_a_closed_pipe_is_no_error(command: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ran = subprocess.run([*COMMAND, command], stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(writer)
    assert (ran.returncode, ran.stderr) == (0, "")


#: Two runs of each lab, and what shortens them.
TWO = {
    "aggregation": ("--run", "tcp", "--run", "mptcp", "--set", "application.iperf.duration=500 ms"),
    "backup": ("--run", "normal", "--run", "backup"),
}


@pytest.mark.parametrize("lab", others_slow(TWO, "aggregation"))
def test_captures_are_clean_for_wireshark(lab: str, tmp_path: Path) -> None:
    assert polypath("run", lab, *TWO[lab], "--pcap", "hosts", "--out", tmp_path).returncode == 0
    captures = sorted(tmp_path.glob("*/capture/*.pcapng"))
    assert len(captures) == 4
    for capture in captures:
        assert dissected(capture, "!tcp || _ws.malformed || tcp.checksum.status == 0 || ip.checksum.status == 0") == 0
        assert (dissected(capture, "tcp.options.mptcp.subtype") > 0) == (capture.parent.parent.name != "tcp")


def test_headers_alone_make_the_same_tables(tmp_path: Path) -> None:
    shown = []
    for name, more in (("whole", ()), ("headers", ("--snaplen", "128"))):
        out = tmp_path / name
        run = ("run", "aggregation", "--run", "mptcp", "--set", "application.iperf.duration=500 ms")
        assert polypath(*run, "--pcap", "hosts", "--out", out, *more).returncode == 0
        capture = out / "mptcp" / "capture" / "client.pcapng"
        shown.append((capture.stat().st_size, polypath("trace", capture).stdout))
    (whole, of_whole), (headers, of_headers) = shown
    assert of_headers == of_whole
    assert headers * 5 < whole


def dissected(capture: Path, expression: str) -> int:
    """How many of a capture's frames tshark finds to match."""
    options = ("-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-T", "fields", "-e", "frame.number")
    shark = subprocess.run(
        ["tshark", "-r", str(capture), *options, "-Y", expression], capture_output=True, text=True, check=True
    )
    return len(shark.stdout.split())
