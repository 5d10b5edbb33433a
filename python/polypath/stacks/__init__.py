"""QUIC stacks by others that hosts of the simulator can run, made from Python packages that are installed.

A stack has neither socket nor clock. `Stack.begin` makes an end of a connection. The simulator calls the methods of
`End`, and `poll` after each. `poll` returns what is to be sent, what happened and when it wants to be called. All
times are in nanoseconds of virtual time. An address is a pair of text and port.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Protocol

from polypath.errors import PolypathError

Place = tuple[str, int]
Datagram = tuple[Place, Place, bytes, int]
"""Local and remote address, UDP payload, and the two bits of ECN."""
Figures = tuple[int, Place | None, int, int, int, int, int, int, int]
"""Of a path: id, peer's address, UDP payload of a full packet, congestion window in bytes, smoothed round trip in ns,
bytes in flight, bytes sent, bytes received, packets taken for lost."""
News = tuple[Any, ...]
"""An event's name and what belongs to it; `crates/python/src/stacks.rs` has the list."""
Polled = tuple[Sequence[Datagram], Sequence[News], Sequence[Figures], int | None, int, bool, bool]
"""Datagrams, news, paths, the next deadline, unsent bytes, whether all is acknowledged, whether it is multipath."""
Content = Callable[[int, int, int], bytes]
"""What a stream carries: from the stream's id, an offset and a length."""


class End(Protocol):
    """An end of a connection."""

    def receive(self, local: Place, remote: Place, data: bytes, ecn: int, now: int) -> None: ...
    def on_time(self, now: int) -> None: ...
    def open(self, bidirectional: bool) -> int | None: ...
    def write(self, stream: int, count: int) -> None: ...
    def finish(self, stream: int) -> None: ...
    def cancel(self, stream: int) -> int: ...
    def set_priority(self, stream: int, priority: int) -> None: ...
    def open_path(self, local: Place, remote: Place, backup: bool, now: int) -> bool: ...
    def abandon(self, path: int, now: int) -> None: ...
    def set_backup(self, path: int, backup: bool, now: int) -> bool: ...
    def migrate(self, local: Place, remote: Place, now: int) -> bool: ...
    def close(self, now: int) -> None: ...
    def poll(self, now: int) -> Polled: ...


class Stack(Protocol):
    """A stack as one end of an application has it set."""

    def begin(
        self, client: bool, local: Place, remote: Place, seed: int, backup: bool, content: Content, now: int
    ) -> End: ...


@dataclass(frozen=True)
class Kind:
    """A stack that a scenario can name."""

    name: str
    #: The module that has `make(settings)`, `version()` and `missing()`.
    module: str
    #: What it implements, and which package has it.
    title: str
    #: It speaks Multipath QUIC.
    multipath: bool
    #: The extra of this package that brings it.
    extra: str

    def _module(self) -> Any:
        return import_module(self.module)

    def missing(self) -> str | None:
        """Why it cannot run here, in one line; None where it can."""
        why: str | None = self._module().missing()
        return None if why is None else f"stack '{self.name}' is not there: {why}"

    def version(self) -> str:
        """Its version, as the page of results has it."""
        version: str = self._module().version()
        return version

    def make(self, settings: Mapping[str, Any]) -> Stack:
        """A stack with a host's settings. Raises Absent."""
        if (why := self.missing()) is not None:
            raise Absent(why)
        made: Stack = self._module().make(settings)
        return made


class Absent(PolypathError):
    """A stack is not installed."""


STACKS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind(
            "picoquic",
            "polypath.stacks.picoquic",
            "picoquic, in the package aiopquic",
            multipath=True,
            extra="picoquic",
        ),
        Kind(
            "aioquic",
            "polypath.stacks.aioquic",
            "aioquic",
            multipath=False,
            extra="aioquic",
        ),
    )
}
