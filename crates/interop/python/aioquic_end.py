"""Connections of aioquic for a program that has the links and the clock.

A request comes on standard input and its answer goes to standard output, each behind its length (32 bits). All numbers
are big-endian.

Request: a kind (8 bits), a connection (32 bits), the time in nanoseconds (64 bits), and what the kind needs (see
`Program.act`).

Answer, in this order:
- the next deadline in nanoseconds and a result (64 bits each)
- datagrams, behind their number: address, port, length, bytes
- events, behind their number: kind, two numbers, length, bytes
- lines of a key log, behind their length
"""

import io
import json
import logging
import math
import os
import random
import socket
import ssl
import struct
import sys
import traceback
from collections.abc import Iterator
from typing import Any

import aioquic
from aioquic.buffer import Buffer
from aioquic.quic import events
from aioquic.quic.configuration import SMALLEST_MAX_DATAGRAM_SIZE, QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.packet import (
    QuicPacketType,
    encode_quic_retry,
    encode_quic_version_negotiation,
    pull_quic_header,
)
from aioquic.quic.retry import QuicRetryTokenHandler
from aioquic.tls import SessionTicket
from cryptography.hazmat.primitives.serialization import load_der_private_key
from cryptography.x509 import load_der_x509_certificate

SECOND = 1_000_000_000
NEVER = 2**64 - 1
NEW, RECEIVE, TIMER, OPEN, SEND, CLOSE, UPDATE_KEYS, MOVE, DROP = range(9)
ESTABLISHED, DATA, TERMINATED, RAISED = range(4)

Address = tuple[str, int]


class Sessions:
    """TLS sessions that outlast their connections: a client's last ticket, and a server's by label."""

    def __init__(self) -> None:
        self.ticket: SessionTicket | None = None
        self.by_label: dict[bytes, SessionTicket] = {}

    def of_client(self) -> dict[str, Any]:
        return {"session_ticket_handler": lambda ticket: setattr(self, "ticket", ticket)}

    def of_server(self) -> dict[str, Any]:
        return {
            "session_ticket_fetcher": lambda label: self.by_label.pop(label, None),
            "session_ticket_handler": lambda ticket: self.by_label.setdefault(ticket.ticket, ticket),
        }


class Endpoint:
    """A client's connection, or those that a server accepted."""

    def __init__(self, setup: dict[str, Any], sessions: Sessions) -> None:
        self.log = io.StringIO()
        self.configuration = QuicConfiguration(
            is_client=setup["client"],
            alpn_protocols=[setup["alpn"]],
            server_name=setup["name"],
            verify_mode=ssl.CERT_NONE,
            secrets_log_file=self.log,
        )
        if window := setup["window"]:
            self.configuration.max_data = window
            self.configuration.max_stream_data = window
        chain = [load_der_x509_certificate(bytes.fromhex(it)) for it in setup["certificates"]]
        if chain:
            self.configuration.certificate, *self.configuration.certificate_chain = chain
            self.configuration.private_key = load_der_private_key(bytes.fromhex(setup["key"]), None)
        self.kept: dict[str, Any] = {}
        if setup["resumes"]:
            self.kept = sessions.of_client() if setup["client"] else sessions.of_server()
            self.configuration.session_ticket = sessions.ticket if setup["client"] else None
        self.retry = QuicRetryTokenHandler() if setup["retry"] else None
        self.connections: list[QuicConnection] = []
        #: Of a server, by the ids that clients use.
        self.by_id: dict[bytes, QuicConnection] = {}
        #: What leaves without a connection.
        self.answers: list[tuple[bytes, Address]] = []
        self.events: list[tuple[int, int, int, bytes]] = []
        #: The one whose handshake is complete.
        self.chosen: QuicConnection | None = None
        if setup["client"]:
            connection = QuicConnection(configuration=self.configuration, **self.kept)
            connection.connect(tuple(setup["server"]), now=0.0)
            self.connections.append(connection)

    @property
    def connection(self) -> QuicConnection:
        return self.chosen or self.connections[0]

    def receive(self, data: bytes, address: Address, now: float) -> None:
        if self.configuration.is_client:
            # none once the connection is over
            connection = next(iter(self.connections), None)
        else:
            connection = self.find(data, address, now)
        if connection:
            connection.receive_datagram(data, address, now=now)

    def find(self, data: bytes, address: Address, now: float) -> QuicConnection | None:
        """The connection of a server that a datagram is for: what `aioquic.asyncio.server` does."""
        try:
            header = pull_quic_header(Buffer(data=data), host_cid_length=self.configuration.connection_id_length)
        except ValueError:
            return None
        if (
            header.packet_type != QuicPacketType.VERSION_NEGOTIATION
            and header.version is not None
            and header.version not in self.configuration.supported_versions
        ):
            answer = encode_quic_version_negotiation(
                source_cid=header.destination_cid,
                destination_cid=header.source_cid,
                supported_versions=self.configuration.supported_versions,
            )
            self.answers.append((answer, address))
            return None
        known = self.by_id.get(header.destination_cid)
        if known or len(data) < SMALLEST_MAX_DATAGRAM_SIZE or header.packet_type != QuicPacketType.INITIAL:
            return known
        original, source = header.destination_cid, None
        if self.retry and not header.token:
            self.answers.append((self.ask_again(header, address, now), address))
            return None
        if self.retry:
            try:
                original = self.retry.validate_token(
                    address=address, destination_cid=header.destination_cid, token=header.token, now=now
                )
            except ValueError:
                return None
            source = header.destination_cid
        connection = QuicConnection(
            configuration=self.configuration,
            original_destination_connection_id=original,
            retry_source_connection_id=source,
            **self.kept,
        )
        self.connections.append(connection)
        self.by_id[header.destination_cid] = connection
        self.by_id[connection.host_cid] = connection
        return connection

    def ask_again(self, header: Any, address: Address, now: float) -> bytes:
        assert self.retry
        source = os.urandom(8)
        token = self.retry.create_token(
            address=address,
            original_destination_connection_id=header.destination_cid,
            retry_source_connection_id=source,
            now=now,
        )
        return encode_quic_retry(
            version=header.version,
            source_cid=source,
            destination_cid=header.source_cid,
            original_destination_cid=header.destination_cid,
            retry_token=token,
        )

    def timer(self, now: float) -> None:
        for connection in self.connections:
            if (at := connection.get_timer()) is not None and at <= now:
                connection.handle_timer(now=now)

    def deadline(self) -> int:
        timers = [connection.get_timer() for connection in self.connections]
        return min((round_up(at) for at in timers if at is not None), default=NEVER)

    def take(self, now: float) -> Iterator[tuple[bytes, Address]]:
        yield from self.answers
        self.answers.clear()
        for connection in self.connections:
            yield from connection.datagrams_to_send(now=now)

    def hear(self) -> None:
        for connection in list(self.connections):
            while (event := connection.next_event()) is not None:
                match event:
                    case events.ConnectionIdIssued():
                        self.by_id[event.connection_id] = connection
                    case events.ConnectionIdRetired():
                        self.by_id.pop(event.connection_id, None)
                    case events.HandshakeCompleted():
                        self.chosen = connection
                        self.events.append((ESTABLISHED, 0, 0, b""))
                    case events.StreamDataReceived():
                        self.events.append((DATA, event.stream_id, event.end_stream, event.data))
                    case events.ConnectionTerminated():
                        # one that a client's altered packet made is of no interest
                        if self.configuration.is_client or connection is self.chosen:
                            self.events.append((TERMINATED, event.error_code, 0, event.reason_phrase.encode()))
                        self.connections.remove(connection)
                        break


