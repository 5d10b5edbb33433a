"""The time of each request, from captures at both ends: parts that add up to its delay.

The answer is complete with the arrival of one segment, the last. What came before it on its way, and how it came
itself, is the request's time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from polypath import capture
from polypath.results import Recording
from polypath.twin import streams
from polypath.twin.network import SEALED
from polypath.twin.observed import NS, Way, ways
from polypath.twin.pattern import Turn, turns
from polypath.twin.sent import Ends, Pieces, Sent, ends_of, later


@dataclass(frozen=True)
class Parts:
    """Seconds of a request, from its first byte's departure to its answer's last byte's arrival."""

    #: The least time on the way, there and back.
    propagation: float
    #: What the path of the last bytes needs at its rate for the answer's bytes that went over it.
    transmission: float
    #: Behind packets of others, or of earlier answers.
    queue: float
    #: From the first transmission of what came last to the one that arrived; and while nothing left, before a timeout.
    loss: float
    #: The rest of the time from the answer's first byte to its last: the window, the pacer or the scheduler held it.
    window: float
    #: From the request's arrival to the answer's first byte.
    application: float

    @property
    def total(self) -> float:
        """The request's delay."""
        return float(sum(getattr(self, field.name) for field in fields(self)))


@dataclass(frozen=True)
class Request:
    """One request: when it began, its parts, and the path that its last bytes took."""

    start_s: float
    parts: Parts
    path: str
    #: How long everything that went over other paths had been there when the last byte came.
    other_paths_s: float


@dataclass(frozen=True)
class Requests:
    """The requests of a connection."""

    name: str
    requests: tuple[Request, ...]


def requests(client: Path, server: Path, port: int | None = None) -> list[Requests]:
    """The requests of each connection that asks and is answered at this port of the server, from a capture at each end.

    Raises CaptureError.
    """
    both = capture.trace([client, server], segments=True).recording
    files = {"server": client, "client": server}
    alone = {side: capture.trace([file], segments=True).recording for side, file in files.items()}
    every = list(ways(both, both_ends=True))
    found = []
    ports = dict(
        both.table("subflow_ends").filter(pl.col("subflow") == 0).select("connection", "destination_port").iter_rows()
    )
    for row in both.table("connection_ends").sort("connection").iter_rows(named=True):
        number = row["connection"]
        if port not in (None, ports.get(number)):
            continue
        if row["transport"] in SEALED:
            sides = {side: streams.side(both, alone[side], number, side) for side in files}
            pairs = _pairs_of_streams(streams.turns(both, number))
        else:
            mine = [way for way in every if way.connection == number]
            sides = {side: _of_tcp(mine, side, _arrivals(alone[side], side, both), both) for side in files}
            pairs = _pairs(turns(both, number))
        there, back = sides["client"], sides["server"]
        if pairs and there is not None and back is not None:
            answers = [answered for _, answered in pairs]
            parts = [_request(asked, answered, there, back, answers) for asked, answered in pairs]
            found.append(Requests(row["name"], tuple(each for each in parts if each is not None)))
    return [each for each in found if each.requests]


def _pairs(found: Sequence[Turn]) -> list[tuple[Turn, Turn]]:
    """Requests with their answers."""
    return [
        (asked, answered) for asked, answered in pairwise(found) if asked.side == "client" and answered.side == "server"
    ]


def _pairs_of_streams(found: Mapping[int, Sequence[Turn]]) -> list[tuple[Turn, Turn]]:
    """The same of QUIC, in which requests may be under way on several streams at once."""
    pairs = [pair for turns_of_one in found.values() for pair in _pairs(turns_of_one)]
    return sorted(pairs, key=lambda pair: (pair[0].start_s, pair[0].stream))


def _arrivals(alone: Recording, side: str, both: Recording) -> Mapping[Ends, Mapping[int, float]]:
    """When each sequence number that a side sent was first captured at the other end, in the times of both."""
    ends = ends_of(alone)
    later_ns = later(alone, both)
    data = alone.tables["segments"].filter((pl.col("side") == side) & (pl.col("payload_bytes") > 0))
    found: dict[Ends, dict[int, float]] = {}
    first = data.group_by("connection", "subflow", "seq").agg(pl.col("time_ns").min())
    for connection, subflow, seq, time_ns in first.iter_rows():
        found.setdefault(ends[connection, subflow], {})[seq] = (time_ns + later_ns) / NS
    return found


