"""Reading the captures that a run writes (draft-ietf-opsawg-pcapng)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from polypath.errors import PolypathError

_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_NAME, _FLAGS = 2, 2
_INBOUND = 1


class CaptureError(PolypathError, ValueError):
    """A file that is no capture of ours; the message is one line."""


@dataclass(frozen=True)
class Frame:
    """A frame as it passed an interface."""

    time_ns: int
    interface: str
    """ "node:interface"."""
    inbound: bool
    data: bytes
    """The Ethernet frame, perhaps cut short."""
    length: int
    """Its length on the wire."""


def frames(path: Path) -> Iterator[Frame]:
    """The frames of a capture in the file's order. Raises CaptureError and OSError."""
    data = path.read_bytes()
    interfaces: list[str] = []
    at = 0
    while at < len(data):
        if at + 12 > len(data):
            raise CaptureError(f"{path}: ends within a block")
        kind, length = struct.unpack_from("<II", data, at)
        if length < 12 or length % 4 or at + length > len(data) or (at == 0 and kind != _SECTION):
            raise CaptureError(f"{path}: this is no capture in pcapng")
        body = data[at + 8 : at + length - 4]
        try:
            if kind == _INTERFACE:
                interfaces.append(dict(_options(body, 8)).get(_NAME, b"").decode())
            elif kind == _PACKET:
                yield _frame(body, interfaces)
        except (IndexError, UnicodeDecodeError, struct.error) as error:
            raise CaptureError(f"{path}: a block is damaged") from error
        at += length


def _frame(body: bytes, interfaces: list[str]) -> Frame:
    number, high, low, kept, original = struct.unpack_from("<IIIII", body)
    flags = dict(_options(body, 20 + (kept + 3) // 4 * 4)).get(_FLAGS, b"\0\0\0\0")
    inbound = int.from_bytes(flags, "little") & 3 == _INBOUND
    return Frame(high << 32 | low, interfaces[number], inbound, body[20 : 20 + kept], original)


def _options(body: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    while at + 4 <= len(body):
        code, length = struct.unpack_from("<HH", body, at)
        if code == 0:
            return
        yield code, body[at + 4 : at + 4 + length]
        at += 4 + (length + 3) // 4 * 4
