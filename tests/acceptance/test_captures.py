"""The labs' captures stand up to Wireshark, and to what its fields say when they are put together again."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from ..slow import others_slow
from .conftest import Polypath
from .wireshark import Frame, complaints, frames, matching

#: The lab's run, what shortens it, and the application's port.
RUNS = {
    "aggregation": ("aggregation", "mptcp", ("--set", "application.iperf.duration=400 ms")),
    "backup": ("backup", "normal", ()),
    "backup-flag": ("backup", "backup", ()),
}
ENDS = ("client", "server")

#: What any trace of a lossy path shows; a Linux host's as well:
EXPECTED = {
    # Handshake and closing, for the reader's orientation.
    "Connection establish request (SYN): server port 5001",
    "Connection establish acknowledge (SYN+ACK): server port 5001",
    "Connection finish (FIN)",
    "Connection reset (RST)",
    "This frame initiates the connection closing",
    "This frame undergoes the connection closing",
    # Losses in a queue, and how TCP repairs them. The host's own queue drops before the capture sees a frame.
    "Previous segment(s) not captured (common at capture start)",
    "This frame is a (suspected) out-of-order segment",
    "This frame is a (suspected) retransmission",
    "This frame is a (suspected) fast retransmission",
    "This frame is a (suspected) spurious retransmission",
    "Duplicate ACK",
    # A path in MPTCP shares its window with others: it opens without data on this path.
    "TCP window update",
    # A tail loss probe repeats what was acknowledged on the way.
    "D-SACK Sequence",
}


@dataclass(frozen=True)
class Lab:
    captures: dict[str, Path]
    #: The client's ports in summary.json.
    ports: list[int]
    #: What each end received in order, as recorded.
    received: dict[str, int]


@pytest.fixture(scope="module", params=others_slow(RUNS, "aggregation", "backup-flag"))
def lab(request: pytest.FixtureRequest, polypath: Polypath, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    name, run, settings = RUNS[request.param]
    out = tmp_path_factory.mktemp(request.param)
    ran = polypath("run", name, "--run", run, *settings, "--pcap", "hosts", "--out", out)
    assert ran.returncode == 0, ran.stderr
    folder = out / run
    summary = json.loads((folder / "summary.json").read_text())
    (connection,) = summary["connections"]
    assert connection["transport"] == "mptcp"
    ends = pl.read_parquet(folder / "series" / "connection_ends.parquet").row(0, named=True)
    return Lab(
        {end: folder / "capture" / f"{end}.pcapng" for end in ENDS},
        [int(subflow["source"].rsplit(":", 1)[1]) for subflow in connection["subflows"]],
        {end: ends[f"{end}_received_bytes"] for end in ENDS},
    )


@pytest.fixture(scope="module")
def segments(lab: Lab) -> dict[str, list[Frame]]:
    return {end: frames(capture) for end, capture in lab.captures.items()}


def test_every_frame_is_dissected(lab: Lab, segments: dict[str, list[Frame]]) -> None:
    for end, capture in lab.captures.items():
        assert matching(capture, "_ws.malformed || !tcp") == []
        sound = matching(capture, "tcp.checksum.status == 1 && ip.checksum.status == 1")
        assert sound == [frame.number for frame in segments[end]]
        assert matching(capture, "tcp.options.mptcp.subtype")


def test_wireshark_complains_of_nothing_unusual(lab: Lab) -> None:
    for capture in lab.captures.values():
        assert complaints(capture) <= EXPECTED
        assert matching(capture, '_ws.expert.severity == error || _ws.expert.group == "Malformed"') == []
        assert matching(capture, 'mptcp && _ws.expert.group == "Protocol"') == []


def test_as_many_subflows_as_reported(lab: Lab, segments: dict[str, list[Frame]]) -> None:
    reported = set(lab.ports)
    assert len(reported) == len(lab.ports) > 1
    for read in segments.values():
        opened = {frame.source_port for frame in read if frame.syn and frame.field("tcp.flags.ack") == ["0"]}
        assert opened == reported
        assert len({frame.stream for frame in read}) == len(reported)


def test_handshakes_carry_the_hmacs_that_the_keys_give(segments: dict[str, list[Frame]]) -> None:
    """RFC 8684 sections 3.1 and 3.2, computed here from the keys and random numbers in the capture."""
    for read in segments.values():
        client, server = _ordered(_keys(read), read)
        joins = [frame for frame in read if frame.mptcp("subtype")[:1] == ["1"]]
        assert joins
        for stream in {frame.stream for frame in joins}:
            mine = [frame for frame in joins if frame.stream == stream]
            assert {int(token) for frame in mine for token in frame.mptcp("recvtok")} == {_token(server)}
            truncated = {int(mac) for frame in mine for mac in frame.mptcp("sendtrunchmac")}
            full = {mac for frame in mine for mac in frame.mptcp("sendhmac")}
            assert len(truncated) == len(full) == 1
            nonces = _nonces(mine)
            expected = _hmac(server + client, nonces[1] + nonces[0])
            assert truncated == {int.from_bytes(expected[:8])}
            assert full == {_hmac(client + server, nonces[0] + nonces[1])[:20].hex()}


def _keys(read: list[Frame]) -> set[int]:
    keys = {int(frame.mptcp("sendkey")[0]) for frame in read if frame.mptcp("sendkey")}
    assert len(keys) == 2
    return keys


def _token(key: bytes) -> int:
    return int.from_bytes(hashlib.sha256(key).digest()[:4])


def _hmac(key: bytes, message: bytes) -> bytes:
    return hmac.new(key, message, hashlib.sha256).digest()


def _ordered(keys: set[int], read: list[Frame]) -> tuple[bytes, bytes]:
    """The client's key and the server's: the SYN/ACK shows the server's."""
    answer = next(frame for frame in read if frame.syn and frame.mptcp("sendkey"))
    server = int(answer.mptcp("sendkey")[0])
    (client,) = keys - {server}
    return client.to_bytes(8), server.to_bytes(8)


