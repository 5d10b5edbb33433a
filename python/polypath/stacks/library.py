"""picoquic's C interface in aiopquic's shared object: where it is, its functions, and what they draw.

An interpreter of Python 3.12 and later finds the object where pip put aiopquic. Others need its path in
POLYPATH_PICOQUIC: the object is made for 3.12, but only functions that nothing here calls need that version.
"""

from __future__ import annotations

import ctypes
import ipaddress
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

from polypath.stacks import Place

VARIABLE: Final = "POLYPATH_PICOQUIC"
_OBJECTS: Final = "aiopquic/_binding/_transport*.so"
_CRYPTO: Final = "libcrypto*.so*"
#: Transport parameter initial_max_path_id (RFC 10069).
_MAX_PATH_ID: Final = 0x3E
#: A value that no other parameter has.
_MARK: Final = 0x2F3E4D5C
_BUFFER: Final = 1536
#: An alert of TLS (RFC 8446 section 6).
_UNKNOWN_CA: Final = 48

OnEvent = Callable[[int, int, int, int, int], None]
"""Connection, stream or path, address of the data, its length, event."""

_EVENT: Final = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_uint64,
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_void_p,
)
_DRAW: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)


class ConnectionId(ctypes.Structure):
    """picoquic_connection_id_t."""

    _fields_ = (("id", ctypes.c_uint8 * 20), ("id_len", ctypes.c_uint8))


class Quality(ctypes.Structure):
    """picoquic_path_quality_t, and room for what later versions add."""

    _fields_ = (
        *(
            (name, ctypes.c_uint64)
            for name in (
                "receive_rate_estimate",
                "pacing_rate",
                "cwin",
                "rtt",
                "rtt_sample",
                "rtt_variant",
                "rtt_min",
                "rtt_max",
                "sent",
                "lost",
                "timer_losses",
                "spurious_losses",
                "max_spurious_rtt",
                "max_reorder_delay",
                "max_reorder_gap",
                "bytes_in_transit",
                "bytes_sent",
                "bytes_received",
            )
        ),
        ("room", ctypes.c_uint64 * 32),
    )


class _RandomMethod(ctypes.Structure):
    """RAND_METHOD of OpenSSL."""

    _fields_ = (
        ("seed", ctypes.c_void_p),
        ("bytes", _DRAW),
        ("cleanup", ctypes.c_void_p),
        ("add", ctypes.c_void_p),
        ("pseudorand", _DRAW),
        ("status", ctypes.CFUNCTYPE(ctypes.c_int)),
    )


class _Bytes(ctypes.Structure):
    """ptls_iovec_t of picotls."""

    _fields_ = (("base", ctypes.c_void_p), ("len", ctypes.c_size_t))


_VERIFY: Final = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_char_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.POINTER(_Bytes),
    ctypes.c_size_t,
)


class _Verifier(ctypes.Structure):
    """ptls_verify_certificate_t of picotls."""

    _fields_ = (("cb", _VERIFY), ("algos", ctypes.POINTER(ctypes.c_uint16)))


class Verifier:
    """Accepts one certificate and nothing else, at any time. Its signature is not checked."""

    def __init__(self, certificate: bytes) -> None:
        self._certificate = certificate
        #: Ed25519 alone (RFC 8446 section 4.2.3), and picotls's mark of the end.
        self._algorithms = (ctypes.c_uint16 * 2)(0x0807, 0xFFFF)
        #: What picotls gets a pointer to.
        self.struct = _Verifier(_VERIFY(self._verify), self._algorithms)

    def _verify(self, *arguments: Any) -> int:
        certificates, count = arguments[-2:]
        shown = count > 0 and ctypes.string_at(certificates[0].base, certificates[0].len)
        return 0 if shown == self._certificate else _UNKNOWN_CA


class Random:
    """Bytes from a seed: SHA-256 of the seed and a counter."""

    def __init__(self, seed: int) -> None:
        self._seed = seed.to_bytes(8, "big")
        self._count = 0
        self._left = b""

    def draw(self, count: int) -> bytes:
        while len(self._left) < count:
            self._left += sha256(self._seed + self._count.to_bytes(8, "big")).digest()
            self._count += 1
        drawn, self._left = self._left[:count], self._left[count:]
        return drawn


