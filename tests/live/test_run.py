"""Runs in real time.

The links are so slow that carrying their packets takes a hundredth of a processor: what is measured is the network, not
the machine. What ends is waited for.
"""

import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from polypath.engines import EngineError, Options
from polypath.engines.namespaces import logs
from polypath.results import Recording, metrics, schema
from polypath.scenario import Plan

from ..processes import LIMIT_S, running, wait

Plans = Callable[..., Plan]
Run = Callable[..., Recording]

#: Of each path (two_paths.toml), in Mbps.
RATE = 2.0

CODE = (
    "import sys; from polypath.engines.live import LiveEngine; from polypath.scenario import Plan;"
    "from pathlib import Path; LiveEngine().run(Plan.load(Path(sys.argv[1]))).save(Path(sys.argv[2]))"
)


def _goodput(recording: Recording) -> float:
    rate = metrics.goodput(recording, metrics.connection(recording, "bulk"))
    assert rate is not None
    return rate / 1e6


def test_two_paths_carry_more_than_one(live: Run) -> None:
    tcp = live("two_paths", "application.bulk.transport=tcp")
    mptcp = live("two_paths")
    assert 0.4 * RATE < _goodput(tcp) < RATE
    assert _goodput(mptcp) > 1.6 * _goodput(tcp)
    assert {each.interface for each in metrics.subflows(mptcp, metrics.connection(mptcp, "bulk"))} == {"eth0", "eth1"}


def test_every_table_has_its_columns_and_the_path_its_delay(live: Run, tmp_path: Path) -> None:
    recording = live("two_paths", "application.bulk.duration=1 s", options=Options("hosts", tmp_path, segments=True))
    for name, columns in schema.TABLES.items():
        assert dict(recording.table(name).schema) == dict(columns), name
    assert sorted(file.name for file in tmp_path.iterdir()) == ["client.pcapng", "server.pcapng"]
    links = recording.table("link_ends")
    assert int(links.filter(links["name"] == "path0")["sent_packets"].sum()) > 100
    delays = recording.table("requests")["delay_ns"].drop_nulls().to_list()
    # the links' 20 ms there and back, and what a busy machine adds
    assert len(delays) >= 3
    assert all(delay >= 40_000_000 for delay in delays)
    assert recording.metadata.engine == "live"
    segments = recording.table("segments").with_row_index("segment").join(recording.table("headers"), on="segment")
    assert segments.height == recording.table("segments").height
    sent = segments.filter(side="client", kind="data").group_by("connection", "subflow").agg(pl.sum("payload_bytes"))
    ends = recording.table("subflow_ends").select("connection", "subflow", sent="client_sent_bytes")
    both = ends.join(sent, on=["connection", "subflow"], how="full")
    assert both.height == ends.height == 2
    assert both["sent"].equals(both["payload_bytes"].cast(pl.UInt64))
    (join,) = segments.filter((pl.col("flags") == "SYN") & pl.col("options").str.contains("MP_JOIN")).to_dicts()
    assert 0 < join["time_ns"] < recording.metadata.end_ns


def test_iperf3_plays_an_application(live: Run) -> None:
    recording = live("two_paths", "application.bulk.program=iperf3", "application.bulk.duration=2 s", "duration=8 s")
    ends = recording.table("connection_ends").row(0, named=True)
    assert (ends["state"], ends["transport"], ends["client_received_bytes"]) == ("finished", "mptcp", 0)
    assert recording.table("subflow_ends")["interface"].sort().to_list() == ["eth0", "eth1"]
    assert 0.4 < ends["server_received_bytes"] * 8 / 1e6 / (2 * 2 * RATE) < 1


def test_nothing_is_left_of_a_run_that_was_killed(live: Run, plans: Plans, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    plans("two_paths", "duration=60 s", "application.bulk.duration=50 s").save(path)
    with subprocess.Popen([sys.executable, "-c", CODE, str(path), str(tmp_path / "out")]) as runner:
        folder = wait(lambda: _leftovers(runner.pid))[0]
        wait(lambda: (folder / "out" / "app-0-client").exists())
        inside = wait(lambda: _inside(folder))
        runner.send_signal(signal.SIGKILL)
    wait(lambda: not _inside(folder))
    wait(lambda: not folder.exists())
    wait(lambda: not any(map(running, inside)))


def test_an_interrupted_run_keeps_what_it_has(live: Run, plans: Plans, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    plans("two_paths", "duration=60 s", "application.bulk.duration=50 s").save(path)
    with subprocess.Popen([sys.executable, "-c", CODE, str(path), str(tmp_path / "out")]) as runner:
        folder = wait(lambda: _leftovers(runner.pid))[0]
        wait(lambda: len(logs.read_app(folder / "out" / "app-0-server").connections) > 5)
        runner.send_signal(signal.SIGINT)
        assert runner.wait(LIMIT_S) == 0
    assert not folder.exists()
    wait(lambda: not _inside(folder))
    recording = Recording.load(tmp_path / "out")
    assert recording.metadata.interrupted
    (ends,) = recording.table("connection_ends").to_dicts()
    assert 0 < ends["first_byte_ns"] < ends["last_byte_ns"] <= recording.metadata.end_ns
    assert recording.table("links").height >= 5 * recording.table("link_ends").height > 0
    assert "ms late" not in recording.metadata.versions["network"]


def test_a_network_that_fails_in_its_set_up_is_one_line(live: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polypath.engines.namespaces.programs.NAME", "other")
    with pytest.raises(EngineError, match=r"^the network could not be set up: .*guest.* No such file") as caught:
        live("two_paths")
    assert "\n" not in str(caught.value)


def _leftovers(process: int) -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob(f"polypath-live-{process}-*"))


def _inside(folder: Path) -> list[str]:
    """Processes in whose mount namespace the folder is /run/job, seen from outside."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            mounts = (process / "mountinfo").read_text(encoding="utf-8")
        except OSError:
            continue
        if f"{folder.name} /run/job" in mounts:
            found.append(process.name)
    return found
