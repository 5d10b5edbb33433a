"""What one host's file holds is one place, whichever of its interfaces; hosts whose files were merged are several."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.capture.conftest import read

import polypath
from polypath.capture import trace
from polypath.engines import Options, get
from polypath.formats.pcapng import Frame
from polypath.results import Recording, metrics

#: A packet of the second path leaves by client:eth1 for server:eth1, and its answer by server:eth0 for client:eth0.
SERVER = """
duration = "3 s"
[defaults]
path_manager = "fullmesh"
[host.client]
[host.server]
[router.r0]
[router.r1]
[link.c0]
ends = ["client:eth0", "r0"]
rate = "5 Mbps"
delay = "10 ms"
[link.c1]
ends = ["client:eth1", "r1"]
rate = "5 Mbps"
delay = "15 ms"
[link.s0]
ends = ["r0", "server:eth0"]
delay = "1 ms"
[link.s1]
ends = ["r1", "server:eth1"]
delay = "1 ms"
"""
#: Everything comes back by another way than it went, at both ends.
BOTH = """
duration = "3 s"
[host.client]
[host.server]
[router.out]
[router.back]
[link.c0]
ends = ["client:eth0", "out"]
rate = "5 Mbps"
delay = "10 ms"
[link.s0]
ends = ["out", "server:eth0"]
delay = "1 ms"
[link.s1]
ends = ["server:eth1", "back"]
rate = "20 Mbps"
delay = "5 ms"
[link.c1]
ends = ["back", "client:eth1"]
delay = "1 ms"
[[route]]
node = "server"
source = "10.0.1.2"
destination = "0.0.0.0/0"
interface = "eth1"
[[route]]
node = "back"
destination = "10.0.0.1/32"
interface = "eth1"
"""


def applications(transport: str, hosts: Sequence[tuple[str, str]] = (("client", "server"),)) -> str:
    return "".join(
        f"""
[[application]]
name = "a{number}"
kind = "bulk"
client = "{client}"
server = "{server}"
transport = "{transport}"
size = "300 kB"
reverse = {str(number % 2 == 1).lower()}
"""
        for number, (client, server) in enumerate(hosts)
    )


def more_hosts() -> str:
    """A second client and server at the same routers."""
    links = """
[host.other]
[host.store]
[link.o0]
ends = ["other:eth0", "r0"]
rate = "4 Mbps"
delay = "8 ms"
[link.o1]
ends = ["other:eth1", "r1"]
rate = "6 Mbps"
delay = "12 ms"
[link.t0]
ends = ["r0", "store:eth0"]
delay = "1 ms"
[link.t1]
ends = ["r1", "store:eth1"]
delay = "2 ms"
"""
    return SERVER + links


SCENARIOS = {
    "mptcp": SERVER + applications("mptcp"),
    "tcp, second path": SERVER + applications("tcp").replace('"300 kB"', '"300 kB"\nsource = "10.0.1.1"'),
    "tcp at both ends": BOTH + applications("tcp"),
    "several hosts": more_hosts()
    + applications("mptcp", [("client", "server"), ("other", "store"), ("client", "store")]),
}


def captured(scenario: str, into: Path) -> tuple[Recording, list[Path]]:
    plan = polypath.Scenario.parse(scenario, "places").plan()
    recording = get("sim").run(plan, Options("hosts", into, segments=True))
    return recording, sorted(into.glob("*.pcapng"))


def pcapng(path: Path, frames: Sequence[Frame]) -> Path:
    """One section with an interface for each that the frames name, as mergecap writes it."""
    names = list(dict.fromkeys(frame.interface for frame in frames))

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        length = struct.pack("<I", 12 + len(body))
        return struct.pack("<I", kind) + length + body + length

    with path.open("wb") as file:
        file.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
        for name in names:
            text = name.encode()
            options = struct.pack("<HH", 2, len(text)) + text + bytes(-len(text) % 4)
            options += struct.pack("<HHB3x", 9, 1, 9) + struct.pack("<HH", 0, 0)
            file.write(block(1, struct.pack("<HHI", 1, 0, 0) + options))
        for frame in frames:
            high, low = divmod(frame.time_ns, 1 << 32)
            head = struct.pack("<IIIII", names.index(frame.interface), high, low, len(frame.data), len(frame.data))
            file.write(block(6, head + frame.data))
    return path


def merged(files: Sequence[Path], into: Path) -> list[Path]:
    frames = sorted((frame for file in files for frame in read(file)), key=lambda frame: frame.time_ns)
    return [pcapng(into / "merged.pcapng", frames)]


WAYS: dict[str, Callable[[list[Path], Path], list[Path]]] = {
    "a file of each host": lambda files, into: files,
    "in another order": lambda files, into: files[::-1],
    "merged": merged,
}
EXACT = (
    "client_sent_bytes",
    "server_sent_bytes",
    "client_received_bytes",
    "server_received_bytes",
    "client_retransmitted_bytes",
    "server_retransmitted_bytes",
    "client_reinjected_bytes",
    "server_reinjected_bytes",
    "established_ns",
)


def ends(recording: Recording) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    by = ("source", "source_port", "destination", "destination_port")
    rows = recording.table("subflow_ends").iter_rows(named=True)
    return {
        tuple(row[name] for name in by): tuple(row[name] for name in EXACT)
        for row in rows
        if row["established_ns"] is not None
    }


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_subflow_that_is_answered_on_another_interface(name: str, way: str, tmp_path: Path) -> None:
    known, files = captured(SCENARIOS[name], tmp_path)
    told = trace(WAYS[way](files, tmp_path), segments=True)
    assert ends(told.recording) == ends(known)
    of = {each.name: each for each in metrics.connections(known)}
    bytes_of = sorted(each.bytes for each in metrics.connections(told.recording))
    assert bytes_of == sorted(each.bytes for each in of.values()) == [300_000] * len(of)
    assert not any("nearer" in note for note in told.notes)