@lru_cache(maxsize=4096)
def sockaddr(place: Place) -> ctypes.Array[ctypes.c_char]:
    """A struct sockaddr_in or sockaddr_in6."""
    address = ipaddress.ip_address(place[0])
    port = struct.pack("!H", place[1])
    if address.version == 4:
        packed = struct.pack("=H", socket.AF_INET) + port + address.packed + bytes(8)
    else:
        packed = struct.pack("=H", socket.AF_INET6) + port + bytes(4) + address.packed + bytes(4)
    return ctypes.create_string_buffer(packed, len(packed))


def place(storage: ctypes.Array[ctypes.c_char]) -> Place | None:
    """The address in a struct sockaddr_storage; None where there is none."""
    return _place(storage.raw[:28])


@lru_cache(maxsize=4096)
def _place(data: bytes) -> Place | None:
    (family,) = struct.unpack_from("=H", data)
    (port,) = struct.unpack_from("!H", data, 2)
    if family == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, data[4:8]), port
    if family == socket.AF_INET6:
        return socket.inet_ntop(socket.AF_INET6, data[8:24]), port
    return None


@cache
def _found() -> tuple[Path | None, str]:
    """The shared object, or why it is not there."""
    if given := os.environ.get(VARIABLE):
        file = Path(given)
        if file.is_dir():
            file = next(iter(sorted(file.glob(_OBJECTS))), file)
        return (file, "") if file.is_file() else (None, f"{VARIABLE} names '{given}', and no file is there")
    try:
        installed = distribution("aiopquic")
    except PackageNotFoundError:
        return None, f"pip install 'polypath[picoquic]' (Python 3.12 and later), or set {VARIABLE} to its shared object"
    files = [file for file in installed.files or () if file.match(_OBJECTS)]
    if not files:
        return None, "the package aiopquic has no _binding/_transport*.so here"
    return Path(str(installed.locate_file(files[0]))), ""


def missing() -> str | None:
    """Why picoquic cannot be used here, in one line; None where it can."""
    if _found()[0] is None:
        return _found()[1]
    try:
        load()
    except (OSError, AttributeError) as error:
        return f"its shared object cannot be used ({' '.join(str(error).split())})"
    return None


def version() -> str:
    """picoquic's version, as the object's package tells it."""
    file = _found()[0]
    info = None if file is None else file.parent.parent / "_build_info.py"
    if info is None or not info.is_file():
        return "picoquic"
    values: dict[str, str] = {}
    for line in info.read_text(encoding="utf-8").splitlines():
        name, equals, value = line.partition("=")
        if equals:
            values[name.strip()] = value.strip().strip("'\"")
    return f"picoquic {values.get('PICOQUIC_VERSION', '')}".strip()


@cache
def load() -> Library:
    """The library, loaded once. Raises OSError."""
    file = _found()[0]
    if file is None:
        raise OSError(_found()[1])
    return Library(file)


def _opened(file: Path) -> ctypes.PyDLL:
    """ctypes binds every function when it loads an object. Here each is bound at its first call: functions for a newer
    interpreter are never called."""
    libc = ctypes.CDLL(None)
    libc.dlopen.restype = ctypes.c_void_p
    libc.dlopen.argtypes = (ctypes.c_char_p, ctypes.c_int)
    libc.dlerror.restype = ctypes.c_char_p
    handle = libc.dlopen(bytes(file), os.RTLD_LAZY | os.RTLD_LOCAL)
    if not handle:
        raise OSError(libc.dlerror().decode())
    return ctypes.PyDLL(str(file), handle=handle)


