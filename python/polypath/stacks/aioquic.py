"""aioquic, a QUIC stack in Python with one path.

aioquic takes the time as an argument. What it draws, its keys included, comes from a seed while it is called, so that
a run is the same each time.
"""

from __future__ import annotations

import io
import math
import os
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from typing import Any, Final

from polypath.stacks import Content, Datagram, Figures, News, Place, Polled

SECOND: Final = 1_000_000_000
_PROTOCOL: Final = "hq-interop"
_SERVER: Final = "polypath"
#: Bytes of a stream that are handed over before they can be sent.
_AHEAD: Final = 65_536
#: Error codes: none (RFC 9000 section 20.1).
_NO_ERROR: Final = 0


def missing() -> str | None:
    """Why aioquic cannot be used here, in one line; None where it can."""
    try:
        import aioquic  # noqa: F401
    except ImportError:
        return "pip install 'polypath[aioquic]'"
    return None


def version() -> str:
    """aioquic's name and version."""
    try:
        return f"aioquic {installed('aioquic')}"
    except PackageNotFoundError:
        return "aioquic"


def make(settings: Mapping[str, Any]) -> Aioquic:
    """A stack with a host's settings."""
    return Aioquic(settings)


class Aioquic:
    """aioquic as one end of an application has it set."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings

    def begin(
        self, client: bool, local: Place, remote: Place, seed: int, backup: bool, content: Content, now: int
    ) -> Connection:
        return Connection(self._settings, client, local, remote, seed, content, now)


class _Drawn:
    """A module of `cryptography` whose private keys come from a seed."""

    def __init__(self, module: Any, **names: Any) -> None:
        self._module = module
        self.__dict__.update(names)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


class _Seeded:
    """Makes private keys of a class from a seed, and stands for the class where only that is asked of it."""

    def __init__(self, of: Any, count: int, draw: random.Random) -> None:
        self._of, self._count, self._draw = of, count, draw

    def generate(self) -> Any:
        return self._of.from_private_bytes(self._draw.randbytes(self._count))


class Connection:
    """An end of a connection."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        client: bool,
        local: Place,
        remote: Place,
        seed: int,
        content: Content,
        now: int,
    ) -> None:
        from aioquic.quic.configuration import QuicConfiguration
        from aioquic.quic.connection import QuicConnection

        self._client, self._local, self._remote, self._content = client, local, remote, content
        self._random = random.Random(seed)
        self._log = io.StringIO()
        self._told = 0
        self._configuration = QuicConfiguration(
            is_client=client,
            alpn_protocols=[_PROTOCOL],
            server_name=_SERVER,
            congestion_control_algorithm=settings["congestion"],
            secrets_log_file=self._log,
        )
        self._set_certificate(settings)
        self._make = QuicConnection
        self._connection: Any = None
        self._news: list[News] = []
        self._opened: set[int] = set()
        #: By stream: bytes handed over, bytes in all, whether nothing follows, whether aioquic knows.
        self._sending: dict[int, list[Any]] = {}
        #: Those of which something is to be sent or acknowledged.
        self._active: set[int] = set()
        self._counts = [0, 0]
        self._closed = False
        if client:
            with self._drawing():
                self._connection = QuicConnection(configuration=self._configuration)
                self._connection.connect(remote, now=now / SECOND)

    def _set_certificate(self, settings: Mapping[str, Any]) -> None:
        import ssl

        from cryptography.hazmat.primitives.serialization import load_der_private_key
        from cryptography.x509 import load_der_x509_certificate

        self._configuration.verify_mode = ssl.CERT_NONE
        if not self._client:
            self._configuration.certificate = load_der_x509_certificate(bytes(settings["certificate"]))
            key: Any = load_der_private_key(bytes(settings["key"]), None)
            self._configuration.private_key = key

    @contextmanager
    def _drawing(self) -> Iterator[None]:
        """aioquic draws from the seed meanwhile: it asks `os.urandom`, and three modules of `cryptography`."""
        from aioquic import tls
        from cryptography.hazmat.primitives.asymmetric import ec, x448, x25519

        names: Any = tls
        before = (os.urandom, names.ec, names.x25519, names.x448)

        def key_on(curve: Any, backend: Any = None) -> Any:
            # Any number below the order of the curve; 256 bits less one are.
            return ec.derive_private_key(1 + self._random.getrandbits(255), curve)

        os.urandom = self._random.randbytes
        names.ec = _Drawn(ec, generate_private_key=key_on)
        names.x25519 = _Drawn(x25519, X25519PrivateKey=_Seeded(x25519.X25519PrivateKey, 32, self._random))
        names.x448 = _Drawn(x448, X448PrivateKey=_Seeded(x448.X448PrivateKey, 56, self._random))
        try:
            yield
        finally:
            os.urandom, names.ec, names.x25519, names.x448 = before

    # What the simulator calls

    def receive(self, local: Place, remote: Place, data: bytes, ecn: int, now: int) -> None:
        with self._drawing():
            if self._connection is None and not self._accept(data):
                return
            self._connection.receive_datagram(data, remote, now=now / SECOND)

    def _accept(self, data: bytes) -> bool:
        """Makes a server's connection for a client's first datagram."""
        from aioquic import buffer
        from aioquic.quic.packet import QuicPacketType, pull_quic_header

        made: Any = buffer

        try:
            header = pull_quic_header(made.Buffer(data=data), host_cid_length=self._configuration.connection_id_length)
        except ValueError:
            return False
        if self._client or header.packet_type != QuicPacketType.INITIAL:
            return False
        self._connection = self._make(
            configuration=self._configuration, original_destination_connection_id=header.destination_cid
        )
        return True

    def on_time(self, now: int) -> None:
        connection = self._connection
        timer = None if connection is None else connection.get_timer()
        if timer is not None and timer <= now / SECOND:
            with self._drawing():
                connection.handle_timer(now=now / SECOND)

    def open(self, bidirectional: bool) -> int:
        kind = 0 if bidirectional else 1
        stream = 4 * self._counts[kind] + 2 * kind + (0 if self._client else 1)
        self._counts[kind] += 1
        self._opened.add(stream)
        self._sending[stream] = [0, 0, False, False]
        return stream

    def write(self, stream: int, count: int) -> None:
        sending = self._sending.setdefault(stream, [0, 0, False, False])
        if not sending[2]:
            sending[1] += count
            self._active.add(stream)

    def finish(self, stream: int) -> None:
        self._sending.setdefault(stream, [0, 0, False, False])[2] = True
        self._active.add(stream)

    def cancel(self, stream: int) -> int:
        sending = self._sending[stream]
        left = int(sending[1] - sending[0])
        sending[1] = sending[0]
        return left

    def set_priority(self, stream: int, priority: int) -> None:
        """aioquic has none."""

    def open_path(self, local: Place, remote: Place, backup: bool, now: int) -> bool:
        return False

    def abandon(self, path: int, now: int) -> None:
        """It keeps its one path."""

    def set_backup(self, path: int, backup: bool, now: int) -> bool:
        return False

    def migrate(self, local: Place, remote: Place, now: int) -> bool:
        if self._connection is None:
            return False
        self._local = local
        with self._drawing():
            self._connection.change_connection_id()
            self._connection.send_ping(0)
        return True

    def close(self, now: int) -> None:
        if self._connection is not None:
            with self._drawing():
                self._connection.close()

    def poll(self, now: int) -> Polled:
        datagrams: list[Datagram] = []
        if self._connection is not None:
            with self._drawing():
                while True:
                    self._hear()
                    moved = self._hand_over()
                    sent = self._connection.datagrams_to_send(now=now / SECOND)
                    datagrams += [(self._local, (address[0], address[1]), data, 0) for data, address in sent]
                    if not (moved or sent):
                        break
                self._hear()
        text = self._log.getvalue()
        self._news += [("secret", line) for line in text[self._told :].splitlines()]
        self._told = len(text)
        news, self._news = self._news, []
        unwritten = sum(self._sending[each][1] - self._sending[each][0] for each in self._active)
        return datagrams, news, self._figures(), self._deadline(), unwritten, self._idle(), False

    def _deadline(self) -> int | None:
        timer = None if self._connection is None else self._connection.get_timer()
        # The end of the microsecond: then the time is surely not before it.
        return None if timer is None else (math.floor(timer * 1e6) + 1) * 1000

    def _stream(self, number: int) -> Any:
        return self._connection._streams.get(number)

    def _hand_over(self) -> bool:
        """Gives aioquic as much of each stream as it can soon send. Whether that was anything."""
        moved = False
        if self._closed:
            return False
        for number in sorted(self._active):
            sending = self._sending[number]
            stream = self._stream(number)
            sent = 0 if stream is None else stream.sender.highest_offset
            count = min(sending[1] - sending[0], sent + _AHEAD - sending[0])
            last = sending[2] and sending[0] + max(0, count) == sending[1] and not sending[3]
            if count > 0 or last:
                data = self._content(number, sending[0], max(0, count)) if count > 0 else b""
                self._connection.send_stream_data(number, data, end_stream=last)
                sending[0] += len(data)
                sending[3] |= last
                moved = True
        return moved

    def _idle(self) -> bool:
        """Everything that was handed over, ends included, was acknowledged."""
        for number in sorted(self._active):
            sending = self._sending[number]
            stream = self._stream(number) if self._connection is not None else None
            if sending[3] and (stream is None or stream.sender.is_finished):
                self._active.discard(number)
            elif sending[2]:
                return False
        return True

    def _hear(self) -> None:
        from aioquic.quic import events

        while (event := self._connection.next_event()) is not None:
            match event:
                case events.HandshakeCompleted():
                    self._news += [("established",), ("confirmed",)]
                case events.StreamDataReceived():
                    self._came(event.stream_id, event.data, event.end_stream)
                case events.StreamReset():
                    self._came(event.stream_id, b"", True)
                case events.ConnectionTerminated() if not self._closed:
                    self._closed = True
                    self._news.append(("closed", _reason(event)))

    def _came(self, stream: int, data: bytes, ended: bool) -> None:
        if stream not in self._opened:
            self._opened.add(stream)
            self._news.append(("opened", stream))
        if data:
            self._news.append(("came", stream, data))
        if ended:
            self._news.append(("ended", stream))

    def _figures(self) -> list[Figures]:
        if self._connection is None:
            return []
        recovery = self._connection._loss
        rtt = round(recovery._rtt_smoothed * SECOND) if recovery._rtt_initialized else 0
        paths = self._connection._network_paths
        remote = (paths[0].addr[0], paths[0].addr[1]) if paths else None
        sent, received = (paths[0].bytes_sent, paths[0].bytes_received) if paths else (0, 0)
        return [
            (
                0,
                remote,
                self._configuration.max_datagram_size,
                recovery.congestion_window,
                rtt,
                recovery.bytes_in_flight,
                sent,
                received,
                0,
            )
        ]


def _reason(event: Any) -> str:
    if event.reason_phrase == "Idle timeout":
        return "timed-out"
    return "finished" if event.error_code == _NO_ERROR else "aborted"
