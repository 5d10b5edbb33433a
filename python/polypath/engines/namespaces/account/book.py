"""The account of a run on a real kernel: the capacity of the links and its use, as far as counters show.

Links count packets sent, dropped and lost. For each subflow, the kernel counts the time with unacknowledged data
(`tcpi_busy_time`). It also counts the time in which the peer's window (`tcpi_rwnd_limited`) or the send buffer
(`tcpi_sndbuf_limited`) limited it.

Each sampling interval of a link is divided accordingly: the bytes sent by owner, and the unused capacity by the cause
that limited the sender. The causes are those of docs/explain.md.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from polypath.engines.namespaces.account.lanes import Cause, Ends, Lane
from polypath.engines.namespaces.account.network import Network
from polypath.engines.namespaces.account.totals import Total
from polypath.engines.namespaces.logs import ConnectionSample
from polypath.plan.routing import Hop

Row = dict[str, Any]
_Parts = dict[Cause, float]

#: A window is full when this part of it is in flight: what is left may be less than a segment.
_FULL: Final = 0.9
#: So much of SO_SNDBUF is data where it is full; Linux doubles what is asked for, for what it keeps beside the data.
_BUFFER: Final = 0.4
DELIVERED: Final = Cause("delivered")
#: A sender that these held wanted no more of its link.
_WANTS_NOTHING: Final = frozenset(("application", "handshake", "unused", "joining", "closed", "backup"))


@dataclass(frozen=True)
class Sender:
    """One side of a connection that sends."""

    connection: int
    side: str
    multipath: bool
    #: Its congestion control sets a rate.
    paces: bool
    start_ns: int
    until_ns: int
    established_ns: int | None
    #: What the other side's application has had.
    delivered_bytes: int
    #: Of a packet's IP and TCP headers, as they usually are.
    header_bytes: int
    samples: Sequence[ConnectionSample]
    subflows: Sequence[Ends]
    #: Every pair of addresses between which it may send.
    ways: Sequence[tuple[Hop, ...]]


class Book:
    """The account of one sender."""

    def __init__(self, of: Sender, network: Network, interval_ns: int, alone: bool) -> None:
        """`alone`: nobody else's packets can be on its links."""
        self.of = of
        self.network = network
        self.alone = alone
        lanes = [Lane.of_ends(each, network) for each in of.subflows]
        self.lanes = lanes
        self._samples = of.samples
        self._times = [each.time_ns for each in of.samples]
        found = network.narrowest(of.ways)
        self.lines = [
            Line(self, hop, [each for each in lanes if next((it for it in each.of.route if it in found), None) == hop])
            for hop in found
        ]
        self._interval_ns = interval_ns
        self._copies = _copies(of, lanes)

    def rows(self) -> Iterator[Row]:
        """Running totals at sampling instants, of what has changed."""
        if not any(each.received.last for each in self.lanes):
            return
        for line in self.lines:
            told: dict[Cause, int] = {}
            for time, totals in line.totals(self._cuts(), self._interval_ns):
                for cause, value in totals.items():
                    count = round(value)
                    if count == told.get(cause, 0):
                        continue
                    told[cause] = count
                    yield {
                        "time_ns": time,
                        "connection": self.of.connection,
                        "side": self.of.side,
                        "link": line.hop.link,
                        "direction": line.hop.direction,
                        "cause": cause.kind,
                        "at_link": cause.at,
                        "head": None,
                        "bytes": count,
                    }

    def copies(self, time: int, part: float) -> float:
        """Bytes up to then that two subflows brought, of which a line has so large a part."""
        return self._copies.at(time) * part

    def near(self, time: int) -> ConnectionSample | None:
        """The connection's last sample up to a time."""
        after = bisect_right(self._times, time)
        return self._samples[after - 1] if after else None

    def window(self, time: int) -> float:
        """The peer's receive window."""
        return max((each.window.at(time) for each in self.lanes), default=0.0)

    def _cuts(self) -> list[int]:
        """Sampling instants, and when something began or ended in between."""
        since, until = self.of.start_ns, self.of.until_ns
        found = {*range(since - since % self._interval_ns, until, self._interval_ns), *self.network.changes()}
        for each in self.lanes:
            found |= {time for time in (each.of.established_ns, each.of.closed_ns) if time is not None}
        found.add(self.of.established_ns or since)
        return sorted({since, until, *(time for time in found if since < time < until)})


