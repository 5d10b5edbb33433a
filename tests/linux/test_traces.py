"""Packet for packet: what the simulator's TCP sends in the profile linux is what the kernel sends."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from polypath.engines import Options
from polypath.engines.sim import Simulator
from polypath.results import Recording
from polypath.scenario import Scenario

#: Up to here they are the same; where the queue is full, a microsecond of rounding decides which packet it drops.
PACKETS = 1_500

#: The guest writes down when its driver handed a packet over, the simulator when the link took it.
TOLERANCE_S = 50e-6

_FIELDS = ("time_relative", "dstport", "seq", "len", "ack", "flags.push", "window_size")


@dataclass(frozen=True)
class Packet:
    time_s: float
    #: Direction, sequence and acknowledgment number, payload, whether it is pushed, window.
    content: tuple[str, ...]


def packets(capture: Path) -> list[Packet]:
    """Every TCP segment in order, its numbers relative to the SYN's."""
    columns = ["-e", f"frame.{_FIELDS[0]}"] + [word for field in _FIELDS[1:] for word in ("-e", f"tcp.{field}")]
    command = ["tshark", "-r", str(capture), "-Y", "tcp", "-T", "fields", *columns]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    read = []
    for line in said.splitlines():
        time, port, *rest = line.split("\t")
        read.append(Packet(float(time), ("data" if port == "5001" else "ack", *rest)))
    return read


def captured(directory: Path, host: str) -> list[Packet]:
    (capture,) = directory.glob(f"**/{host}*.pcapng")
    return packets(capture)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
def test_one_flow_into_a_deep_queue_sends_the_same_packets_at_the_same_times(
    linux: Callable[..., Recording], scenario: Callable[..., Scenario], tmp_path: Path
) -> None:
    directories = {engine: tmp_path / engine for engine in ("sim", "linux")}
    for directory in directories.values():
        directory.mkdir()
    plan = scenario("deep_queue").plan(None)
    Simulator().run(plan, Options(captures="hosts", directory=directories["sim"]))
    linux("deep_queue", options=Options(captures="hosts", directory=directories["linux"]))
    ours, theirs = (captured(directory, "client") for directory in directories.values())
    assert min(len(ours), len(theirs)) >= PACKETS
    for number, (own, other) in enumerate(zip(ours[:PACKETS], theirs[:PACKETS], strict=True)):
        assert own.content == other.content, f"packet {number}, {own.time_s} s"
        assert own.time_s == pytest.approx(other.time_s, abs=TOLERANCE_S), f"packet {number}"
    # They say something: the window opened, slow start filled the queue, and buffers' ends were pushed.
    data = [packet for packet in ours[:PACKETS] if packet.content[0] == "data"]
    assert len(data) > PACKETS / 2
    assert len({packet.content[4] for packet in data}) == 2
    assert len({packet.content[5] for packet in ours[:PACKETS]}) > 10
