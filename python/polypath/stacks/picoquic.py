"""picoquic, a QUIC and Multipath QUIC stack in C, through its C interface.

The Python package aiopquic has it in a shared object that exports picoquic's functions. `library` calls these, and
aiopquic itself is not imported. picoquic takes the time as an argument and draws from a seed here. A run is therefore
the same each time.
"""

from __future__ import annotations

import base64
import ctypes
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from polypath.stacks import Content, Datagram, Figures, News, Place, Polled, library
from polypath.stacks.library import missing, version

__all__ = ["make", "missing", "version"]

MICROSECOND: Final = 1_000
_NEVER: Final = 2**64 - 1
#: What the endpoint of Polypath speaks.
_PROTOCOL: Final = b"hq-interop"
_SERVER: Final = b"polypath"
#: TLS_AES_128_GCM_SHA256, which every stack here has (RFC 8446 appendix B.4).
_SUITE: Final = 0x1301
#: picoquic's names of congestion controls that do what ours of these names do.
CONGESTION: Final[Mapping[str, bytes]] = {
    "reno": b"newreno",
    "cubic": b"cubic",
    "bbr": b"bbr1",
    "bbr3": b"bbr",
}
#: The longest UDP payload that picoquic makes (PICOQUIC_MAX_PACKET_SIZE).
_LONGEST: Final = 1536
#: A path of QUIC begins with datagrams of so many bytes (RFC 9000 section 14.1).
_FIRST_DATAGRAM: Final = 1200
#: Error codes of picoquic: PICOQUIC_ERROR_STATELESS_RESET, and its three timeouts.
_RESET: Final = 0x400 + 30
_TIMEOUTS: Final = frozenset({0x400 + 51, 0x400 + 52, 0x400 + 53})
#: PICOQUIC_TRANSPORT_APPLICATION_ABANDON, APPLICATION_ABANDON_PATH of RFC 10069.
_ABANDON: Final = 0x3E

# Members of picoquic_call_back_event_t.
_DATA, _FIN, _RESET_STREAM, _STOP, _STATELESS_RESET, _CLOSE, _APPLICATION_CLOSE = range(7)
_PREPARE, _ALMOST_READY, _READY = 8, 9, 10
_PATH_AVAILABLE, _PATH_DELETED = 20, 22


def make(settings: Mapping[str, Any]) -> Picoquic:
    """A stack with a host's settings."""
    return Picoquic(settings)