def _copies(of: Sender, lanes: Sequence[Lane]) -> Total:
    """Bytes that came on two subflows: what all brought beyond what came, up to what was sent on a second one."""
    if not of.multipath or not of.samples:
        return Total(())
    sent = of.samples[-1].reinjected
    beyond = sum(each.received.last for each in lanes) - of.delivered_bytes
    share = min(max(beyond, 0.0), sent) / sent if sent else 0.0
    return Total((each.time_ns, each.reinjected * share) for each in of.samples)


class Line:
    """One of the links that bound a sender, and its subflows over it."""

    def __init__(self, book: Book, hop: Hop, lanes: Sequence[Lane]) -> None:
        self.hop = hop
        self._book = book
        self._lanes = lanes
        self._network = book.network

    def totals(self, instants: Sequence[int], interval_ns: int) -> Iterator[tuple[int, _Parts]]:
        """What became of what the link could carry, up to each sampling instant and the end."""
        since, until = instants[0], instants[-1]
        idled: _Parts = defaultdict(float)
        headers = self._header_bytes(since, until)
        for before, now in pairwise(instants):
            carried = self._grown("sent_bytes", before, now)
            idle = self._network.capacity(self.hop, before, now) - carried
            held = self._held(before, now)
            for cause, part in held.items():
                idled[cause] += idle * part
            if not self._book.alone:
                others = carried - self._own(before, now, headers)
                wanted = sum(part for cause, part in held.items() if cause.kind not in _WANTS_NOTHING)
                idled[Cause("others")] += others * wanted
                for cause, part in held.items():
                    if cause.kind in _WANTS_NOTHING:
                        idled[cause] += others * part
            if now % interval_ns and now != until:
                continue
            totals = self._carried(since, now, headers)
            for cause, value in idled.items():
                totals[cause] = totals.get(cause, 0.0) + value
            yield now, totals

    def _carried(self, since: int, now: int, headers: float) -> _Parts:
        """What the link sent for the sender."""
        received = sum(each.received.grown(since, now) for each in self._lanes)
        everything = sum(each.received.last for each in self._book.lanes)
        part = sum(each.received.last for each in self._lanes) / everything if everything else 0.0
        copies = min(self._book.copies(now, part), received)
        again = sum(each.duplicates.grown(since, now) for each in self._lanes)
        own = headers * self._packets(since, now)
        found = {
            DELIVERED: received - copies,
            Cause("reinjected"): copies,
            Cause("retransmitted"): again,
            Cause("headers"): own,
        }
        if self._book.alone:
            found[Cause("under-way")] = self._grown("sent_bytes", since, now) - received - again - own
        return found

    def _own(self, before: int, now: int, headers: float) -> float:
        payload = sum(each.received.grown(before, now) + each.duplicates.grown(before, now) for each in self._lanes)
        return payload + headers * self._packets(before, now)

    def _packets(self, before: int, now: int) -> float:
        if self._book.alone:
            return self._grown("sent_packets", before, now)
        return sum(each.segments.grown(before, now) for each in self._lanes)

    def _header_bytes(self, since: int, until: int) -> float:
        """Header bytes of a packet: by the counters of a link without other traffic; otherwise the usual number."""
        sent = sum(each.sent.grown(since, until) + each.duplicates.grown(since, until) for each in self._lanes)
        # What waits in the queue has been sent and not carried yet.
        found = self._grown("sent_bytes", since, until) + self._network.total(self.hop, "queue_bytes").at(until) - sent
        packets = self._grown("sent_packets", since, until) + self._network.total(self.hop, "queue_packets").at(until)
        if not self._book.alone or not packets:
            return self._book.of.header_bytes + self._network.overhead(self.hop)
        return max(0.0, found) / packets

    def _grown(self, name: str, before: int, now: int) -> float:
        return self._network.total(self.hop, name).grown(before, now)

    def _held(self, before: int, now: int) -> _Parts:
        """What held the sender back, as parts of a time in which nothing began or ended."""
        middle = (before + now) // 2
        if self._network.down(self.hop, middle):
            return {Cause("down", self.hop.link): 1.0}
        of = self._book.of
        if of.established_ns is None or middle < of.established_ns:
            return {Cause("handshake"): 1.0}
        there = [each for each in self._lanes if each.phase(middle) == "working"]
        if not there:
            phases = {each.phase(middle) for each in self._lanes}
            return {Cause(next((it for it in ("joining", "closed") if it in phases), "unused")): 1.0}
        # Of several over one link, the one that was busiest kept it from idling.
        lane = max(there, key=lambda each: each.busy.grown(before, now))
        cut = next((hop for hop in lane.of.route if self._network.down(hop, middle)), None)
        if cut is not None:
            return {Cause("down", cut.link): 1.0}
        if lane.of.backup and any(not each.of.backup and each.phase(middle) == "working" for each in self._book.lanes):
            return {Cause("backup"): 1.0}
        return self._shares(lane, before, now)

    def _shares(self, lane: Lane, before: int, now: int) -> _Parts:
        """The kernel's own account of a subflow, and what samples at both ends of the time tell of the rest."""
        time = now - before
        busy = min(max(lane.busy.grown(before, now), 0.0), time) / time
        window = min(max(lane.window_limited.grown(before, now), 0.0) / time, busy)
        buffer = 0.0
        if not self._book.of.multipath:
            # A subflow is short of buffer whenever its connection has given it nothing more.
            buffer = min(max(lane.buffer_limited.grown(before, now), 0.0) / time, busy - window)
        found: _Parts = defaultdict(float)
        found[Cause("receive-window")] += window
        found[Cause("send-buffer")] += buffer
        again = lane.again.grown(before, now) > 0
        for at in (before, now):
            found[self._idle(at)] += (1 - busy) / 2
            found[self._sending(lane, at, again=again)] += (busy - window - buffer) / 2
        return {cause: part for cause, part in found.items() if part > 0}

    def _idle(self, time: int) -> Cause:
        """Why a subflow had nothing that was not acknowledged."""
        return self._given(time) if self._book.of.multipath else Cause("application")

    def _sending(self, lane: Lane, time: int, *, again: bool) -> Cause:
        """What kept a subflow from more whose data was under way, and that no buffer limited as the kernel has it."""
        near, connection = lane.near(time), self._book.near(time)
        if near is None or connection is None:
            return Cause("slow-start")
        multipath = self._book.of.multipath
        full = near.in_flight >= _FULL * near.cwnd
        waits = connection.unsent > 0 if multipath else connection.unsent >= near.size > 0
        if again or (full and (waits or multipath)):
            return self._window(lane, time)
        if multipath or not waits:
            return self._given(time)
        return Cause("pacing") if self._book.of.paces else self._window(lane, time)

    def _window(self, lane: Lane, time: int) -> Cause:
        reduced = lane.reduced_by(time)
        by_itself = reduced.kind in ("slow-start", "controller")
        return Cause("pacing") if self._book.of.paces and by_itself else reduced

    def _given(self, time: int) -> Cause:
        """Why a subflow that could have sent was given nothing."""
        near = self._book.near(time)
        if near is None or not near.queued:
            return Cause("application")
        if not (near.unsent and self._book.of.multipath):
            return Cause("send-buffer" if near.queued >= _BUFFER * near.send_buffer else "application")
        if near.queued - near.unsent >= _FULL * self._book.window(time) > 0:
            return Cause("receive-window")
        return Cause("scheduler")
