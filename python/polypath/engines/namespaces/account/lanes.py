"""Subflows, for an account of their limits."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

from polypath.engines.namespaces.account.network import Network
from polypath.engines.namespaces.account.totals import Total
from polypath.engines.namespaces.logs import SubflowSample
from polypath.plan.routing import Hop

#: Linux's `ssthresh` before anything reduced the window (TCP_INFINITE_SSTHRESH).
_NO_SSTHRESH: Final = 2**31 - 1
_US: Final = 1_000


class Cause(NamedTuple):
    """A cause of docs/explain.md, and the link that dropped or lost packets, or was down."""

    kind: str
    at: int | None = None


@dataclass(frozen=True)
class Ends:
    """A subflow as an account needs it, of the side that sends."""

    route: tuple[Hop, ...]
    established_ns: int | None
    closed_ns: int | None
    backup: bool
    sender: Sequence[SubflowSample]
    #: Of the side that receives: when it had how much in sequence.
    received: Sequence[tuple[int, int]]
    #: The window that it offered.
    offered: Sequence[tuple[int, int]]


@dataclass
class Lane:
    """A subflow over one of the links that bound its connection."""

    of: Ends
    busy: Total
    window_limited: Total
    buffer_limited: Total
    received: Total
    #: Payload sent for the first time, and again.
    sent: Total
    again: Total
    segments: Total
    duplicates: Total
    window: Total
    times: Sequence[int]
    #: What reduced its window last, by time.
    reduced: Sequence[tuple[int, Cause]]

    @classmethod
    def of_ends(cls, ends: Ends, network: Network) -> Lane:
        def total(value: Any) -> Total:
            return Total((each.time_ns, float(value(each))) for each in ends.sender)

        size = ends.sender[-1].size if ends.sender else 0.0
        return cls(
            ends,
            total(lambda it: it.busy_us * _US),
            total(lambda it: it.window_limited_us * _US),
            total(lambda it: it.buffer_limited_us * _US),
            Total((time, float(count)) for time, count in ends.received),
            total(lambda it: it.sent - it.retransmitted),
            total(lambda it: it.retransmitted),
            total(lambda it: it.segments),
            total(lambda it: it.duplicates * size),
            Total((time, float(count)) for time, count in ends.offered),
            [each.time_ns for each in ends.sender],
            list(_reductions(ends, network)),
        )

    def near(self, time: int) -> SubflowSample | None:
        """The last sample up to a time."""
        after = bisect_right(self.times, time)
        return self.of.sender[after - 1] if after else None

    def reduced_by(self, time: int) -> Cause:
        after = bisect_right(self.reduced, time, key=lambda it: it[0])
        return self.reduced[after - 1][1] if after else Cause("slow-start")

    def phase(self, time: int) -> str:
        """Whether it was there: joining, closed, or working."""
        if self.of.established_ns is None or time < self.of.established_ns:
            return "joining"
        if self.of.closed_ns is not None and time >= self.of.closed_ns:
            return "closed"
        return "working"


def _reductions(ends: Ends, network: Network) -> Iterator[tuple[int, Cause]]:
    """When a window was reduced, and why: what the links on the way have dropped or lost since the last time."""
    for before, now in pairwise(ends.sender):
        again = now.retransmitted > before.retransmitted
        lower = now.ssthresh != before.ssthresh and now.ssthresh < _NO_SSTHRESH
        if not lower and not (again and now.cwnd < before.cwnd):
            continue
        # A loss is known a round trip later.
        since = before.time_ns - 2 * before.srtt_us * _US - (now.time_ns - before.time_ns)
        lost = list(_lost(ends.route, network, since, now.time_ns))
        if any(network.down(hop, time) for hop in ends.route for time in (since, before.time_ns, now.time_ns)):
            down = next(
                hop for hop in ends.route for time in (since, before.time_ns, now.time_ns) if network.down(hop, time)
            )
            cause = Cause("down", down.link)
        elif lost:
            cause = max(lost, key=lambda it: it[0])[1]
        elif now.marked > before.marked:
            cause = Cause("mark")
        else:
            cause = Cause("reordering" if again else "controller")
        yield before.time_ns, cause


def _lost(route: Iterable[Hop], network: Network, since: int, until: int) -> Iterator[tuple[float, Cause]]:
    for hop in route:
        for name, kind in (("dropped_packets", "queue-loss"), ("lost_packets", "random-loss")):
            if count := network.total(hop, name).grown(since, until):
                yield count, Cause(kind, hop.link)