def _nonces(join: list[Frame]) -> tuple[bytes, bytes]:
    """The random numbers of SYN and SYN/ACK."""
    request = next(frame for frame in join if frame.syn and frame.field("tcp.flags.ack") == ["0"])
    answer = next(frame for frame in join if frame.syn and frame.field("tcp.flags.ack") == ["1"])
    (asked,), (answered,) = request.mptcp("sendrand"), answer.mptcp("sendrand")
    return int(asked).to_bytes(4), int(answered).to_bytes(4)


@dataclass(frozen=True)
class Mapped:
    """Payload and where in the stream the capture says that it belongs."""

    offset: int
    payload: bytes


def _mapped(read: list[Frame], *, from_client: bool, key: bytes) -> Iterator[Mapped]:
    """Each payload at its place by the mapping that came with it (RFC 8684 section 3.3.1)."""
    first = int.from_bytes(hashlib.sha256(key).digest()[-8:]) + 1
    known: dict[tuple[int, int], int] = {}
    for frame in read:
        if (frame.source_port != 5001) != from_client or not frame.payload:
            continue
        length = int(frame.mptcp("datalvllen")[0])
        assert length == len(frame.payload)
        if frame.mptcp("rawdataseqno"):
            (sequence,), (position,) = frame.mptcp("rawdataseqno"), frame.mptcp("subflowseqno")
            assert int(position) == frame.seq
            width = 2**32 if int(sequence) < 2**32 else 2**64
            offset = (int(sequence) - first) % width
        else:
            # The first data come with MP_CAPABLE, whose place is the stream's beginning.
            assert frame.mptcp("subtype")[:1] == ["0"]
            offset = 0
        assert known.setdefault((frame.stream, frame.seq), offset) == offset, "two mappings of the same bytes differ"
        yield Mapped(offset, frame.payload)


@pytest.mark.parametrize("from_client", [True, False])
def test_mappings_agree_and_cover_the_stream(lab: Lab, segments: dict[str, list[Frame]], from_client: bool) -> None:
    sender, receiver = ENDS if from_client else ENDS[::-1]
    streams = {}
    for end in (sender, receiver):
        client, server = _ordered(_keys(segments[end]), segments[end])
        key = client if from_client else server
        stream: dict[int, bytes] = {}
        for piece in _mapped(segments[end], from_client=from_client, key=key):
            assert piece.payload == _payload(0 if from_client else 1, piece.offset, len(piece.payload))
            before = stream.get(piece.offset, b"")
            stream[piece.offset] = max(before, piece.payload, key=len)
        streams[end] = stream
    covered = _contiguous(streams[receiver])
    assert covered == max((at + len(piece) for at, piece in streams[receiver].items()), default=0)
    assert covered == lab.received[receiver]
    assert streams[receiver].keys() <= streams[sender].keys()


def _contiguous(stream: dict[int, bytes]) -> int:
    reached = 0
    for offset in sorted(stream):
        if offset > reached:
            break
        reached = max(reached, offset + len(stream[offset]))
    return reached


_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


def _finalised(x: int) -> int:
    """SplitMix64's finaliser (Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _MASK
    return x ^ (x >> 31)


def _payload(endpoint: int, offset: int, length: int) -> bytes:
    """The bytes that the run's first connection carries, as docs/recording.md has it for captures."""
    stream = _finalised((endpoint + _GOLDEN) & _MASK)
    words = range(offset // 8, (offset + length + 7) // 8)
    whole = b"".join(_finalised(stream ^ index * _GOLDEN & _MASK).to_bytes(8, "little") for index in words)
    skip = offset % 8
    return bytes(ord("a") + byte % 16 for byte in whole[skip : skip + length])
