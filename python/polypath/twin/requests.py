"""The time of each request, from captures at both ends: parts that add up to its delay.

The answer is complete with the arrival of one segment, the last. What came before it on its way, and how it came
itself, is the request's time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from polypath import capture
from polypath.results import Recording
from polypath.twin.estimate import estimate
from polypath.twin.observed import NS, Floats, Ints, Way, ways
from polypath.twin.pattern import Turn, turns


@dataclass(frozen=True)
class Parts:
    """Seconds of a request, from its first byte's departure to its answer's last byte's arrival."""

    #: The least time on the way, there and back.
    propagation: float
    #: What the path of the last bytes needs at its rate for the answer's bytes that went over it.
    transmission: float
    #: Behind packets of others, or of earlier answers.
    queue: float
    #: From the first transmission of what came last to the one that arrived.
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
    seen = {"server": _arrivals(client, "server", both), "client": _arrivals(server, "client", both)}
    every = list(ways(both, both_ends=True))
    found = []
    ports = dict(
        both.table("subflow_ends").filter(pl.col("subflow") == 0).select("connection", "destination_port").iter_rows()
    )
    for row in both.table("connection_ends").sort("connection").iter_rows(named=True):
        if port not in (None, ports.get(row["connection"])):
            continue
        mine = [way for way in every if way.connection == row["connection"]]
        pairs = _pairs(turns(both, row["connection"]))
        if pairs and {way.side for way in mine} == {"client", "server"}:
            sides = {side: _Side.of([way for way in mine if way.side == side], seen[side], both) for side in seen}
            parts = [_request(asked, answered, sides) for asked, answered in pairs]
            found.append(Requests(row["name"], tuple(each for each in parts if each is not None)))
    return [each for each in found if each.requests]


def _pairs(found: Sequence[Turn]) -> list[tuple[Turn, Turn]]:
    """Requests with their answers."""
    return [
        (asked, answered) for asked, answered in pairwise(found) if asked.side == "client" and answered.side == "server"
    ]


#: A subflow's ends, which captures at different places share.
_Ends = tuple[str, int, str, int]


def _arrivals(file: Path, side: str, both: Recording) -> Mapping[_Ends, Mapping[int, float]]:
    """When each sequence number that a side sent was first captured at the other end, in the times of both."""
    recording = capture.trace([file], segments=True).recording
    ends = {
        (row["connection"], row["subflow"]): _ends(row) for row in recording.table("subflow_ends").iter_rows(named=True)
    }
    later_ns = recording.plan["capture"]["start_unix_ns"] - both.plan["capture"]["start_unix_ns"]
    data = recording.tables["segments"].filter((pl.col("side") == side) & (pl.col("payload_bytes") > 0))
    found: dict[_Ends, dict[int, float]] = {}
    first = data.group_by("connection", "subflow", "seq").agg(pl.col("time_ns").min())
    for connection, subflow, seq, time_ns in first.iter_rows():
        found.setdefault(ends[connection, subflow], {})[seq] = (time_ns + later_ns) / NS
    return found


def _ends(row: Mapping[str, object]) -> _Ends:
    return str(row["source"]), int(str(row["source_port"])), str(row["destination"]), int(str(row["destination_port"]))


