"""QUIC in captures: its packets where the secrets are at hand, its datagrams where they are not."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from polypath import Scenario, capture
from polypath.capture import CaptureError
from polypath.engines import Options, get
from polypath.formats.pcapng import frames
from polypath.results import Recording, metrics
from polypath.twin.made import make

from ..tshark import fields
from .conftest import pcap

NETWORK = """
duration = "3 s"
[defaults]
{defaults}
[host.phone]
[host.server]
[router.r]
[link.wifi]
ends = ["phone:wifi", "r"]
rate = "12 Mbps"
delay = "12 ms"
loss = "0.6 %"
queue = "60 packets"
[link.lte]
ends = ["phone:lte", "r"]
rate = "5 Mbps"
delay = "35 ms"
queue = "120 packets"
[link.server]
ends = ["r", "server"]
[[application]]
name = "download"
kind = "bulk"
transport = "{transport}"
client = "phone"
server = "server"
reverse = true
size = "1500 kB"
"""
STACKS = {"own": 'path_manager = "fullmesh"', "noq": 'stack = "noq"'}
SECRETS = 10

Ran = tuple[Recording, Path]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Ran]:
    """A run over QUIC by stack and transport, and the folder of its captures; each once."""
    found: dict[tuple[str, str], Ran] = {}

    def once(stack: str = "own", transport: str = "mpquic") -> Ran:
        if (stack, transport) not in found:
            into = tmp_path_factory.mktemp(f"{stack}-{transport}")
            text = NETWORK.format(defaults=STACKS[stack], transport=transport)
            recording = get("sim").run(Scenario.parse(text, "quic").plan(), Options("hosts", into, segments=True))
            found[stack, transport] = recording, into
        return found[stack, transport]

    return once


def sealed(file: Path, into: Path) -> Path:
    """The capture without the blocks that have its secrets."""
    data, kept, at = file.read_bytes(), b"", 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind != SECRETS:
            kept += data[at : at + length]
        at += length
    into.write_bytes(kept)
    return into


def sent(recording: Recording, side: str) -> list[tuple[int, int, int]]:
    """Path, number and bytes of the packets behind the handshake."""
    table = recording.table("segments").with_columns(flags=recording.table("headers")["flags"])
    mine = table.filter((pl.col("side") == side) & (pl.col("flags") == "1-RTT"))
    return mine.select("subflow", "seq", "payload_bytes").rows()


def again(recording: Recording) -> int:
    """Bytes that the server sent a second time."""
    ends = recording.table("subflow_ends")
    return sum(int(ends[f"server_{kind}_bytes"].sum()) for kind in ("retransmitted", "reinjected"))


@pytest.mark.parametrize(("stack", "transport"), [("own", "quic"), ("own", "mpquic"), ("noq", "mpquic")])
def test_an_open_connection_is_what_its_ends_tell(ran: Callable[..., Ran], stack: str, transport: str) -> None:
    recording, into = ran(stack, transport)
    traced = capture.trace([into / "server.pcapng"], segments=True).recording
    (own,), (seen,) = metrics.connections(recording), metrics.connections(traced)
    assert (seen.name, seen.transport) == ("10.0.2.2:5001 QUIC", transport)
    assert seen.bytes == pytest.approx(own.bytes, rel=0.01)
    lanes = zip(metrics.subflows(recording, own), metrics.subflows(traced, seen), strict=True)
    for mine, theirs in lanes:
        assert (theirs.source, theirs.destination) == (mine.source, mine.destination)
        mean, found = (
            sum(metrics.srtt_us(of, whose, lane) or [0]) / max(1, len(metrics.srtt_us(of, whose, lane) or [0]))
            for of, whose, lane in ((recording, own, mine), (traced, seen, theirs))
        )
        assert found == pytest.approx(mean, rel=0.15)
    if stack == "own":  # noq tells neither its packets nor what of them it sent again
        assert sent(traced, "server") == sent(recording, "server")
        assert again(traced) == pytest.approx(again(recording), rel=0.1)


def test_packets_are_those_that_wireshark_reads(ran: Callable[..., Ran]) -> None:
    _, into = ran("own", "quic")
    traced = capture.trace([into / "server.pcapng"], segments=True).recording
    told: dict[str, list[int]] = {"client": [], "server": []}
    for port, numbers, types in fields(
        into / "server.pcapng", "quic", "udp.srcport", "quic.packet_number", "quic.long.packet_type"
    ):
        both = [int(number) for number in numbers.split(",") if number]
        told["server" if port == "5001" else "client"] += both[len(types.split(",")) if types else 0 :]
    for side, expected in told.items():
        assert len(expected) > 100
        assert [number for _, number, _ in sent(traced, side)] == expected


def test_both_ends_tell_what_was_lost(ran: Callable[..., Ran]) -> None:
    recording, into = ran()
    traced = capture.trace([into / "phone.pcapng", into / "server.pcapng"], segments=True)
    assert not traced.notes
    (seen,) = metrics.connections(traced.recording)
    assert [each.interface for each in metrics.subflows(traced.recording, seen)] == ["wifi", "lte"]
    assert again(traced.recording) == pytest.approx(again(recording), rel=0.3)
    assert traced.recording.table("events").filter(kind="loss").height > 3


def test_sealed_datagrams_count_by_path(ran: Callable[..., Ran], tmp_path: Path) -> None:
    _, into = ran()
    bare = sealed(into / "phone.pcapng", tmp_path / "sealed.pcapng")
    traced = capture.trace([bare], segments=True)
    assert [note for note in traced.notes if "are sealed" in note]
    (seen,) = metrics.connections(traced.recording)
    assert seen.transport == "quic"
    for path in ("10.0.0.1", "10.0.1.1"):
        told = traced.recording.table("subflow_ends").filter(source=path).row(0, named=True)
        sizes = fields(bare, f"udp && ip.src == {path}", "udp.length")
        assert told["client_sent_bytes"] == sum(int(size) - 8 for (size,) in sizes)
    # The keys of these follow from the packets themselves.
    assert set(traced.recording.table("headers")["flags"]) == {"Initial"}
    opened = capture.trace([bare], segments=True, keys=[into / "keys.log"]).recording
    assert opened.tables["segments"].equals(
        capture.trace([into / "phone.pcapng"], segments=True).recording.tables["segments"]
    )


def test_a_cut_capture_says_what_it_lacks(ran: Callable[..., Ran], tmp_path: Path) -> None:
    _, into = ran()
    cut = tmp_path / "cut.pcap"
    pcap(cut, list(frames(into / "phone.pcapng")), snaplen=128)
    traced = capture.trace([cut])
    assert [note for note in traced.notes if "not captured whole" in note]
    assert metrics.connections(traced.recording)


def test_a_twin_of_what_is_sealed_needs_its_secrets(ran: Callable[..., Ran], tmp_path: Path) -> None:
    _, into = ran()
    bare = sealed(into / "server.pcapng", tmp_path / "sealed.pcapng")
    with pytest.raises(CaptureError, match=r"5001 QUIC is sealed: a twin needs its secrets.*--keys"):
        make([bare])
    assert make([bare], keys=[into / "keys.log"]).text == make([into / "server.pcapng"]).text


def test_a_key_log_that_is_missing_is_named(ran: Callable[..., Ran], tmp_path: Path) -> None:
    _, into = ran()
    with pytest.raises(CaptureError, match=r"missing\.log: No such file"):
        capture.trace([into / "phone.pcapng"], keys=[tmp_path / "missing.log"])
