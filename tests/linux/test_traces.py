"""Packet for packet: what the simulator sends in the profile linux is what the kernel sends."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from polypath.engines import Options
from polypath.engines.sim import Simulator
from polypath.results import Recording
from polypath.scenario import Scenario

#: The guest writes down when its driver handed a packet over, the simulator when the link took it.
TOLERANCE_S = 50e-6

_FIELDS = ("time_relative", "dstport", "seq", "len", "ack", "flags.push", "window_size", "stream")


@dataclass(frozen=True)
class Packet:
    time_s: float
    #: Direction, sequence and acknowledgment number, payload, whether it is pushed, the receiver's window, subflow.
    content: tuple[str, ...]


def packets(capture: Path) -> list[Packet]:
    """Every TCP segment in order, its numbers relative to the SYN's."""
    columns = ["-e", f"frame.{_FIELDS[0]}"] + [word for field in _FIELDS[1:] for word in ("-e", f"tcp.{field}")]
    command = ["tshark", "-r", str(capture), "-Y", "tcp", "-T", "fields", *columns]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    read = []
    for line in said.splitlines():
        time, port, *rest = line.split("\t")
        *numbers, window, stream = rest
        sent = ("data", *numbers, "") if port == "5001" else ("ack", *numbers, window)
        read.append(Packet(float(time), (*sent, stream)))
    return read


def captured(directory: Path, host: str) -> list[Packet]:
    (capture,) = directory.glob(f"**/{host}*.pcapng")
    return packets(capture)


#: A scenario, settings, and up to where the packets of each subflow are the same. Where a queue is full, a microsecond
#: of rounding decides what it drops.
CASES = {
    "tcp": ("deep_queue", [], (1_500,)),
    "one-subflow": (
        "deep_queue",
        ["duration=1.7 s", "application.bulk.transport=mptcp", "application.bulk.duration=1.5 s"],
        (3_300,),
    ),
    "two-subflows": ("two_queues", [], (1_250, 190)),
}


@pytest.mark.parametrize("case", CASES)
def test_a_transfer_into_deep_queues_sends_the_same_packets_at_the_same_times(
    case: str, linux: Callable[..., Recording], scenario: Callable[..., Scenario], tmp_path: Path
) -> None:
    name, settings, numbers = CASES[case]
    directories = {engine: tmp_path / engine for engine in ("sim", "linux")}
    for directory in directories.values():
        directory.mkdir()
    plan = scenario(name, *settings).plan(None)
    Simulator().run(plan, Options(captures="hosts", directory=directories["sim"]))
    linux(name, *settings, options=Options(captures="hosts", directory=directories["linux"]))
    ours, theirs = (captured(directory, "client") for directory in directories.values())
    for stream, number in enumerate(numbers):
        own_part, other_part = (
            [packet for packet in trace if packet.content[-1] == str(stream)][:number] for trace in (ours, theirs)
        )
        assert len(own_part) == number
        for index, (own, other) in enumerate(zip(own_part, other_part, strict=True)):
            assert own.content == other.content, f"subflow {stream}, packet {index}, {own.time_s} s"
            assert own.time_s == pytest.approx(other.time_s, abs=TOLERANCE_S), f"subflow {stream}, packet {index}"
    # They say something: the window opened, slow start filled the queue, and buffers' ends were pushed.
    ours = ours[: sum(numbers)]
    data = [packet for packet in ours if packet.content[0] == "data"]
    assert len(data) > len(ours) / 3
    assert len({packet.content[4] for packet in data}) == 2
    assert len({packet.content[5] for packet in ours}) > 10