def round_up(seconds: float) -> int:
    """The end of the microsecond, in nanoseconds: then the time is surely not before it."""
    return (math.floor(seconds * 1e6) + 1) * 1000


class Program:
    def __init__(self) -> None:
        self.endpoints: dict[int, Endpoint] = {}
        self.sessions = Sessions()

    def serve(self, kind: int, index: int, at: int, rest: bytes) -> bytes:
        now = at / SECOND
        result = 0
        if kind == NEW:
            setup = json.loads(rest)
            seed_with(setup["seed"])
            self.endpoints[index] = Endpoint(setup, self.sessions)
        elif kind == DROP:
            del self.endpoints[index]
            return struct.pack("!QQIII", NEVER, 0, 0, 0, 0)
        endpoint = self.endpoints[index]
        try:
            result = self.act(endpoint, kind, rest, now)
            endpoint.hear()
            datagrams = list(endpoint.take(now))
            endpoint.hear()
        except Exception:
            traceback.print_exc()
            reason = traceback.format_exc().strip().splitlines()[-1]
            endpoint.events.append((RAISED, 0, 0, reason.encode()))
            endpoint.connections.clear()
            datagrams = []
        answer = [struct.pack("!QQI", endpoint.deadline(), result, len(datagrams))]
        for data, (address, port) in datagrams:
            answer += [socket.inet_aton(address), struct.pack("!HI", port, len(data)), data]
        answer.append(struct.pack("!I", len(endpoint.events)))
        for kind_of_event, first, second, data in endpoint.events:
            answer += [struct.pack("!BQQI", kind_of_event, first, second, len(data)), data]
        endpoint.events.clear()
        lines = endpoint.log.getvalue().encode()
        endpoint.log.seek(0)
        endpoint.log.truncate()
        return b"".join([*answer, struct.pack("!I", len(lines)), lines])

    def act(self, endpoint: Endpoint, kind: int, rest: bytes, now: float) -> int:
        if kind == RECEIVE:
            address, (port,) = socket.inet_ntoa(rest[:4]), struct.unpack("!H", rest[4:6])
            endpoint.receive(rest[6:], (address, port), now)
        elif kind == TIMER:
            endpoint.timer(now)
        elif kind == OPEN:
            return endpoint.connection.get_next_available_stream_id(is_unidirectional=not rest[0])
        elif kind == SEND:
            (stream,) = struct.unpack("!Q", rest[:8])
            endpoint.connection.send_stream_data(stream, rest[8:], end_stream=True)
        elif kind == CLOSE:
            endpoint.connection.close()
        elif kind == UPDATE_KEYS:
            endpoint.connection.request_key_update()
        elif kind == MOVE:
            endpoint.connection.change_connection_id()
            endpoint.connection.send_ping(0)
        return 0


def seed_with(seed: int) -> None:
    """What aioquic asks of the system's randomness itself comes from a seed; keys of the key exchange do not."""
    os.urandom = random.Random(seed).randbytes  # type: ignore[assignment]


def main() -> None:
    # packets that are lost or altered are no news
    logging.disable()
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    version = aioquic.__version__.encode()
    sink.write(struct.pack("!I", len(version)) + version)
    sink.flush()
    program = Program()
    while len(head := source.read(4)) == 4:
        (length,) = struct.unpack("!I", head)
        request = source.read(length)
        kind, index, at = struct.unpack("!BIQ", request[:13])
        answer = program.serve(kind, index, at, request[13:])
        sink.write(struct.pack("!I", len(answer)) + answer)
        sink.flush()


if __name__ == "__main__":
    main()
