"""A capture within tunnels and link layers says what it says without."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.capture.conftest import captured

from polypath.capture import CaptureError, trace

ETHERNET, PPP, PPP_ETHER, NFLOG, USER = 1, 9, 51, 239, 147
ADDRESSES = bytes([192, 0, 2, 1, 192, 0, 2, 2])


def frames(capture: Path) -> Iterator[tuple[int, bytes]]:
    """Nanoseconds and bytes of each frame of a pcapng file as ours are: little-endian, times in ns."""
    data = capture.read_bytes()
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            _, high, low, kept, _ = struct.unpack_from("<IIIII", data, at + 8)
            yield high << 32 | low, data[at + 28 : at + 28 + kept]
        at += length


def ip(protocol: int, inner: bytes) -> bytes:
    return struct.pack(">BBHIBBH", 0x45, 0, 20 + len(inner), 0, 64, protocol, 0) + ADDRESSES + inner


def udp(port: int, inner: bytes) -> bytes:
    return ip(17, struct.pack(">HHHH", 50_000, port, 8 + len(inner), 0) + inner)


def typed(kind: int, inner: bytes) -> bytes:
    return bytes(12) + struct.pack(">H", kind) + inner


#: From a frame of Ethernet to one of a link type.
WAYS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "PPP": (PPP, lambda frame: b"\xff\x03\x00\x21" + frame[14:]),
    "PPPoE": (
        ETHERNET,
        lambda frame: typed(0x8864, struct.pack(">BBHHH", 0x11, 0, 7, len(frame) - 12, 0x21) + frame[14:]),
    ),
    "PPPoE, as a link type": (
        PPP_ETHER,
        lambda frame: struct.pack(">BBHHH", 0x11, 0, 7, len(frame) - 12, 0x21) + frame[14:],
    ),
    "MPLS": (ETHERNET, lambda frame: typed(0x8847, b"\x00\x01\x01\x40" + frame[14:])),
    "IP in IP": (ETHERNET, lambda frame: typed(0x0800, ip(4, frame[14:]))),
    "GRE": (ETHERNET, lambda frame: typed(0x0800, ip(47, b"\x20\x00\x08\x00\x00\x00\x00\x07" + frame[14:]))),
    "VXLAN": (ETHERNET, lambda frame: typed(0x0800, udp(4789, b"\x08\x00\x00\x00\x00\x00\x07\x00" + frame))),
    "Geneve": (ETHERNET, lambda frame: typed(0x0800, udp(6081, b"\x00\x00\x65\x58\x00\x00\x07\x00" + frame))),
    "GTP-U": (
        ETHERNET,
        lambda frame: typed(0x0800, udp(2152, struct.pack(">BBHI", 0x30, 255, len(frame) - 14, 7) + frame[14:])),
    ),
    "NFLOG": (NFLOG, lambda frame: b"\x02\x00\x00\x01" + struct.pack("<HH", len(frame) - 10, 9) + frame[14:]),
}


def write(path: Path, link: int, given: Iterator[tuple[int, bytes]]) -> None:
    """A pcap file with times in ns."""
    with path.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, link))
        for time_ns, frame in given:
            out.write(struct.pack("<IIII", time_ns // 10**9, time_ns % 10**9, len(frame), len(frame)) + frame)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    _, files = captured("aggregation", "mptcp", ["duration=300 ms"], tmp_path_factory.mktemp("captured"))
    return next(path for path in files if path.stem == "client")


@pytest.mark.parametrize("way", WAYS)
def test_what_is_within_is_read(way: str, client: Path, tmp_path: Path) -> None:
    link, wrap = WAYS[way]
    wrapped = tmp_path / "wrapped.pcap"
    write(wrapped, link, ((time, wrap(frame)) for time, frame in frames(client)))
    plain, within = (trace([path], segments=True) for path in (client, wrapped))
    assert plain.recording.table("segments").equals(within.recording.table("segments"))
    assert plain.recording.table("headers").equals(within.recording.table("headers"))
    # Wireshark finds as many segments there.
    said = subprocess.run(
        ["tshark", "-r", str(wrapped), "-Y", "tcp", "-T", "fields", "-e", "frame.number"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert len(said.splitlines()) == plain.recording.table("segments").height


def test_what_is_not_read_is_named(client: Path, tmp_path: Path) -> None:
    mixed = tmp_path / "mixed.pcap"
    others = [typed(0x0806, bytes(28)), typed(0x0806, bytes(28)), typed(0x0800, udp(443, bytes(40)))]
    given = [*frames(client), *((10**9, other) for other in others)]
    write(mixed, ETHERNET, iter(given))
    (note,) = (note for note in trace([mixed]).notes if "neither TCP" in note)
    assert note.endswith(
        "3 packets are neither TCP nor QUIC and are left out: 2 of EtherType 0x0806 (ARP), 1 of IP protocol 17 (UDP)"
    )
    unknown = tmp_path / "unknown.pcap"
    write(unknown, USER, frames(client))
    with pytest.raises(CaptureError, match="packets of link type 147, which is not read, are left out"):
        trace([unknown])
