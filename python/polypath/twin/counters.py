"""Counters of sockets from `iperf3 -J` and `ss -ti`: samples of each connection, by path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Sample:
    """A stretch of time of a path, or of one socket on it."""

    start_s: float
    end_s: float
    #: Payload that was acknowledged, or what came nearest to that.
    bytes: float
    #: Smoothed, at its end; None where nothing was told.
    rtt_s: float | None
    retransmits: int
    cwnd_bytes: float | None = None

    @property
    def rate_bps(self) -> float:
        return self.bytes * 8 / (self.end_s - self.start_s)


@dataclass(frozen=True)
class Socket:
    """A connection of TCP, or a subflow, as the counters of one of its ends show it."""

    #: Of the client, and of the server.
    source: str
    destination: str
    samples: Sequence[Sample]
    #: Payload of a full segment; None: not told.
    segment: int | None
    #: The least round trip, if the kernel's own minimum is told.
    least_rtt_s: float | None = None
    #: Segments with data that were sent.
    segments: int | None = None


@dataclass(frozen=True)
class Counted:
    """Everything that one file tells."""

    #: What wrote it.
    tool: str
    name: str
    #: "client" or "server": who sent the data.
    sender: str
    multipath: bool
    #: Side by side on each path.
    sockets: Sequence[Socket]
    #: Linux's name of the sender's congestion control.
    congestion: str | None
    seconds: float
    #: An application of the scenario language: its kind and its settings.
    kind: str
    settings: dict[str, str | int | bool]
    #: A buffer that was set, or a window that limited the sender.
    receive_buffer: int | None = None
    #: What it does not tell, a line each.
    notes: Sequence[str] = field(default=())
