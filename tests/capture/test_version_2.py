"""QUIC version 2 (RFC 9369) in captures; aioquic speaks it."""

from __future__ import annotations

import io
import ssl
import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from aioquic._buffer import Buffer
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.packet import QuicProtocolVersion, encode_quic_retry, pull_quic_header
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from polypath import capture
from polypath.formats.pcapng import Frame
from polypath.results import metrics

from .conftest import pcap

CLIENT, SERVER = ("10.0.0.1", 50_000), ("10.0.0.2", 443)
#: From one end to the other.
WAY_NS = 5_000_000
SIZE = 40_000
V1, V2 = QuicProtocolVersion.VERSION_1, QuicProtocolVersion.VERSION_2


def _certified(configuration: QuicConfiguration) -> QuicConfiguration:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "server")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now - timedelta(1)).not_valid_after(now + timedelta(1))
    configuration.certificate, configuration.private_key = builder.sign(key, hashes.SHA256()), key
    return configuration


def _frame(at: int, source: tuple[str, int], destination: tuple[str, int], data: bytes) -> Frame:
    def packed(address: str) -> bytes:
        return bytes(map(int, address.split(".")))

    udp = struct.pack(">HHHH", source[1], destination[1], 8 + len(data), 0) + data
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + packed(source[0]) + packed(destination[0])
    whole = bytes(12) + b"\x08\x00" + ip + udp
    return Frame(time_ns=at, interface="client:eth0", inbound=False, data=whole, length=len(whole))


def conversed(into: Path, versions: tuple[int, int], *, retry: bool = False) -> list[Path]:
    """A transfer from server to client as the client captures it, and its key log; with the version that the client
    begins with, and the one that the server prefers."""
    log = io.StringIO()
    first, agreed = versions
    asked = QuicConfiguration(
        is_client=True, original_version=first, supported_versions=[agreed, first], verify_mode=ssl.CERT_NONE
    )
    asked.secrets_log_file, asked.server_name = log, "server"
    client = QuicConnection(configuration=asked)
    server: QuicConnection | None = None
    offered = _certified(QuicConfiguration(is_client=False, supported_versions=[agreed, first]))
    seen: list[Frame] = []
    now, sent = 0, False
    client.connect(SERVER, now=0.0)
    for _ in range(60):
        for data, _to in client.datagrams_to_send(now=now / 1e9):
            seen.append(_frame(now, CLIENT, SERVER, data))
            if server is None:
                header = pull_quic_header(Buffer(data=data), host_cid_length=8)
                if retry:
                    retry = False
                    again = encode_quic_retry(V2, b"retrying", header.source_cid, header.destination_cid, b"token")
                    original = header.destination_cid
                    now += 2 * WAY_NS
                    seen.append(_frame(now, SERVER, CLIENT, again))
                    client.receive_datagram(again, SERVER, now=now / 1e9)
                    continue
                server = QuicConnection(
                    configuration=offered,
                    original_destination_connection_id=original if header.token else header.destination_cid,
                    retry_source_connection_id=b"retrying" if header.token else None,
                )
            server.receive_datagram(data, CLIENT, now=(now + WAY_NS) / 1e9)
        if server is None:
            continue
        now += 2 * WAY_NS
        if client._handshake_confirmed and not sent:
            sent = True
            server.send_stream_data(server.get_next_available_stream_id(), bytes(SIZE), end_stream=True)
            server.request_key_update()
        for data, _to in server.datagrams_to_send(now=(now - WAY_NS) / 1e9):
            seen.append(_frame(now, SERVER, CLIENT, data))
            client.receive_datagram(data, SERVER, now=now / 1e9)
    keys = into / "keys.log"
    keys.write_text(log.getvalue(), encoding="utf-8")
    return [pcap(into / "client.pcap", seen), keys]


@pytest.mark.parametrize(
    ("versions", "retry"), [((V2, V2), False), ((V2, V2), True), ((V1, V2), False), ((V1, V1), False)]
)
def test_both_versions_and_what_changes_between_them_are_open(
    tmp_path: Path, versions: tuple[int, int], retry: bool
) -> None:
    file, keys = conversed(tmp_path, versions, retry=retry)
    traced = capture.trace([file], keys=[keys], segments=True)
    assert not [note for note in traced.notes if "opened" in note or "sealed" in note]
    (seen,) = metrics.connections(traced.recording)
    assert (seen.transport, seen.bytes) == ("quic", SIZE)
    headers = traced.recording.table("headers")
    assert {"Initial", "Handshake", "1-RTT"} <= set(headers["flags"])
    assert headers.filter(pl.col("options").str.contains("CRYPTO"))["flags"].to_list().count("Initial") >= 2


def test_initial_packets_are_open_without_a_key_log(tmp_path: Path) -> None:
    file, _ = conversed(tmp_path, (V2, V2))
    traced = capture.trace([file], segments=True)
    assert set(traced.recording.table("headers")["flags"]) == {"Initial"}
    assert [note for note in traced.notes if "are sealed" in note]