class Picoquic:
    """picoquic as one end of an application has it set."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._library = library.load()

    def begin(
        self, client: bool, local: Place, remote: Place, seed: int, backup: bool, content: Content, now: int
    ) -> Connection:
        return Connection(self._library, self._settings, client, local, remote, seed, content, now)


class _Stream:
    """What is to be sent on a stream."""

    __slots__ = ("last", "offset", "total")

    def __init__(self) -> None:
        self.offset = 0
        self.total = 0
        #: Nothing follows.
        self.last = False


class Connection:
    """An end of a connection, with a context of picoquic of its own."""

    def __init__(
        self,
        lib: library.Library,
        settings: Mapping[str, Any],
        client: bool,
        local: Place,
        remote: Place,
        seed: int,
        content: Content,
        now: int,
    ) -> None:
        self._lib = lib
        self._client = client
        self._local, self._remote = local, remote
        self._content = content
        self._random = library.Random(seed)
        self._time = ctypes.c_uint64(now // MICROSECOND)
        self._cnx: int | None = None
        self._news: list[News] = []
        self._sending: dict[int, _Stream] = {}
        #: Of all streams: bytes that picoquic has not asked for, and streams of whose end it does not know.
        self._unwritten = 0
        self._unsaid: set[int] = set()
        self._opened: set[int] = set()
        #: How many streams this side opened, of both directions and of one.
        self._count = [0, 0]
        self._paths: list[int] = [0]
        #: Their addresses at a client, which moves no path of Multipath QUIC.
        self._known: dict[int, tuple[Place, Place]] = {}
        self._backups: set[tuple[Place, Place]] = set()
        #: The longest datagram from each address.
        self._longest: dict[Place, int] = {}
        self._closed = False
        self._ready = False
        self._multipath = False
        self._folder = tempfile.TemporaryDirectory(prefix="polypath-")
        self._keys = Path(self._folder.name) / "keys"
        self._told = 0
        self._number = lib.register(self._on_event)
        with self._turn():
            self._quic = self._create(settings)
            if client:
                self._start(remote, now)

    def __del__(self) -> None:
        if getattr(self, "_quic", None):
            self._lib.forget(self._number)
            with self._lib.drawing_from(self._random):
                self._lib.picoquic_free(self._quic)
            self._quic = 0
            self._folder.cleanup()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """A call into picoquic: it draws from this end's seed."""
        with self._lib.drawing_from(self._random):
            yield
        self._lib.raise_failure()

    def _create(self, settings: Mapping[str, Any]) -> int:
        lib, folder = self._lib, Path(self._folder.name)
        files: list[bytes | None] = [None, None]
        if not self._client:
            for position, (name, title) in enumerate((("certificate", "CERTIFICATE"), ("key", "PRIVATE KEY"))):
                file = folder / f"{name}.pem"
                file.write_text(_pem(title, bytes(settings[name])), encoding="ascii")
                files[position] = bytes(file)
        quic = lib.picoquic_create(
            1,
            files[0],
            files[1],
            None,
            _PROTOCOL,
            lib.callback,
            self._number,
            None,
            None,
            None,
            self._time.value,
            ctypes.byref(self._time),
            None,
            None,
            0,
        )
        if not quic:
            raise RuntimeError("picoquic made no context")
        lib.note_parameters(quic)
        lib.restrict_key_exchange()
        if lib.picoquic_set_cipher_suite(quic, _SUITE):
            raise RuntimeError("picoquic has no AES-128-GCM")
        self._verifier = library.Verifier(bytes(settings["certificate"]))
        lib.picoquic_set_verify_certificate_callback(quic, ctypes.byref(self._verifier.struct), None)
        lib.picoquic_enable_path_callbacks_default(quic, 1)
        lib.picoquic_set_mtu_max(quic, min(int(settings["longest_datagram"]), _LONGEST))
        if settings["multipath"]:
            lib.picoquic_set_default_multipath_option(quic, 1)
        if settings["retry"]:
            lib.picoquic_set_cookie_mode(quic, 1)
        congestion = lib.picoquic_get_congestion_algorithm(CONGESTION[settings["congestion"]])
        lib.picoquic_set_default_congestion_algorithm(quic, congestion)
        lib.picoquic_enable_sslkeylog(quic, 1)
        lib.picoquic_set_key_log_file(quic, bytes(self._keys))
        self._keepalive = settings["keepalive_ns"]
        return int(quic)

    def _start(self, remote: Place, now: int) -> None:
        lib = self._lib
        self._cnx = lib.picoquic_create_cnx(
            self._quic,
            library.ConnectionId(),
            library.ConnectionId(),
            library.sockaddr(remote),
            now // MICROSECOND,
            1,
            _SERVER,
            _PROTOCOL,
            1,
        )
        lib.picoquic_set_callback(self._cnx, lib.callback, self._number)
        if lib.picoquic_start_client_cnx(self._cnx):
            raise RuntimeError("picoquic did not start a connection")

    def _set_time(self, now: int) -> int:
        self._time.value = now // MICROSECOND
        return self._time.value

    # What the simulator calls

    def receive(self, local: Place, remote: Place, data: bytes, ecn: int, now: int) -> None:
        with self._turn():
            at = self._set_time(now)
            source, destination = library.sockaddr(remote), library.sockaddr(local)
            self._lib.picoquic_incoming_packet(self._quic, data, len(data), source, destination, 0, ecn, at)

    def on_time(self, now: int) -> None:
        """Everything that is due happens in `poll`."""

    def open(self, bidirectional: bool) -> int:
        kind = 0 if bidirectional else 2
        number = self._count[kind // 2]
        self._count[kind // 2] += 1
        stream = 4 * number + kind + (0 if self._client else 1)
        self._opened.add(stream)
        self._sending[stream] = _Stream()
        return stream

    def write(self, stream: int, count: int) -> None:
        sending = self._sending.setdefault(stream, _Stream())
        if not sending.last:
            sending.total += count
            self._unwritten += count
            self._activate(stream)

    def finish(self, stream: int) -> None:
        self._sending.setdefault(stream, _Stream()).last = True
        self._unsaid.add(stream)
        self._activate(stream)

    def cancel(self, stream: int) -> int:
        sending = self._sending[stream]
        left = sending.total - sending.offset
        sending.total = sending.offset
        self._unwritten -= left
        return left

    def set_priority(self, stream: int, priority: int) -> None:
        """picoquic serves lower numbers first. Its default is 9; the lowest bit means in order of the streams."""
        if self._cnx is not None:
            with self._turn():
                self._lib.picoquic_set_stream_priority(self._cnx, stream, max(0, min(254, 8 - 2 * priority)) | 1)

    def open_path(self, local: Place, remote: Place, backup: bool, now: int) -> bool:
        if self._cnx is None:
            return False
        with self._turn():
            at = self._set_time(now)
            peer, own = library.sockaddr(remote), library.sockaddr(local)
            refused = self._lib.picoquic_probe_new_path_ex(self._cnx, peer, own, 0, at, 0)
        if not refused and backup:
            self._backups.add((local, remote))
        return not refused

    def abandon(self, path: int, now: int) -> None:
        if self._cnx is None:
            return
        with self._turn():
            at = self._set_time(now)
            refused = self._lib.picoquic_abandon_path(self._cnx, path, _ABANDON, at)
        if not refused:
            self._news.append(("path-closed", path))

    def set_backup(self, path: int, backup: bool, now: int) -> bool:
        if self._cnx is None or not self._multipath:
            return False
        with self._turn():
            self._set_time(now)
            return bool(self._lib.picoquic_set_path_status(self._cnx, path, int(backup)) == 0)

    def migrate(self, local: Place, remote: Place, now: int) -> bool:
        if self._cnx is None:
            return False
        with self._turn():
            at = self._set_time(now)
            peer, own = library.sockaddr(remote), library.sockaddr(local)
            refused = self._lib.picoquic_probe_new_path_ex(self._cnx, peer, own, 0, at, 0)
        return not refused

    def close(self, now: int) -> None:
        if self._cnx is not None:
            with self._turn():
                self._set_time(now)
                self._lib.picoquic_close(self._cnx, 0)

    def poll(self, now: int) -> Polled:
        with self._turn():
            at = self._set_time(now)
            datagrams = list(self._prepare(at))
            due = self._lib.picoquic_get_next_wake_time(self._quic, at)
            self._set_backups()
            figures = [] if self._cnx is None else list(self._figures())
            idle = self._cnx is None or bool(self._lib.picoquic_is_cnx_backlog_empty(self._cnx))
        self._tell_keys()
        news, self._news = self._news, []
        # A wake time that has passed although nothing is to be sent would stop the clock.
        deadline = None if due >= _NEVER // MICROSECOND else max(due, at + 1) * MICROSECOND
        return datagrams, news, figures, deadline, self._unwritten, idle and not self._unsaid, self._multipath

    def _prepare(self, at: int) -> Iterator[Datagram]:
        lib = self._lib
        while True:
            size = lib.prepare(self._quic, at)
            if not size:
                return
            local = library.place(lib.source) or self._local
            remote = library.place(lib.destination) or self._remote
            if not local[1]:
                local = local[0], self._local[1]
            self._longest[local] = max(size, self._longest.get(local, _FIRST_DATAGRAM))
            yield local, remote, lib.buffer.raw[:size], 0

    def _activate(self, stream: int) -> None:
        if self._cnx is not None:
            with self._turn():
                self._lib.picoquic_mark_active_stream(self._cnx, stream, 1, None)

    # What picoquic calls

    def _on_event(self, cnx: int, stream: int, data: int, length: int, event: int) -> None:
        if self._closed:
            return
        self._cnx = cnx
        if event in (_DATA, _FIN):
            self._came(stream, ctypes.string_at(data, length) if length else b"", event == _FIN)
        elif event == _PREPARE:
            self._provide(stream, data, length)
        elif event == _RESET_STREAM:
            self._came(stream, b"", True)
        elif event in (_ALMOST_READY, _READY):
            self._on_ready(event == _READY)
        elif event in (_CLOSE, _APPLICATION_CLOSE, _STATELESS_RESET):
            self._on_close(event)
        elif event == _PATH_AVAILABLE:
            self._on_path(stream)
        elif event == _PATH_DELETED:
            self._paths = [path for path in self._paths if path != stream]
            self._news.append(("path-closed", stream))

    def _came(self, stream: int, data: bytes, ended: bool) -> None:
        if stream not in self._opened:
            self._opened.add(stream)
            self._news.append(("opened", stream))
        if data:
            self._news.append(("came", stream, data))
        if ended:
            self._news.append(("ended", stream))

    def _provide(self, stream: int, context: int, room: int) -> None:
        sending = self._sending.get(stream)
        if sending is None:
            self._lib.picoquic_provide_stream_data_buffer(context, 0, 0, 0)
            return
        left = sending.total - sending.offset
        count = min(left, room)
        last = sending.last and count == left
        buffer = self._lib.picoquic_provide_stream_data_buffer(context, count, int(last), int(count < left))
        if buffer and count:
            ctypes.memmove(buffer, self._content(stream, sending.offset, count), count)
        sending.offset += count
        self._unwritten -= count
        if last:
            self._unsaid.discard(stream)

    def _on_ready(self, complete: bool) -> None:
        if self._cnx is None:
            return
        # A server is done with the handshake when it has the client's Finished.
        if self._client or complete:
            self._multipath = self._lib.is_multipath(self._cnx)
            self._news.append(("established",))
        if complete and not self._ready:
            self._ready = True
            self._news.append(("confirmed",))
            if self._keepalive is not None:
                self._lib.picoquic_enable_keep_alive(self._cnx, self._keepalive // MICROSECOND)

    def _on_close(self, event: int) -> None:
        if self._cnx is None or self._closed:
            return
        self._closed = True
        local, remote, application = self._lib.close_reasons(self._cnx)
        if event == _STATELESS_RESET or local == _RESET:
            reason = "reset"
        elif local in _TIMEOUTS:
            reason = "timed-out"
        elif local or remote or application:
            reason = "aborted"
        else:
            reason = "finished"
        self._news.append(("closed", reason))
        self._cnx = None

    def _on_path(self, path: int) -> None:
        if path in self._paths or not self._multipath:
            return
        addresses = self._addresses(path)
        if addresses is not None:
            self._paths.append(path)
            self._news.append(("path-open", path, *addresses))

    # What is read of it

    def _addresses(self, path: int) -> tuple[Place, Place] | None:
        known = self._known.get(path)
        if known is None:
            local, remote = (self._lib.path_address(self._cnx, path, which) for which in (1, 2))
            if local is None or remote is None:
                return None
            known = (local[0], local[1] or self._local[1]), remote
            if self._client and self._multipath:
                self._known[path] = known
        return known

    def _set_backups(self) -> None:
        """The peer learns of the status that a path was opened with once the path is there."""
        for path in self._paths if self._backups and self._cnx is not None else ():
            addresses = self._addresses(path)
            if addresses in self._backups:
                self._backups.remove(addresses)
                self._lib.picoquic_set_path_status(self._cnx, path, 1)

    def _figures(self) -> Iterator[Figures]:
        for path in self._paths:
            quality = self._lib.quality(self._cnx, path)
            if quality is None:
                continue
            addresses = self._addresses(path)
            local, remote = addresses or (self._local, None)
            # Where nothing was measured yet, picoquic shows its initial round trip (RFC 9002 section 6.2.2).
            rtt = quality.rtt * MICROSECOND if quality.rtt_sample else 0
            yield (
                path,
                remote,
                self._longest.get(local, _FIRST_DATAGRAM),
                quality.cwin,
                rtt,
                quality.bytes_in_transit,
                quality.bytes_sent,
                quality.bytes_received,
                quality.lost,
            )

    def _tell_keys(self) -> None:
        if self._told < 0 or not self._keys.exists():
            return
        lines = self._keys.read_text(encoding="ascii").splitlines()
        self._news += [("secret", line) for line in lines[self._told :] if not line.startswith("#")]
        self._told = -1 if self._ready else len(lines)


def _pem(title: str, der: bytes) -> str:
    """RFC 7468."""
    text = base64.b64encode(der).decode("ascii")
    lines = (text[at : at + 64] for at in range(0, len(text), 64))
    return "\n".join((f"-----BEGIN {title}-----", *lines, f"-----END {title}-----", ""))