@dataclass(frozen=True)
class _Side:
    """What one side sent: an entry for each transmission, in the order of their departures."""

    offset: Ints
    length: Ints
    sent_s: Floats
    #: Of its bytes on its path; NaN where they never arrived there.
    arrived_s: Floats
    way: Ints
    wire: Floats
    names: tuple[str, ...]
    #: Of each way.
    least_s: Floats
    rate_bps: Floats

    @classmethod
    def of(cls, found: Sequence[Way], seen: Mapping[_Ends, Mapping[int, float]], recording: Recording) -> _Side:
        ends = {
            row["subflow"]: _ends(row)
            for row in recording.table("subflow_ends")
            .filter(pl.col("connection") == found[0].connection)
            .iter_rows(named=True)
        }
        arrived = [
            np.array([seen.get(ends[way.subflow], {}).get(int(each), np.nan) for each in way.begin]) for way in found
        ]
        order = np.argsort(np.concatenate([way.sent_s for way in found]), kind="stable")
        least = [_least(way, times) for way, times in zip(found, arrived, strict=True)]
        rates = [
            estimate([replace(way, told_s=times, queued_s=times - way.sent_s - spent)])[1].rate_bps
            for way, times, spent in zip(found, arrived, least, strict=True)
        ]
        return cls(
            offset=np.concatenate([way.offset for way in found])[order],
            length=np.concatenate([way.end - way.begin for way in found])[order],
            sent_s=np.concatenate([way.sent_s for way in found])[order],
            arrived_s=np.concatenate(arrived)[order],
            way=np.concatenate([np.full(way.begin.size, number) for number, way in enumerate(found)])[order],
            wire=np.concatenate([way.wire for way in found])[order],
            names=tuple(f"{way.source} - {way.destination}" for way in found),
            least_s=np.array(least),
            rate_bps=np.array([np.inf if rate is None else rate.value for rate in rates]),
        )

    def last(self, turn: Turn) -> int | None:
        """The transmission whose arrival completes a turn."""
        inside = np.flatnonzero(
            (self.sent_s >= turn.start_s) & (self.sent_s <= turn.end_s) & np.isfinite(self.arrived_s)
        )
        if not inside.size:
            return None
        # Of each piece the copy that came first counts, and of those of one path the one that was sent last before.
        order = inside[np.lexsort((-self.sent_s[inside], self.arrived_s[inside], self.offset[inside]))]
        _, first = np.unique(self.offset[order], return_index=True)
        firsts = order[first]
        before = firsts[self.sent_s[firsts] <= self.arrived_s[firsts]]
        return int(before[np.argmax(self.arrived_s[before])]) if before.size else None


def _least(way: Way, arrived_s: Floats) -> float:
    taken = (arrived_s - way.sent_s)[np.isfinite(arrived_s) & ~way.again]
    taken = taken[taken >= 0]
    return float(taken.min()) if taken.size else 0.0


def _request(asked: Turn, answered: Turn, sides: Mapping[str, _Side]) -> Request | None:
    there, back = sides["client"], sides["server"]
    request, answer = there.last(asked), back.last(answered)
    if request is None or answer is None:
        return None
    way = back.way[answer]
    first = float(back.sent_s[back.offset == back.offset[answer]].min())
    on_way = float(back.arrived_s[answer] - back.sent_s[answer])
    behind_own_s = min(on_way - back.least_s[way], _bytes(back, answer, answered, ahead=True) * 8 / back.rate_bps[way])
    sending_s = first - answered.start_s + behind_own_s
    own_s = min(sending_s, _bytes(back, answer, answered, ahead=False) * 8 / back.rate_bps[way])
    taken = float(there.arrived_s[request] - there.sent_s[request])
    asked_first = float(there.sent_s[there.offset == there.offset[request]].min())
    parts = Parts(
        propagation=float(there.least_s[there.way[request]] + back.least_s[way]),
        transmission=float(own_s),
        queue=float(taken - there.least_s[there.way[request]] + on_way - back.least_s[way] - behind_own_s),
        loss=float(there.sent_s[request] - asked_first + back.sent_s[answer] - first),
        window=float(asked_first - asked.start_s + sending_s - own_s),
        application=float(answered.start_s - there.arrived_s[request]),
    )
    return Request(asked.start_s, parts, back.names[way], _others_s(back, answer, answered))


def _bytes(back: _Side, answer: int, answered: Turn, *, ahead: bool) -> float:
    """Bytes of the same answer that were sent before its last ones on the same path.

    With `ahead`, only those that were still in flight when the last ones left.
    """
    own = (back.way == back.way[answer]) & (back.sent_s >= answered.start_s) & (np.arange(back.way.size) < answer)
    if ahead:
        own &= back.arrived_s > back.sent_s[answer]
    return float(back.wire[own].sum())


def _others_s(back: _Side, answer: int, answered: Turn) -> float:
    inside = (back.sent_s >= answered.start_s) & (back.sent_s <= answered.end_s) & np.isfinite(back.arrived_s)
    others = back.arrived_s[inside & (back.way != back.way[answer])]
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
