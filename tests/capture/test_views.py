"""The same packets, as other interfaces, programs and places would have captured them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.capture.conftest import MICROSECONDS, captured, pcap, read

from polypath.capture import CaptureError, trace
from polypath.formats.pcapng import Frame
from polypath.results import Recording, metrics

Small = tuple[Recording, list[Path]]

#: By link type: what stands before the packet there (tcpdump.org, "Link-layer header types").
DRESSES: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "raw": (101, lambda frame: frame[14:]),
    "null": (0, lambda frame: b"\2\0\0\0" + frame[14:]),
    "cooked": (113, lambda frame: bytes(14) + frame[12:]),
    "cooked 2": (276, lambda frame: frame[12:14] + bytes(18) + frame[14:]),
    "vlan": (1, lambda frame: frame[:12] + b"\x88\xa8\0\5\x81\0\0\7" + frame[12:]),
    "with a frame check sequence": (0x4400_0001, lambda frame: frame + b"FCSs"),
}
EXACT = (
    "client_sent_bytes",
    "server_received_bytes",
    "client_retransmitted_bytes",
    "client_reinjected_bytes",
    "source",
    "source_port",
    "established_ns",
)


def ends(recording: Recording) -> list[tuple[Any, ...]]:
    return recording.table("subflow_ends").select(EXACT).rows()


@pytest.fixture(scope="module")
def expected(small: Small) -> list[tuple[Any, ...]]:
    return ends(trace(small[1]).recording)


@pytest.mark.parametrize("name", DRESSES)
def test_any_link_type(name: str, small: Small, expected: list[tuple[Any, ...]], tmp_path: Path) -> None:
    link, dress = DRESSES[name]
    files = [pcap(tmp_path / f"{path.stem}.pcap", read(path), link=link, dress=dress) for path in small[1]]
    told = trace(files)
    assert ends(told.recording) == expected
    assert not told.notes


def test_cut_packets_of_a_big_endian_host_with_microseconds(
    small: Small, expected: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    files = [
        pcap(tmp_path / f"{path.stem}.pcap", read(path), snaplen=100, magic=MICROSECONDS, order=">")
        for path in small[1]
    ]
    assert ends(trace(files).recording) == expected


def test_a_file_of_each_interface(small: Small, expected: list[tuple[Any, ...]], tmp_path: Path) -> None:
    files: list[Path] = []
    for path in small[1]:
        packets = read(path)
        for interface in sorted({packet.interface for packet in packets}):
            own = [packet for packet in packets if packet.interface == interface]
            files.append(pcap(tmp_path / f"{len(files)}.pcap", own))
    assert len(files) == 3
    assert ends(trace(files).recording) == expected
    assert ends(trace(files[::-1]).recording) == expected


def test_a_file_that_has_every_packet_twice(small: Small, expected: list[tuple[Any, ...]], tmp_path: Path) -> None:
    """As mergecap makes one of the two ends of a link."""
    files = []
    for path in small[1]:
        packets = read(path)
        again = [replace(packet, time_ns=packet.time_ns + 20_000) for packet in packets]
        both = sorted([*packets, *again], key=lambda packet: packet.time_ns)
        files.append(pcap(tmp_path / f"{path.stem}.pcap", both))
    told = trace(files)
    assert ends(told.recording) == expected
    assert any("in a file twice" in note for note in told.notes)


@pytest.mark.parametrize("order", [1, -1])
def test_a_subflow_through_a_nat_counts_once(tmp_path: Path, order: int) -> None:
    settings = ["duration=2 s", 'link.path1.middlebox={kind = "nat"}']
    known, files = captured("aggregation", "mptcp", settings, tmp_path)
    told = trace(files[::order])
    assert len(metrics.connections(told.recording)) == 1
    found, ours = (
        {row["source"]: row["server_received_bytes"] for row in each.table("subflow_ends").iter_rows(named=True)}
        for each in (told.recording, known)
    )
    assert found.keys() == {"10.0.0.1", "10.0.1.1"} == ours.keys()
    assert found == pytest.approx(ours, rel=0.03)
    beyond = "flows that are a subflow seen from beyond something that changes addresses, and are left out: 1"
    assert beyond in told.notes
    assert beyond not in trace(files[1:]).notes


def test_one_host_alone(tmp_path: Path) -> None:
    """Who receives tells by acknowledgements; what the sender did is known."""
    known, files = captured("scheduler-http", "rtt-1MB", ["application.http.size=500 kB"], tmp_path)
    both = trace(files).recording
    client, server = (trace([path]) for path in files)
    assert any("nearer to the client only" in note for note in client.notes)
    assert any("nearer to the server only" in note for note in server.notes)
    expected = metrics.connections(known)[0]
    for told, receiver in ((client, "server"), (server, "client")):
        connection = metrics.connections(told.recording)[0]
        assert connection.bytes == expected.bytes
        assert told.recording.table("connections").filter(side=receiver)["reassembly_bytes"].null_count() > 0
        assert metrics.srtt_us(told.recording, connection, metrics.subflows(told.recording, connection)[0])
    columns = ("server_sent_bytes", "server_retransmitted_bytes", "server_reinjected_bytes", "client_received_bytes")
    assert (
        server.recording.table("subflow_ends").select(columns).rows()
        == both.table("subflow_ends").select(columns).rows()
    )


def test_clocks_that_are_apart(small: Small, expected: list[tuple[Any, ...]], tmp_path: Path) -> None:
    files = [
        pcap(tmp_path / f"{path.stem}.pcap", read(path), ahead_ns=10**18 + ahead)
        for path, ahead in zip(small[1], (0, -7 * 10**9), strict=True)
    ]
    told = trace(files)
    assert ends(told.recording) == expected
    assert any("clock is 7000.000 ms behind" in note for note in told.notes)
    assert told.recording.plan["capture"]["start_unix_ns"] == 10**18


def test_clocks_that_no_handshake_compares_are_told(small: Small, tmp_path: Path) -> None:
    """Both ends began to capture when the connections were there."""
    client = read(small[1][0])
    since = client[len(client) // 2].time_ns
    files = [
        pcap(tmp_path / f"{path.stem}.pcap", [each for each in read(path) if each.time_ns > since]) for path in small[1]
    ]
    notes = trace(files).notes
    (said,) = [note for note in notes if "clock is taken for right" in note]
    assert said.startswith(str(files[1]))
    assert not any("clock is taken for right" in note for note in trace(files[:1]).notes)


@pytest.mark.parametrize("from_client", [True, False])
def test_one_direction(from_client: bool, tmp_path: Path) -> None:
    """As of `tcpdump dst host ..`, and of routers on the way of one direction only."""
    client = captured("aggregation", "tcp", ["duration=300 ms"], tmp_path)[1][0]
    whole = trace([client]).recording.table("subflow_ends")
    server = bytes([10, 0, 2, 2])
    seen = [packet for packet in read(client) if (packet.data[30:34] == server) == from_client]
    told = trace([pcap(tmp_path / "one.pcap", seen)]).recording
    columns = ["client_sent_bytes", "server_received_bytes", "server_sent_bytes", "client_received_bytes"]
    acked = whole["server_received_bytes"].item()
    expected = (whole["client_sent_bytes"].item(), 0, 0, 0) if from_client else (acked, acked, 0, 0)
    assert told.table("subflow_ends").select(columns).row(0) == expected


def test_a_capture_in_several_files(small: Small, expected: list[tuple[Any, ...]], tmp_path: Path) -> None:
    """As `tcpdump -C` and `dumpcap -b` write them, of both ends."""
    files = []
    for path in small[1]:
        packets = read(path)
        cuts = [0, len(packets) // 3, len(packets) // 2, len(packets)]
        for number, (since, until) in enumerate(pairwise(cuts)):
            files.append(pcap(tmp_path / f"{path.stem}{number}.pcap", packets[since:until]))
    told = trace(files)
    assert ends(told.recording) == expected
    assert not told.notes
    assert told.recording.metadata.scenario == "client0+client1+client2+server0+2 more"
    assert ends(trace(files[::-1]).recording) == expected


def test_one_way_traffic_that_began_before(tmp_path: Path) -> None:
    """Only the sender's timestamps and their echoes tell which file is whose."""
    _, files = captured("aggregation", "tcp", ["duration=1500 ms"], tmp_path)
    late = [
        pcap(tmp_path / f"{path.stem}.pcap", [packet for packet in read(path) if packet.time_ns > 800_000_000])
        for path in files
    ]
    client, server = (trace([path]) for path in late)
    both = trace(late)
    assert not any("nearer" in note for note in both.notes)
    assert any("nearer to the client only" in note for note in client.notes)
    assert any("nearer to the server only" in note for note in server.notes)
    for told in (client, server, both):
        samples = told.recording.table("subflows").filter(side="client")
        assert max(samples["srtt_us"].to_list()) > 40_000
        assert samples["receive_window_bytes"].null_count() == len(samples)
    ends_of_both, ends_of_server = (told.recording.table("subflow_ends") for told in (both, server))
    assert ends_of_both["server_received_bytes"].item() == ends_of_server["server_received_bytes"].item()


