"""Figures of a connection as pure functions of a Recording.

Times are nanoseconds since the start of the run, rates bit/s, as in the Recording itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import floor, inf
from typing import Any, Final, Literal

import polars as pl

from polypath import units
from polypath._core import Figures
from polypath.plan.shared import encoded
from polypath.registry import traffic
from polypath.results.errors import MetricError as MetricError  # for those who use it from here
from polypath.results.groups import Groups
from polypath.results.recording import Recording

Side = Literal["client", "server"]

SECOND = units.SECOND
#: The transports that are QUIC.
QUIC: Final = ("quic", "mpquic")


@dataclass(frozen=True)
class Connection:
    """What one application's connection came to.

    For UDP and ICMP applications, which have no connection, `id` is None and there are no subflows.
    """

    application: int
    id: int | None
    name: str
    #: tcp, mptcp, fallback (MPTCP that fell back to TCP), udp or icmp.
    transport: str
    #: The end to which most bytes went: the one that goodput is measured at. Where as many went to both, as none, the
    #: one that was to have them; the client of those that give and take.
    receiver: Side
    #: Bytes delivered in order to the receiving application.
    bytes: int
    start_ns: int
    established_ns: int | None
    #: When the connection was closed; None: it was still open when the run ended.
    end_ns: int | None
    last_byte_ns: int | None
    #: End of the time that goodput is taken over: the last byte of a connection that closed, else the end of the run.
    #: Work that only its duration ends has at least that time: a slow stream's last block may come long before.
    until_ns: int
    #: Whether the application did all that it was to do before the run ended; None: it has no end of its own.
    finished: bool | None = None
    #: The state in which a connection ended that did not close in order.
    failure: str | None = None

    @property
    def over_quic(self) -> bool:
        """QUIC numbers packets where TCP numbers bytes, and has paths instead of subflows."""
        return self.transport in QUIC

    @property
    def lane(self) -> str:
        """What one of its subflows is called."""
        return "path" if self.over_quic else "subflow"

    @property
    def sender(self) -> Side:
        """The other end than `receiver`."""
        return "client" if self.receiver == "server" else "server"


def _figures(recording: Recording) -> Figures:
    """What the core works out of a run's tables."""

    def made() -> Figures:
        found = {name: recording.tables.get(name) for name in Figures.tables()}
        # polars hands columns without any value over as no other library reads them
        tables = {name: table.cast({pl.Null: pl.Int64}) for name, table in found.items() if table is not None}
        made = recording.metadata
        return Figures(encoded(recording.plan), tables, made.end_ns, made.interrupted)

    return recording.once("figures", made)


def connections(recording: Recording) -> list[Connection]:
    """Every application's connection, in the Plan's order."""
    return list(recording.once("connections", lambda: [Connection(**of) for of in _figures(recording).connections()]))


def connection(recording: Recording, name: str) -> Connection:
    """The connection of that name. Raises MetricError unless there is just one."""
    everything = connections(recording)
    found = [each for each in everything if each.name == name]
    if len(found) != 1:
        known = ", ".join(sorted({each.name for each in everything})) or "none"
        raise MetricError(
            f"{'several connections are' if found else 'no connection is'} named '{name}' (there: {known})"
        )
    return found[0]


def connection_samples(recording: Recording) -> Groups:
    """The samples of each end of a connection, by time: key (connection, side)."""
    return recording.groups("connections", ("connection", "side"), ("time_ns",))


def subflow_samples(recording: Recording) -> Groups:
    """The samples of each subflow and side, by time: key (connection, subflow, side)."""
    return recording.groups("subflows", ("connection", "subflow", "side"), ("time_ns",))


def delivered(recording: Recording, of: Connection) -> tuple[list[int], list[int]]:
    """Times and running totals of bytes delivered in order, from (start, 0) to (until, all).

    A last sample that leaves less than half an interval to the end is left out: a rate over so little says nothing.
    """
    return _figures(recording).delivered(of)


def goodput(recording: Recording, of: Connection, from_ns: int | None = None, to_ns: int | None = None) -> float | None:
    """Bit/s delivered in order to the receiving application, as iperf counts.

    For the whole connection, it is all bytes over the time from its start to its last byte. If only its duration ends
    the connection, the time is at least that. If the connection did not close, the time reaches to the end of the run.
    If it failed before its work was complete, the time reaches to the end of the scenario.

    Between two times, it is interpolated from the sampled totals. None if no time passed.
    """
    if from_ns is None and to_ns is None:
        passed = of.until_ns - of.start_ns
        return of.bytes * 8 * SECOND / passed if passed > 0 else None
    since = of.start_ns if from_ns is None else from_ns
    until = of.until_ns if to_ns is None else to_ns
    return _figures(recording).goodput_between(of, since, until)