def _of_tcp(
    mine: Sequence[Way], side: str, seen: Mapping[Ends, Mapping[int, float]], recording: Recording
) -> Sent | None:
    found = [way for way in mine if way.side == side]
    if not found:
        return None
    ends = ends_of(recording)
    arrived = [
        np.array([seen.get(ends[way.connection, way.subflow], {}).get(int(each), np.nan) for each in way.begin])
        for way in found
    ]
    pieces = [
        Pieces(np.zeros(way.begin.size, dtype=np.int64), way.offset, way.end - way.begin, way.sent_s, times, way.wire)
        for way, times in zip(found, arrived, strict=True)
    ]
    # Copies of one piece on one path share their sequence number, so that either may have arrived.
    return Sent.of(found, arrived, pieces, exact=False)


def _request(asked: Turn, answered: Turn, there: Sent, back: Sent, answers: Sequence[Turn]) -> Request | None:
    request, answer = there.last(asked), back.last(answered)
    if request is None or answer is None:
        return None
    way = back.way[answer]
    first = float(back.first_s[answer])
    on_way = float(back.arrived_s[answer] - back.sent_s[answer])
    behind_own_s = min(on_way - back.least_s[way], _bytes(back, answer, answered, ahead=True) * 8 / back.rate_bps[way])
    trip_s = float(there.least_s.max() + back.least_s.max())
    stalled_s = back.stalled_s(answered, first, trip_s)
    sending_s = first - answered.start_s - stalled_s + behind_own_s
    own_s = min(sending_s, _bytes(back, answer, answered, ahead=False) * 8 / back.rate_bps[way])
    taken = float(there.arrived_s[request] - there.sent_s[request])
    asked_first = float(there.first_s[request])
    arrived_s = float(there.arrived_s[request])
    earlier_s = _overlap_s(answered, answers, arrived_s)
    parts = Parts(
        propagation=float(there.least_s[there.way[request]] + back.least_s[way]),
        transmission=float(own_s),
        queue=float(taken - there.least_s[there.way[request]] + on_way - back.least_s[way] - behind_own_s) + earlier_s,
        loss=float(there.sent_s[request] - asked_first + back.sent_s[answer] - first) + stalled_s,
        window=float(asked_first - asked.start_s + sending_s - own_s),
        application=float(answered.start_s) - arrived_s - earlier_s,
    )
    return Request(asked.start_s, parts, back.names[way], _others_s(back, answer, answered))


def _overlap_s(answered: Turn, answers: Sequence[Turn], since_s: float) -> float:
    """How long answers on other streams were sent before the first byte of this one, since its request had arrived."""
    others = sorted((each.start_s, each.end_s) for each in answers if each.stream != answered.stream)
    total, at = 0.0, since_s
    for start_s, end_s in others:
        begin, end = max(start_s, at), min(end_s, answered.start_s)
        if begin < end:
            total, at = total + end - begin, end
    return total


def _bytes(back: Sent, answer: int, answered: Turn, *, ahead: bool) -> float:
    """Bytes of the same answer that were sent before its last ones on the same path.

    With `ahead`, only those that were still in flight when the last ones left.
    """
    own = (back.way == back.way[answer]) & (back.sent_s >= answered.start_s) & (np.arange(back.way.size) < answer)
    own &= back.stream == answered.stream
    if ahead:
        own &= back.arrived_s > back.sent_s[answer]
    return float(back.wire[own].sum())


def _others_s(back: Sent, answer: int, answered: Turn) -> float:
    others = back.arrived_s[back.inside(answered) & (back.way != back.way[answer])]
    done = others[others <= back.arrived_s[answer]]
    return float(back.arrived_s[answer] - done.max()) if done.size else 0.0


def means(found: Sequence[Request]) -> Iterator[tuple[str, float]]:
    """The mean of each part."""
    for field in fields(Parts):
        yield field.name, float(np.mean([getattr(each.parts, field.name) for each in found]))


NAMES: Final[Mapping[str, str]] = {
    "propagation": "propagation",
    "transmission": "transmission of the answer",
    "queue": "queues",
    "loss": "loss and timeout",
    "window": "window, pacing, scheduler",
    "application": "application",
}