def test_times_with_an_offset_in_a_big_endian_file(tmp_path: Path) -> None:
    offset = 1_700_000_000
    syn = bytes(12) + b"\x08\0\x45\0\0\x28\0\1\0\0\x40\6\0\0" + bytes([10, 0, 0, 1, 10, 0, 0, 2])
    syn += struct.pack(">HHIIBBHHH", 1, 2, 3, 0, 0x50, 2, 1000, 0, 0)
    blocks = [
        (0x0A0D0D0A, struct.pack(">IHHq", 0x1A2B3C4D, 1, 0, -1)),
        (1, struct.pack(">HHIHHqHH", 1, 0, 0, 14, 8, offset, 0, 0)),
        (6, struct.pack(">IIIII", 0, 0, 5, len(syn), len(syn)) + syn + bytes(-len(syn) % 4)),
    ]
    path = tmp_path / "offset.pcapng"
    path.write_bytes(
        b"".join(
            struct.pack(">II", kind, 12 + len(body)) + body + struct.pack(">I", 12 + len(body)) for kind, body in blocks
        )
    )
    assert trace([path]).recording.plan["capture"]["start_unix_ns"] == offset * 10**9 + 5_000


def test_a_capture_that_begins_later(small: Small, tmp_path: Path) -> None:
    files = []
    for path in small[1]:
        late = [packet for packet in read(path) if packet.time_ns > 200_000_000]
        files.append(pcap(tmp_path / f"{path.stem}.pcap", late))
    told = trace(files)
    assert any("began before the capture" in note for note in told.notes)
    sent = told.recording.table("subflow_ends")["client_sent_bytes"].sum()
    assert 0 < sent < small[0].table("subflow_ends")["client_sent_bytes"].sum()
    assert {row["transport"] for row in told.recording.table("connection_ends").iter_rows(named=True)} == {"mptcp"}


def test_no_capture(tmp_path: Path) -> None:
    missing, text, empty = tmp_path / "missing.pcap", tmp_path / "text.pcap", tmp_path / "empty.pcap"
    text.write_text("no capture")
    empty.write_bytes(b"")
    nothing = pcap(tmp_path / "nothing.pcap", [])
    packet = Frame(0, "a:b", True, bytes(60), 60)
    wireless = pcap(tmp_path / "wireless.pcap", [packet, packet], link=127)
    for path, reason in (
        (missing, "No such file"),
        (text, "not a capture"),
        (empty, "not a capture"),
        (tmp_path, "is a folder"),
        (nothing, "no segment of TCP"),
        (wireless, "in 2 packets; 2 packets of link type 127, which is not read"),
    ):
        with pytest.raises(CaptureError, match=reason) as caught:
            trace([path])
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
