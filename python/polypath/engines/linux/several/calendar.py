"""The virtual time of several guests: what User Mode Linux calls the calendar (include/uapi/linux/um_timetravel.h).

A guest runs on its own to the end of a period, and waits there for the others. Before all have set up their networks
and so agreed on the origin, each runs as if it were alone.
"""

from __future__ import annotations

import array
import os
import selectors
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from polypath.engines.base import EngineError

SOCKET: Final = "calendar"
#: As in bridge.c: how much a period is shorter than the lookahead. A guest's clock has 256 ns, which are far less than
#: the distance of a period's end from the bridge's last writing before it and its next reading after it.
_SHORTER_NS, _BEFORE_READING_NS = 60_000, 5_000
_ACK, _START, _REQUEST, _WAIT, _GET, _UPDATE, _RUN, _FREE_UNTIL, _GET_TOD = range(9)
_MESSAGE: Final = struct.Struct("=IIQ")
_MILLISECOND: Final = 1_000_000
#: From the last guest's meeting to the origin; programs get ready.
_LEAD_NS: Final = 1_000_000_000


@dataclass
class _Guest:
    folder: Path
    listener: socket.socket
    link: socket.socket | None = None
    now: int = 0
    wanted: int = 0
    waits: bool = False
    #: CLOCK_REALTIME and CLOCK_MONOTONIC less the common time.
    clocks: tuple[int, int] | None = None
    gone: bool = False
    rest: bytes = b""
    number: int = 0


class Calendar:
    """Serves guests by a socket in each one's folder. Raises EngineError."""

    def __init__(self, folders: Sequence[Path], lookahead_ns: int) -> None:
        self._period = lookahead_ns - _SHORTER_NS
        self._guests = []
        self._origin: int | None = None
        self._until = 0
        self._selector = selectors.DefaultSelector()
        for folder in folders:
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            guest = _Guest(folder, listener)
            self._guests.append(guest)
            try:
                listener.bind(str(folder / SOCKET))
                (folder / SOCKET).chmod(0o666)
                listener.listen(1)
            except OSError as error:
                raise EngineError(f"cannot make {folder / SOCKET}: {error.strerror or error}") from error
            self._selector.register(listener, selectors.EVENT_READ, guest)

    def serve(self, timeout_s: float) -> None:
        """Handles what has come."""
        for key, _ in self._selector.select(timeout_s):
            guest: _Guest = key.data
            if key.fileobj is guest.listener:
                guest.link, _ = guest.listener.accept()
                self._selector.register(guest.link, selectors.EVENT_READ, guest)
            else:
                self._read(guest)
        self._go_on()

    def close(self) -> None:
        """Guests that still run end by it."""
        self._selector.close()
        for guest in self._guests:
            guest.listener.close()
            if guest.link is not None:
                guest.link.close()

    def _read(self, guest: _Guest) -> None:
        assert guest.link is not None
        try:
            chunk = guest.link.recv(1 << 12)
        except OSError:
            chunk = b""
        if not chunk:
            guest.gone, guest.waits = True, False
            self._selector.unregister(guest.link)
            return
        guest.rest += chunk
        while len(guest.rest) >= _MESSAGE.size:
            message, guest.rest = guest.rest[: _MESSAGE.size], guest.rest[_MESSAGE.size :]
            self._handle(guest, *_MESSAGE.unpack(message))

    def _handle(self, guest: _Guest, operation: int, number: int, time: int) -> None:
        if operation == _ACK:
            return
        if operation == _START:
            self._begin(guest, number)
            return
        if operation == _REQUEST:
            guest.wanted = time
        guest.waits = guest.waits or operation == _WAIT
        self._send(guest, _ACK, number, guest.now if operation in (_GET, _GET_TOD) else 0)

    def _begin(self, guest: _Guest, number: int) -> None:
        """Answers with shared memory of no version, so that messages carry the time: 7.2 takes descriptors from there
        even where none came (arch/um/kernel/time.c, TTMH_READ_START_ACK)."""
        assert guest.link is not None
        memory, log = os.memfd_create("time"), os.open(os.devnull, os.O_RDWR)
        try:
            os.ftruncate(memory, 4096)
            rights = array.array("i", [memory, log])
            guest.link.sendmsg(
                [_MESSAGE.pack(_ACK, number, 0)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights.tobytes())]
            )
        finally:
            os.close(memory)
            os.close(log)

    def _send(self, guest: _Guest, operation: int, number: int, time: int) -> None:
        assert guest.link is not None
        try:
            guest.link.sendall(_MESSAGE.pack(operation, number, time))
        except OSError:
            guest.gone, guest.waits = True, False

    def _go_on(self) -> None:
        if self._origin is None:
            for guest in self._guests:
                if guest.waits and guest.clocks is None and not self._met(guest):
                    self._run(guest, None)
            if all(guest.clocks is not None or guest.gone for guest in self._guests):
                self._agree()
            return
        there = [guest for guest in self._guests if not guest.gone]
        if there and all(guest.waits and guest.wanted >= self._until for guest in there):
            first = min(guest.wanted for guest in there)
            self._until += ((first - self._until) // self._period + 1) * self._period
        for guest in there:
            if guest.waits and guest.wanted < self._until:
                self._run(guest, self._until)

    def _met(self, guest: _Guest) -> bool:
        """Whether the guest told its clocks, which it read last when it was told to run."""
        try:
            real, monotonic = map(int, (guest.folder / "clock").read_text(encoding="utf-8").split())
        except (OSError, ValueError):
            return False
        guest.clocks = real - guest.now, monotonic - guest.now
        return True

    def _agree(self) -> None:
        """On an origin that is a whole millisecond of the first guest's clock, as timers of TCP have it."""
        there = [guest for guest in self._guests if guest.clocks is not None]
        if not there:
            return
        origin = max(guest.now for guest in there) + _LEAD_NS
        clock = there[0].clocks
        assert clock is not None
        origin += -(origin + clock[1]) % _MILLISECOND
        for guest in there:
            assert guest.clocks is not None
            real, monotonic = guest.clocks
            text = f"{origin + monotonic} {origin + real}\n"
            (guest.folder / "origin").write_text(text, encoding="utf-8")
            (guest.folder / "origin").chmod(0o644)
        self._origin = origin
        self._until = origin - _BEFORE_READING_NS
        self._go_on()

    def _run(self, guest: _Guest, until: int | None) -> None:
        guest.waits, guest.now = False, guest.wanted
        if until is not None:
            guest.number += 1
            self._send(guest, _FREE_UNTIL, guest.number, until)
        guest.number += 1
        self._send(guest, _RUN, guest.number, guest.wanted)