def charts(recording: Recording, of: Connection, *, coarse: bool) -> dict[str, Any]:
    """What a page draws of a connection over time, by name; those without data are left out."""
    found: dict[str, Any] = json.loads(_figures(recording).charts(of, coarse))
    return found


def queues(recording: Recording, *, coarse: bool) -> dict[str, Any] | None:
    """What a page draws of the longest queues over time; None where none was ever longer than a packet."""
    found = _figures(recording).queues(coarse)
    return None if found is None else json.loads(found)


def link_courses(recording: Recording) -> dict[str, Any]:
    """Use and queue of each direction of each link over time, as a page has them; empty where no time passed."""
    found = _figures(recording).link_courses()
    return {} if found is None else json.loads(found)


def summary(recording: Recording, of: Connection) -> dict[str, Any]:
    """A connection's figures with those of its requests and subflows, as summary.json has them."""
    found: dict[str, Any] = json.loads(_figures(recording).summary(of))
    return found


def account(recording: Recording, of: Connection, since_ns: int, until_ns: int | None) -> dict[str, Any] | None:
    """The fields of an `account.Account`; None where none was kept."""
    return _figures(recording).account(of, since_ns, until_ns)


def links(recording: Recording) -> list[dict[str, Any]]:
    """The figures of each direction of each link, as summary.json has them."""
    found: list[dict[str, Any]] = json.loads(_figures(recording).links())
    return found


def paths(recording: Recording) -> list[str]:
    """The links at the client's interfaces that connections use, in the order of the plan."""
    return _figures(recording).paths()


def goodput_series(recording: Recording, of: Connection) -> tuple[list[float], list[float]]:
    """Ends of the sampling intervals in seconds, and the goodput in each in Mbps."""
    return _in_seconds(_figures(recording).goodput_series(of))


def subflow_series(recording: Recording, of: Connection, subflow: Subflow) -> tuple[list[float], list[float]]:
    """Like `goodput_series` and over the same intervals, of the bytes that arrived on one subflow."""
    return _in_seconds(_figures(recording).subflow_series(of, subflow))


def _in_seconds(rates: Sequence[tuple[int, float]]) -> tuple[list[float], list[float]]:
    return [end / SECOND for end, _ in rates], [rate for _, rate in rates]


def subflow_goodput(recording: Recording, of: Connection, subflow: Subflow) -> float | None:
    """Bit/s that arrived on one subflow: its bytes over the connection's time, or the time until the last of them came.

    None where no time passed, or its bytes are not counted.
    """
    return _figures(recording).subflow_goodput(of, subflow)


def silent_since_ns(recording: Recording, of: Connection, subflow: Subflow) -> int | None:
    """From when on nothing arrived on a subflow, to the precision of the samples. None where nothing ever did."""
    return _figures(recording).silent_since_ns(of, subflow)


@dataclass(frozen=True)
class Datagrams:
    """What came of a UDP application."""

    sent: int
    received: int
    delay_mean_ns: int | None
    jitter_ns: int | None
    """Interarrival jitter at the end (RFC 3550 section 6.4.1)."""


def datagrams(recording: Recording, of: Connection) -> Datagrams | None:
    """None of what runs over a connection, and of ping."""
    if of.transport != "udp":
        return None
    totals = recording.groups("datagrams", ("application",))
    (sent,), (received,), (delay,) = (
        totals.column(name, of.application) for name in ("sent_packets", "received_packets", "delay_mean_ns")
    )
    jitters = recording.groups("datagram_samples", ("application",), ("time_ns",)).column("jitter_ns", of.application)
    return Datagrams(sent, received, delay, jitters[-1] if jitters else None)


def alternations(recording: Recording, of: Connection, interfaces: Sequence[str]) -> float | None:
    """Changes a second of the interface that brings most bytes within a sampling interval; ties change nothing."""
    series = [
        subflow_series(recording, of, subflow) for subflow in subflows(recording, of) if subflow.interface in interfaces
    ]
    rates: dict[float, list[float]] = {}
    for times, values in series:
        for time, value in zip(times, values, strict=True):
            rates.setdefault(time, []).append(value)
    leaders = []
    for _, values in sorted(rates.items()):
        best = max(values)
        if len(values) == len(series) and values.count(best) == 1:
            leaders.append(values.index(best))
    changes = sum(before != after for before, after in pairwise(leaders))
    span = (max(rates) - min(rates)) if len(rates) > 1 else 0.0
    return changes / span if span > 0 else None