_SIGNATURES: Final[dict[str, tuple[Any, str]]] = {
    # p: pointer, s: text, Q: 64 bits, I: 32 bits, B: 8 bits, z: size, C: connection id, F: callback
    "picoquic_create": (ctypes.c_void_p, "IssssFppppQpspz"),
    "picoquic_free": (None, "p"),
    "picoquic_create_cnx": (ctypes.c_void_p, "pCCpQIssB"),
    "picoquic_start_client_cnx": (ctypes.c_int, "p"),
    "picoquic_set_callback": (None, "pFp"),
    "picoquic_close": (ctypes.c_int, "pQ"),
    "picoquic_incoming_packet": (ctypes.c_int, "pszppIBQ"),
    "picoquic_prepare_next_packet_ex": (ctypes.c_int, "pQpzppppppp"),
    "picoquic_get_next_wake_time": (ctypes.c_uint64, "pQ"),
    "picoquic_mark_active_stream": (ctypes.c_int, "pQIp"),
    "picoquic_provide_stream_data_buffer": (ctypes.c_void_p, "pzII"),
    "picoquic_set_stream_priority": (ctypes.c_int, "pQB"),
    "picoquic_probe_new_path_ex": (ctypes.c_int, "pppIQI"),
    "picoquic_abandon_path": (ctypes.c_int, "pQQQ"),
    "picoquic_set_path_status": (ctypes.c_int, "pQI"),
    "picoquic_get_path_quality": (ctypes.c_int, "pQp"),
    "picoquic_get_path_addr": (ctypes.c_int, "pQIp"),
    "picoquic_is_cnx_backlog_empty": (ctypes.c_int, "p"),
    "picoquic_get_close_reasons": (None, "ppppp"),
    "picoquic_get_default_tp": (ctypes.c_void_p, "p"),
    "picoquic_set_default_tp_value": (ctypes.c_int, "pQQ"),
    "picoquic_get_transport_parameters": (ctypes.c_void_p, "pI"),
    "picoquic_set_default_multipath_option": (None, "pI"),
    "picoquic_enable_path_callbacks_default": (None, "pI"),
    "picoquic_set_verify_certificate_callback": (None, "ppp"),
    "picoquic_set_cipher_suite": (ctypes.c_int, "pI"),
    "picoquic_set_mtu_max": (None, "pI"),
    "picoquic_set_cookie_mode": (None, "pI"),
    "picoquic_get_congestion_algorithm": (ctypes.c_void_p, "s"),
    "picoquic_set_default_congestion_algorithm": (None, "pp"),
    "picoquic_register_all_congestion_control_algorithms": (None, ""),
    "picoquic_enable_sslkeylog": (None, "pI"),
    "picoquic_set_key_log_file": (None, "ps"),
    "picoquic_enable_keep_alive": (None, "pQ"),
    "picoquic_public_random_seed_64": (None, "QI"),
}
_TYPES: Final[dict[str, Any]] = {
    "p": ctypes.c_void_p,
    "s": ctypes.c_char_p,
    "Q": ctypes.c_uint64,
    "I": ctypes.c_int,
    "B": ctypes.c_uint8,
    "z": ctypes.c_size_t,
    "C": ConnectionId,
    "F": _EVENT,
}


