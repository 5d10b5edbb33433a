"""What one side of a connection sent, piece by piece, and when each piece arrived: from captures at both ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from polypath.results import Recording
from polypath.twin.estimate import estimate
from polypath.twin.observed import Floats, Ints, Way
from polypath.twin.pattern import Turn

#: A subflow's ends, which captures at different places share.
Ends = tuple[str, int, str, int]


def ends_of(recording: Recording) -> Mapping[tuple[int, int], Ends]:
    """The ends of each subflow, by connection and number."""
    return {
        (row["connection"], row["subflow"]): (
            row["source"],
            row["source_port"],
            row["destination"],
            row["destination_port"],
        )
        for row in recording.table("subflow_ends").iter_rows(named=True)
    }


def later(alone: Recording, both: Recording) -> int:
    """By how many nanoseconds the time 0 of one file is later than that of both files."""
    return int(alone.plan["capture"]["start_unix_ns"]) - int(both.plan["capture"]["start_unix_ns"])


@dataclass(frozen=True)
class Pieces:
    """Transmissions of one path: an entry for each piece of a stream in each packet."""

    stream: Ints
    offset: Ints
    length: Ints
    sent_s: Floats
    #: NaN where it never arrived.
    arrived_s: Floats
    #: Its part of the packet's frame.
    wire: Floats


@dataclass(frozen=True)
class Sent:
    """What one side sent: an entry for each transmission of a piece, in the order of their departures."""

    stream: Ints
    offset: Ints
    length: Ints
    sent_s: Floats
    #: Of its bytes on its path; NaN where they never arrived there.
    arrived_s: Floats
    #: When its first byte was sent for the first time.
    first_s: Floats
    way: Ints
    wire: Floats
    names: tuple[str, ...]
    #: Of each way.
    least_s: Floats
    rate_bps: Floats
    #: Whether each arrival is that of this transmission, and of no other one of the same bytes.
    exact: bool

    @classmethod
    def of(cls, found: Sequence[Way], arrived: Sequence[Floats], pieces: Sequence[Pieces], *, exact: bool) -> Sent:
        """`arrived` has the times at which the packets with data of each way arrived."""
        sent_s = np.concatenate([each.sent_s for each in pieces])
        order = np.argsort(sent_s, kind="stable")
        stream, offset, length = (
            np.concatenate([getattr(each, name) for each in pieces])[order] for name in ("stream", "offset", "length")
        )
        least = [_least(way, times) for way, times in zip(found, arrived, strict=True)]
        rates = [
            estimate([replace(way, told_s=times, queued_s=times - way.sent_s - spent)])[1].rate_bps
            for way, times, spent in zip(found, arrived, least, strict=True)
        ]
        first = _first_of_bytes if exact else _first_of_pieces
        return cls(
            stream=stream,
            offset=offset,
            length=length,
            sent_s=sent_s[order],
            arrived_s=np.concatenate([each.arrived_s for each in pieces])[order],
            first_s=first(stream, offset, length, sent_s[order]),
            way=np.concatenate([np.full(each.offset.size, number) for number, each in enumerate(pieces)])[order],
            wire=np.concatenate([each.wire for each in pieces])[order],
            names=tuple(f"{way.source} - {way.destination}" for way in found),
            least_s=np.array(least),
            rate_bps=np.array([np.inf if rate is None else rate.value for rate in rates]),
            exact=exact,
        )

    def inside(self, turn: Turn) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which transmissions are of a turn, and arrived."""
        during = (self.sent_s >= turn.start_s) & (self.sent_s <= turn.end_s)
        return np.asarray(during & (self.stream == turn.stream) & np.isfinite(self.arrived_s), dtype=np.bool_)

    def last(self, turn: Turn) -> int | None:
        """The transmission whose arrival completes a turn."""
        inside = np.flatnonzero(self.inside(turn))
        if not inside.size:
            return None
        return self._completes(inside) if self.exact else self._last_of_firsts(inside)

    def stalled_s(self, turn: Turn, until_s: float, trip_s: float) -> float:
        """How long nothing of a turn was sent, beyond a round trip, while lost bytes waited for a timeout."""
        (mine,) = np.nonzero((self.stream == turn.stream) & (self.sent_s >= turn.start_s) & (self.sent_s <= until_s))
        times = self.sent_s[mine]
        total = 0.0
        for place in np.flatnonzero(np.diff(times) > trip_s):
            begin_s, end_s = float(times[place]), float(times[place + 1])
            before = mine[: place + 1]
            missing = before[~(self.arrived_s[before] < end_s)]
            if any(self._was_lost(each, end_s) for each in missing):
                total += end_s - begin_s - trip_s
        return total

    def _was_lost(self, each: int, until_s: float) -> bool:
        """Whether a transmission was lost, and nothing was sent in its place before a time."""
        covers = (self.offset <= self.offset[each]) & (self.offset[each] < self.offset + self.length)
        later = self.sent_s[covers & (self.stream == self.stream[each]) & (self.sent_s > self.sent_s[each])]
        if not later.size:
            return bool(np.isnan(self.arrived_s[each]))
        again_s = float(later.min())
        # On one path of TCP both have one number: what came so late is the second one.
        arrived = self.arrived_s[each] < again_s + self.least_s[self.way[each]]
        return again_s >= until_s and not arrived

    def _last_of_firsts(self, inside: Ints) -> int | None:
        # Of each piece the copy that came first counts, and of those of one path the one that was sent last before.
        order = inside[np.lexsort((-self.sent_s[inside], self.arrived_s[inside], self.offset[inside]))]
        _, first = np.unique(self.offset[order], return_index=True)
        firsts = order[first]
        before = firsts[self.sent_s[firsts] <= self.arrived_s[firsts]]
        return int(before[np.argmax(self.arrived_s[before])]) if before.size else None

    def _completes(self, inside: Ints) -> int:
        """The last, in the order of arrival, that brought bytes that were not there yet."""
        base = int(self.offset[inside].min())
        there = np.zeros(int((self.offset[inside] + self.length[inside]).max()) - base, dtype=np.bool_)
        last = int(inside[0])
        for each in inside[np.argsort(self.arrived_s[inside], kind="stable")]:
            begin = int(self.offset[each]) - base
            part = there[begin : begin + int(self.length[each])]
            if not part.all():
                part[:] = True
                last = int(each)
        return last


def _least(way: Way, arrived_s: Floats) -> float:
    taken = (arrived_s - way.sent_s)[np.isfinite(arrived_s) & ~way.again]
    taken = taken[taken >= 0]
    return float(taken.min()) if taken.size else 0.0


def _first_of_pieces(stream: Ints, offset: Ints, length: Ints, sent_s: Floats) -> Floats:
    """Pieces are sent again as they were."""
    del stream, length
    _, first, which = np.unique(offset, return_index=True, return_inverse=True)
    return np.asarray(sent_s[first][which], dtype=np.float64)


def _first_of_bytes(stream: Ints, offset: Ints, length: Ints, sent_s: Floats) -> Floats:
    """Pieces may be cut before they are sent again. The bytes of a stream are sent for the first time in order."""
    found = np.empty(sent_s.size)
    for each in np.unique(stream):
        (mine,) = np.nonzero(stream == each)
        end = np.maximum.accumulate(offset[mine] + length[mine])
        before = np.concatenate(([0], end[:-1]))
        new = end > before
        begins, times = before[new], sent_s[mine][new]
        found[mine] = times[np.searchsorted(begins, offset[mine], side="right") - 1]
    return found