def both_ways(recording: Recording, of: Connection) -> tuple[Connection, Connection] | None:
    """A two-way transfer as the server and as the client received it, over the whole connection; None of others."""
    applications = recording.plan.get("applications", [])
    if of.application >= len(applications) or "reverse_bytes" not in applications[of.application]["work"]:
        return None
    ends = recording.table("connection_ends")
    (row,) = ends.filter(ends["application"] == of.application).iter_rows(named=True)
    to_server = replace(of, receiver="server", bytes=row["server_received_bytes"])
    return to_server, replace(of, receiver="client", bytes=row["client_received_bytes"])


def completion_ns(of: Connection) -> int | None:
    """Time from start to last byte; None where the application did not finish, or its connection did not close.

    One that finished without a byte, as it had none to send, took until its connection was closed.
    """
    if of.finished is False or of.end_ns is None:
        return None
    last = of.end_ns if of.finished and of.last_byte_ns is None else of.last_byte_ns
    return None if last is None else last - of.start_ns


def delays(recording: Recording, of: Connection) -> list[int | None]:
    """Delay of each request in ns, in the order of sending; None: unanswered."""
    return recording.groups("requests", ("application",), ("index",)).column("delay_ns", of.application)


def sends_messages(recording: Recording, of: Connection) -> bool:
    """Whether its requests are messages, which have no answer but an arrival."""
    applications = recording.plan.get("applications", [])
    if of.application >= len(applications):
        return False
    return traffic(applications[of.application]["work"]["kind"]).delays == "messages"


def refused(recording: Recording, of: Connection) -> int:
    """Messages for which no packet had room; they are among those without an answer."""
    if of.id is None:
        return 0
    return recording.table("events").filter(kind="datagram-refused", connection=of.id).height


FEWEST: Final[Mapping[str, int]] = {"p50": 1, "p95": 20, "p99": 100}
"""How many requests or flows a percentile needs: with fewer, it lies between the two longest."""


@dataclass(frozen=True)
class Delays:
    """What is known of the delays of several requests. One without an answer is longer than any that was answered."""

    sent: int
    #: In ns, the shortest first.
    answered: tuple[float, ...]

    @classmethod
    def of(cls, delays: Sequence[float | None]) -> Delays:
        """The delays from values in ns in any order; None: unanswered."""
        return cls(len(delays), tuple(sorted(delay for delay in delays if delay is not None)))

    @property
    def unanswered(self) -> int:
        """How many have no answer."""
        return self.sent - len(self.answered)

    def quantile(self, part: float) -> float | None:
        """In ns, linearly interpolated; None where it depends on a request without an answer."""
        place = part * (self.sent - 1)
        lower = floor(place)
        upper = lower + (place > lower)
        if not self.sent or upper >= len(self.answered):
            return None
        return self.answered[lower] + (place - lower) * (self.answered[upper] - self.answered[lower])


@dataclass(frozen=True)
class Subflow:
    """A subflow's totals in its connection's main direction.

    `bytes` is what arrived at the receiver on this subflow, bytes that another subflow brought too included. It and
    `share` are None where bytes are not counted by path: those in DATAGRAM frames of QUIC belong to no stream.
    """

    id: int
    source: str
    destination: str
    interface: str
    backup: bool
    established_ns: int | None
    closed_ns: int | None
    bytes: int | None
    #: Part of the bytes of all the connection's subflows; 0 where nothing arrived.
    share: float | None
    #: Bytes that the sender sent on it, each once.
    sent_bytes: int
    retransmitted_bytes: int
    #: None: the engine does not count them, or bytes are not counted by path.
    reinjected_bytes: int | None
    #: What it is to a person: "subflow", or "path" of QUIC.
    kind: str = "subflow"

    @property
    def is_counted(self) -> bool:
        """Whether its bytes are known."""
        return self.bytes is not None

    @property
    def label(self) -> str:
        """Its name in legends."""
        return f"{self.kind} {self.id} ({self.interface}{', backup' if self.backup else ''})"

    @property
    def resent(self) -> float | None:
        """Part of all bytes sent on it that were sent again; None where nothing was sent."""
        sent = self.sent_bytes + self.retransmitted_bytes
        return self.retransmitted_bytes / sent if sent else None


def subflows(recording: Recording, of: Connection) -> list[Subflow]:
    """The connection's subflows by id."""
    return [Subflow(**one) for one in _figures(recording).subflows(of)]


