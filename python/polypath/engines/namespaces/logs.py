"""The output of the guest's programs, line by line, as Python values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

#: An address and a port.
Endpoint = tuple[str, int]


@dataclass(frozen=True)
class SubflowSample:
    """A line S: one end of a subflow, from TCP_INFO."""

    time_ns: int
    number: int
    local: Endpoint
    remote: Endpoint
    state: int
    cwnd: int
    ssthresh: int
    srtt_us: int
    rttvar_us: int
    in_flight: int
    sent: int
    acked: int
    received: int
    retransmitted: int
    window: int
    #: Time with data that was not acknowledged; of that, what the peer's window and the send buffer limited.
    busy_us: int = 0
    window_limited_us: int = 0
    buffer_limited_us: int = 0
    segments: int = 0
    data_segments: int = 0
    #: Segments that arrived twice, as the peer reported (RFC 2883).
    duplicates: int = 0
    #: Segments that were marked on their way (RFC 3168).
    marked: int = 0

    @property
    def size(self) -> float:
        """Payload of a segment with data, on average."""
        return self.sent / self.data_segments if self.data_segments else 0.0


@dataclass(frozen=True)
class ConnectionSample:
    """A line C: one end of a connection."""

    time_ns: int
    delivered: int
    queued: int
    send_buffer: int
    receive_buffer: int
    reinjected: int
    #: Of what is queued.
    unsent: int = 0


@dataclass(frozen=True)
class DatagramSample:
    """A line U: what one end of a UDP application counted."""

    sent: int
    received: int
    received_bytes: int
    jitter_ns: int | None


@dataclass(frozen=True)
class Chunk:
    """A line V: a segment of a video; None: not settled."""

    asked_ns: int
    arrived_ns: int | None
    representation: int
    rate_bps: int
    size: int
    buffer_ns: int
    played_ns: int | None


@dataclass(frozen=True)
class Loaded:
    """A line B: an object of a page; None: it did not come."""

    size: int
    asked_ns: int
    arrived_ns: int | None


@dataclass
class AppLog:
    """One end of an application."""

    subflows: list[SubflowSample] = field(default_factory=list)
    connections: list[ConnectionSample] = field(default_factory=list)
    requests: list[tuple[int, int]] = field(default_factory=list)
    chunks: dict[int, Chunk] = field(default_factory=dict)
    """By number."""
    objects: dict[int, Loaded] = field(default_factory=dict)
    """By place in the page."""
    established_ns: int | None = None
    transport: str | None = None
    first_byte_ns: int | None = None
    last_byte_ns: int | None = None
    received: int = 0
    ended_ns: int | None = None
    state: str | None = None
    wrong_at: int | None = None
    datagrams: tuple[int, int, int, int] = (0, 0, 0, 0)
    datagram_samples: dict[int, DatagramSample] = field(default_factory=dict)
    """By time."""


@dataclass(frozen=True)
class PathEvent:
    """A line N: what a path manager said."""

    time_ns: int
    kind: int
    token: int
    server_side: bool
    backup: bool
    local: Endpoint
    remote: Endpoint
    error: int
    #: Of the peer's address that it is about (RFC 8684 section 3.4).
    remote_id: int


@dataclass(frozen=True)
class Closed:
    """A line T: what a socket has counted that its application has lost."""

    local: Endpoint
    remote: Endpoint
    state: int
    sent: int
    received: int
    retransmitted: int


@dataclass(frozen=True)
class QueueSample:
    """A line Q: a device of the shaping namespace."""

    time_ns: int
    device: str
    sent_bytes: int
    sent_packets: int
    root_drops: int
    child_drops: int
    queued_packets: int
    queued_bytes: int
    busy_ns: int | None = None
    """How long it has sent for; the kernel does not tell."""


def _lines(path: Path) -> Iterator[list[str]]:
    """Whole lines, split; a file that is missing has none, and a line that was cut is left out."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    for line in text.splitlines(keepends=True):
        if line.endswith("\n"):
            yield line.split()


def _time(word: str) -> int | None:
    value = int(word)
    return None if value < 0 else value


def read_app(path: Path) -> AppLog:
    log = AppLog()
    echoes: dict[int, tuple[int, int]] = {}
    for kind, *words in _lines(path):
        match kind:
            case "S":
                time, number, local, local_port, remote, remote_port, *rest = words
                ends = (_plain(local), int(local_port)), (_plain(remote), int(remote_port))
                log.subflows.append(SubflowSample(int(time), int(number), *ends, *map(int, rest)))
            case "C":
                log.connections.append(ConnectionSample(*map(int, words)))
            case "R":
                log.requests.append((int(words[0]), int(words[1])))
            case "V":
                asked, came, played = (_time(words[index]) for index in (1, 2, 7))
                representation, rate, size, buffer = map(int, words[3:7])
                log.chunks[int(words[0])] = Chunk(asked or 0, came, representation, rate, size, buffer, played)
            case "B":
                log.objects[int(words[0])] = Loaded(int(words[1]), int(words[2]), _time(words[3]))
            case "O":
                log.established_ns, log.transport = int(words[0]), words[1]
            case "P":
                log.first_byte_ns, log.last_byte_ns, log.received = _time(words[0]), _time(words[1]), int(words[2])
            case "X":
                log.ended_ns, log.state = int(words[0]), words[1]
            case "W":
                log.wrong_at = log.wrong_at if log.wrong_at is not None else int(words[0])
            case "E":
                echoes[int(words[0])] = int(words[1]), int(words[2])
            case "D":
                sent, received, size, delays = map(int, words)
                log.datagrams = (sent, received, size, delays)
            case "U":
                at, sent, received, size, jitter, delays = map(int, words)
                log.datagrams = (sent, received, size, delays)
                log.datagram_samples[at] = DatagramSample(sent, received, size, None if jitter < 0 else jitter)
    if log.state is None and log.connections:
        log.received = log.connections[-1].delivered
    log.requests += [echoes[number] for number in sorted(echoes)]
    return log


def read_paths(path: Path) -> list[PathEvent]:
    found = []
    for name, *words in _lines(path):
        if name != "N":
            continue
        time, kind, token, server, backup, local, local_port, remote, remote_port, error, number = words
        ends = (_plain(local), int(local_port)), (_plain(remote), int(remote_port))
        found.append(
            PathEvent(int(time), int(kind), int(token), server == "1", backup != "0", *ends, int(error), int(number)),
        )
    return found


def read_closed(path: Path) -> list[Closed]:
    found = []
    for name, *words in _lines(path):
        if name == "T":
            local, local_port, remote, remote_port, *rest = words[1:]
            found.append(Closed((_plain(local), int(local_port)), (_plain(remote), int(remote_port)), *map(int, rest)))
    return found


def read_queues(path: Path) -> list[QueueSample]:
    return [QueueSample(int(time), device, *map(int, words)) for _, time, device, *words in _lines(path)]


def read_counters(path: Path) -> dict[str, int]:
    """/proc/net/snmp and /proc/net/netstat: a line of names and a line of values for each group; nstat's names."""
    found: dict[str, int] = {}
    names: list[str] = []
    for group, *words in _lines(path):
        if words and not words[0].lstrip("-").isdigit():
            names = [group.rstrip(":") + word for word in words]
        else:
            found |= {name: int(word) for name, word in zip(names, words, strict=False)}
    return found


def _plain(address: str) -> str:
    return address.removeprefix("::ffff:")