class Library:
    """picoquic's functions under their names, and what a connection needs besides."""

    def __init__(self, file: Path) -> None:
        self._object = _opened(file)
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(self._object, name)
            function.restype = result
            function.argtypes = [_TYPES[letter] for letter in arguments]
            setattr(self, name, function)
        self._lock = threading.RLock()
        self._drawing: Random | None = None
        self._failure: BaseException | None = None
        self._owners: dict[int, OnEvent] = {}
        self._number = 0
        self.callback = _EVENT(self._on_event)
        self.buffer = ctypes.create_string_buffer(_BUFFER)
        self.source = ctypes.create_string_buffer(128)
        self.destination = ctypes.create_string_buffer(128)
        self._storage = ctypes.create_string_buffer(128)
        self._size = ctypes.c_size_t()
        self._interface = ctypes.c_int()
        self._last = ctypes.c_void_p()
        self._quality = Quality()
        self._draw_from_here(file)
        self.picoquic_register_all_congestion_control_algorithms()
        self._max_path_id: int | None = None

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"picoquic has no function {name}")

    # Randomness

    def _draw_from_here(self, file: Path) -> None:
        """TLS draws from OpenSSL, of which the package has a copy of its own: it gets a method that draws from here."""
        libraries = sorted((file.parent.parent.parent / "aiopquic.libs").glob(_CRYPTO))
        if not libraries:
            raise OSError(f"the folder aiopquic.libs beside {file.parent.parent} has no libcrypto")
        crypto = ctypes.PyDLL(str(libraries[0]))
        draw, status = _DRAW(self._draw), ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1)
        self._method = _RandomMethod(None, draw, None, None, draw, status)
        crypto.RAND_set_rand_method.argtypes = (ctypes.c_void_p,)
        if crypto.RAND_set_rand_method(ctypes.byref(self._method)) != 1:
            raise OSError("OpenSSL takes no other source of randomness")

    def _draw(self, into: int, count: int) -> int:
        if self._drawing is None:
            return 0
        ctypes.memmove(into, self._drawing.draw(count), count)
        return 1

    @contextmanager
    def drawing_from(self, random: Random) -> Iterator[None]:
        """Whatever picoquic draws meanwhile comes from here. It has one source for all connections: one at a time."""
        with self._lock:
            before, self._drawing = self._drawing, random
            try:
                self.picoquic_public_random_seed_64(int.from_bytes(random.draw(8), "big"), 1)
                yield
            finally:
                self._drawing = before

    def restrict_key_exchange(self) -> None:
        """Only X25519 is left, which the other stacks speak: one round trip of the handshake fewer."""
        curve = ctypes.addressof(ctypes.c_char.in_dll(self._object, "ptls_openssl_x25519"))
        known = (ctypes.c_void_p * 2).in_dll(self._object, "picoquic_key_exchanges")
        known[0], known[1] = curve, None

    # Events

    def register(self, owner: OnEvent) -> int:
        """A number under which picoquic's events reach their connection."""
        self._number += 1
        self._owners[self._number] = owner
        return self._number

    def forget(self, number: int) -> None:
        self._owners.pop(number, None)

    def _on_event(
        self, cnx: int, stream: int, data: int | None, length: int, event: int, owner: int | None, _: int | None
    ) -> int:
        told = self._owners.get(owner or 0)
        if told is None or self._failure is not None:
            return 0
        try:
            told(cnx, stream, data or 0, length, event)
        except BaseException as error:
            # C has no exceptions: it is raised when the call returns.
            self._failure = error
            return -1
        return 0

    def raise_failure(self) -> None:
        """Raises what an event's receiver raised."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    # Calls with several results

    def prepare(self, quic: int, now: int) -> int:
        """The length of the next datagram in `buffer`, with its addresses in `source` and `destination`; 0 for none."""
        ctypes.memset(self.source, 0, 2)
        self.picoquic_prepare_next_packet_ex(
            quic,
            now,
            self.buffer,
            _BUFFER,
            ctypes.byref(self._size),
            self.destination,
            self.source,
            ctypes.byref(self._interface),
            None,
            ctypes.byref(self._last),
            None,
        )
        return self._size.value

    def quality(self, cnx: int | None, path: int) -> Quality | None:
        refused = self.picoquic_get_path_quality(cnx, path, ctypes.byref(self._quality))
        return None if refused else self._quality

    def path_address(self, cnx: int | None, path: int, which: int) -> Place | None:
        """The local (1) or the peer's (2) address of a path."""
        refused = self.picoquic_get_path_addr(cnx, path, which, self._storage)
        return None if refused else place(self._storage)

    def close_reasons(self, cnx: int) -> tuple[int, int, int]:
        """Local error, the peer's, and that of the peer's application."""
        reasons = (ctypes.c_uint64 * 4)()
        first = ctypes.addressof(reasons)
        self.picoquic_get_close_reasons(cnx, *(first + 8 * position for position in range(4)))
        return reasons[0], reasons[1], reasons[3]

    def note_parameters(self, quic: int) -> None:
        """Finds where picoquic_tp_t has initial_max_path_id: versions of picoquic differ in it."""
        if self._max_path_id is not None:
            return
        # The value stands there as one of 64 or 32 bits.
        parameters = self.picoquic_get_default_tp(quic)
        before = (ctypes.c_uint32 * 64).from_address(parameters)[:]
        self.picoquic_set_default_tp_value(quic, _MAX_PATH_ID, _MARK)
        marked = (ctypes.c_uint32 * 64).from_address(parameters)
        found = [position for position, value in enumerate(marked) if value == _MARK]
        self.picoquic_set_default_tp_value(quic, _MAX_PATH_ID, 0)
        if len(found) != 1 or list(before) != list(marked):
            raise OSError("this version of picoquic does not show its transport parameters")
        self._max_path_id = 4 * found[0]

    def is_multipath(self, cnx: int) -> bool:
        """Both sides offered paths (RFC 10069 section 3)."""
        assert self._max_path_id is not None
        told = (self.picoquic_get_transport_parameters(cnx, side) for side in (0, 1))
        return all(ctypes.c_uint32.from_address(each + self._max_path_id).value for each in told)