def sent_bytes(recording: Recording, of: Connection, interface: str, side: str | None = None) -> int:
    """Bytes that left first by an interface's subflows or paths, in one direction or both; raises MetricError."""
    if side not in (None, "client", "server"):
        raise MetricError(f"a side is client or server, not '{side}'")
    ends = recording.groups("subflow_ends", ("connection",), ("subflow",))
    rows = list(ends.rows(("interface", "client_sent_bytes", "server_sent_bytes"), of.id))
    known = {name for name, *_ in rows}
    if interface not in known:
        raise MetricError(f"no subflow of '{of.name}' is on '{interface}'; there is {', '.join(sorted(known))}")
    own = [(client, server) for name, client, server in rows if name == interface]
    of_side = {"client": sum(one[0] for one in own), "server": sum(one[1] for one in own)}
    return int(of_side[side] if side is not None else sum(of_side.values()))


def link_packets(recording: Recording, link: str, direction: str) -> int:
    """Packets that left a link's queue in one direction; raises MetricError for a link that is none."""
    return _at_link(recording, link, direction, "sent_packets")


def reinjected_bytes(found: Sequence[Subflow]) -> int | None:
    """The reinjected bytes of several subflows together; None if the engine does not count them."""
    known = [subflow.reinjected_bytes for subflow in found if subflow.reinjected_bytes is not None]
    return sum(known) if len(known) == len(found) else None


def lasts_until_ns(of: Connection, subflow: Subflow) -> int:
    """Until when a subflow's samples say something: it closes, or the transfer is over."""
    return of.until_ns if subflow.closed_ns is None else min(of.until_ns, subflow.closed_ns)


def sampled(
    recording: Recording, of: Connection, subflow: Subflow, column: str, side: Side | None = None
) -> tuple[list[int], list[Any]]:
    """Times and values of a subflow's samples at one end, at first the sender, while it lasts."""
    samples = subflow_samples(recording).rows(("time_ns", column), of.id, subflow.id, side or of.sender)
    until = lasts_until_ns(of, subflow)
    found = [sample for sample in samples if sample[0] <= until]
    return [time for time, _ in found], [value for _, value in found]


def between(from_s: float | None, to_s: float | None) -> Callable[[int], bool]:
    """Whether a time in nanoseconds lies between two in seconds; None leaves an end open."""
    low = -inf if from_s is None else from_s * SECOND
    high = inf if to_s is None else to_s * SECOND
    return lambda time: low <= time <= high


def most_queued(recording: Recording, link: str, direction: str) -> int:
    """The most packets in a link's queue in one direction; raises MetricError for a link that is none."""
    return _at_link(recording, link, direction, "max_queue_packets")


def queue_packets(recording: Recording, link: str, direction: str, within: Callable[[int], bool]) -> list[int]:
    """Samples of the packets in a link's queue, in ascending order; raises MetricError for a link that is none."""
    number = _at_link(recording, link, direction, "link")
    rows = recording.groups("links", ("link", "direction")).rows(("time_ns", "queue_packets"), number, direction)
    return sorted(packets for time, packets in rows if within(time))


def _at_link(recording: Recording, link: str, direction: str, column: str) -> int:
    if direction not in ("forward", "backward"):
        raise MetricError(f"a direction is forward or backward, not '{direction}'")
    found = recording.groups("link_ends", ("name", "direction")).column(column, link, direction)
    if not found:
        raise MetricError(f"no link is called '{link}'")
    return int(found[0])


def srtt_us(recording: Recording, of: Connection, subflow: Subflow) -> list[int]:
    """The sender's samples of a subflow's smoothed RTT while it lasts, those before the first measurement left out.

    One that was over before its first sample has the value that came next.
    """
    return _figures(recording).srtt_us(of, subflow)


def reassembly_max(recording: Recording, of: Connection) -> int | None:
    """Most bytes that waited at the receiver for what comes before them, of the samples; None without any."""
    samples = connection_samples(recording).column("reassembly_bytes", of.id, of.receiver)
    return max((sample for sample in samples if sample is not None), default=None)


Level = Literal["subflow", "connection"]


@dataclass(frozen=True)
class Blocking:
    """What the receiver of a connection's main direction waited for with data at hand (docs/recording.md)."""

    level: Level
    subflow: int | None
    #: late, retransmitted, reinjected or missing.
    cause: str
    time_ns: int
    #: Bytes that waited, integrated over the time.
    byte_s: float
    max_bytes: int


def blocking(recording: Recording, of: Connection) -> list[Blocking] | None:
    """The receiver's waits by level, subflow and cause; None where the engine cannot know them."""
    if reassembly_max(recording, of) is None:
        return None
    rows = recording.groups("blocking", ("connection", "side"))
    columns = ("level", "subflow", "cause", "time_ns", "byte_s", "max_bytes")
    return [Blocking(*row) for row in rows.rows(columns, of.id, of.receiver)]


def utilisation(recording: Recording, busy_ns: int) -> float:
    """Part of the run's time that a link was sending."""
    return busy_ns / recording.metadata.end_ns if recording.metadata.end_ns else 0.0
