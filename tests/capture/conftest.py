"""Captures of short runs, and the same packets as other programs and interfaces would have written them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from polypath.cli import jobs
from polypath.engines import Options, get
from polypath.formats.pcapng import Frame, frames
from polypath.results import Recording

#: Of pcap: with microseconds, with nanoseconds.
MICROSECONDS, NANOSECONDS = 0xA1B2C3D4, 0xA1B23C4D


def captured(lab: str, run: str, settings: Sequence[str], into: Path) -> tuple[Recording, list[Path]]:
    """A lab's run with every segment recorded, and its captures."""
    job = jobs.of_target(lab, [run] if run else [], settings, None)[0]
    recording = get("sim").run(job.points[0].plan, Options("hosts", into, segments=True))
    return recording, sorted(into.glob("*.pcapng"))


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recording, list[Path]]:
    """Two subflows with losses, in captures of some hundred packets."""
    return captured("aggregation", "mptcp", ["duration=300 ms"], tmp_path_factory.mktemp("small"))


def pcap(
    path: Path,
    packets: Sequence[Frame],
    *,
    link: int = 1,
    dress: Callable[[bytes], bytes] = bytes,
    snaplen: int = 1 << 16,
    magic: int = NANOSECONDS,
    order: str = "<",
    ahead_ns: int = 0,
) -> Path:
    """Writes frames as a pcap file; `dress` turns an Ethernet frame into one of another link type."""
    unit = 1000 if magic == MICROSECONDS else 1
    with path.open("wb") as file:
        file.write(struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snaplen, link))
        for packet in packets:
            data = dress(packet.data)
            seconds, rest = divmod(packet.time_ns + ahead_ns, 10**9)
            kept = data[:snaplen]
            file.write(struct.pack(order + "IIII", seconds, rest // unit, len(kept), len(data)) + kept)
    return path


def read(path: Path) -> list[Frame]:
    return list(frames(path))
