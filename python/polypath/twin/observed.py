"""Observations of each direction of each path in a capture: packets sent, packets arrived, and queueing times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polypath.results import Recording

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

NS: Final = 1e9
#: A frame's bytes besides IP, and those of IP and TCP without options.
ETHERNET, IPV4, IPV6, TCP = 14, 20, 40, 20
#: Options with their padding: timestamps (RFC 7323), a mapping and data ACK of 64 bits (RFC 8684 section 3.3).
TIMESTAMPS, MAPPING = 12, 20
#: Bytes of a SYN's frame with what is usual, MP_CAPABLE or MP_JOIN included; an error of 20 is 0.1 ms at 2 Mbps.
SYN: Final = ETHERNET + IPV4 + TCP + 28
#: Clocks of timestamps that hosts have, in ticks a second.
_CLOCKS: Final = (1000, 250, 100, 1_000_000)
#: A handshake that has less than this part of its round trip on a side was captured at that side.
_AT_END: Final = 0.02
#: Bytes of options in a TCP header (RFC 9293 section 3.1).
_MOST_OPTIONS: Final = 40
#: An acknowledgement of one segment may be a delayed one if it comes after so many times the time of a segment.
_LATE: Final = 4
#: A sender's own queue shows if its packets wait longer than timestamps are coarse.
_OWN_QUEUE_S: Final = 0.003


class Place(Enum):
    """Where a direction was captured, seen from its sender."""

    SENDER = "at the sender"
    RECEIVER = "at the receiver"
    BOTH = "at both ends"
    BETWEEN = "between the ends"


@dataclass(frozen=True)
class Way:
    """One direction of a subflow: its segments with payload, in the order in which they were captured.

    Arrays have one value a segment; times are seconds since the capture's first packet.
    """

    connection: int
    subflow: int
    #: "client" or "server", who sends.
    side: str
    source: str
    destination: str
    place: Place
    #: Of the handshake, both ways; None where it was not captured, or where a SYN was sent again.
    handshake_s: float | None
    sent_s: Floats
    begin: Ints
    end: Ints
    #: In the connection's data: the data sequence number, of TCP the sequence number.
    offset: Ints
    #: Of its frames.
    wire: Floats
    #: When it was known that it had arrived: an arrival, or an acknowledgement's; NaN where it was not.
    told_s: Floats
    #: Time in queues, above the least that was seen; NaN where it cannot be told.
    queued_s: Floats
    #: When it came to the queue: as it was captured, or by its timestamp where that was before.
    enters_s: Floats
    #: What passes from there to `told_s` where nothing queues.
    least_s: float
    #: Whether its acknowledgement may have been delayed, and whether the same bytes were sent a further time later.
    delayed: Flags
    again: Flags
    #: Packets that a host handed over in one piece.
    packets: Floats
    #: Transmissions that did not arrive, as far as the place tells.
    lost: Flags
    #: Of these, those that are known by what was sent behind alone, which found room when one packet had left.
    holes: Flags
    #: The longest payload of one packet.
    segment: int
    #: Of the handshake's frames.
    handshake_bytes: float = 2 * SYN
    #: A tick of the clock that tells the time in queues, where it is coarse.
    grain_s: float = 0.0
    #: Whether the time in queues is told of each packet by itself.
    stamped: bool = True

    @property
    def arrivals(self) -> tuple[Floats, Floats, Floats, Flags]:
        """Distinct times at which bytes were reported to have arrived, how many, and their least time in queues.

        The last tells whether a loss or a pause lies before. What came to the queue after the packet before had left
        it did not wait for it.
        """
        known = np.isfinite(self.told_s)
        order = np.argsort(self.told_s[known], kind="stable")
        told = self.told_s[known][order]
        times, first = np.unique(told, return_index=True)
        if not times.size:
            return times, times, times, np.zeros(0, dtype=bool)
        wire = np.add.reduceat(self.wire[known][order], first)
        queued = np.minimum.reduceat(np.nan_to_num(self.queued_s[known][order], nan=np.inf), first)
        left = told[:-1] - self.least_s + self.grain_s
        paused = np.concatenate(([False], self.enters_s[known][order][1:] > left))
        broken = np.logical_or.reduceat(self._after_loss[known][order] | paused, first)
        return times, wire, np.where(np.isinf(queued), np.nan, queued), broken

    @property
    def departures(self) -> Floats:
        """When the last of the segments of each of these times came to the queue."""
        known = np.isfinite(self.told_s)
        order = np.argsort(self.told_s[known], kind="stable")
        _, first = np.unique(self.told_s[known][order], return_index=True)
        if not first.size:
            return np.zeros(0)
        return np.asarray(np.maximum.reduceat(self.enters_s[known][order], first), dtype=np.float64)

    @property
    def _after_loss(self) -> Flags:
        return np.concatenate(([False], self.lost[:-1])) | self.lost


def ways(recording: Recording, *, both_ends: bool) -> Iterator[Way]:
    """The directions with data of each subflow of a capture's Recording, which has its segments."""
    segments = recording.tables["segments"].with_row_index("segment").join(recording.tables["headers"], on="segment")
    sacks = recording.table("sack_blocks").filter(~pl.col("duplicate"))
    repeated = recording.table("sack_blocks").filter(pl.col("duplicate"))
    for row in recording.tables["subflow_ends"].iter_rows(named=True):
        of = (pl.col("connection") == row["connection"]) & (pl.col("subflow") == row["subflow"])
        mine = segments.filter(of)
        for side, other in (("client", "server"), ("server", "client")):
            data = mine.filter((pl.col("side") == side) & (pl.col("payload_bytes") > 0))
            if data.is_empty():
                continue
            answers = mine.filter(pl.col("side") == other)
            told = [table.filter(of & (pl.col("side") == other)) for table in (sacks, repeated)]
            yield _way(row, side, _handshake(mine), data, answers, told, _mss(mine), both_ends=both_ends)


def _handshake(mine: pl.DataFrame) -> tuple[float, float] | None:
    """Seconds from the SYN to the SYN/ACK, and from there to the ACK."""
    syns = mine.filter(pl.col("flags") == "SYN")
    answers = mine.filter(pl.col("flags") == "SYN, ACK")
    if syns.height != 1 or answers.height != 1:
        return None
    done = mine.filter((pl.col("side") == "client") & (pl.col("segment") > answers["segment"][0]))
    if done.is_empty():
        return None
    first, second, third = (table["time_ns"][0] / NS for table in (syns, answers, done))
    return second - first, third - second


def place(handshake: tuple[float, float] | None, side: str, *, both_ends: bool) -> Place:
    """Where a side's direction was captured, by the parts of the handshake's round trip."""
    elsewhere = Place.BOTH if both_ends else Place.BETWEEN
    if handshake is None:
        return elsewhere
    at_server, at_client = (each < _AT_END * sum(handshake) for each in handshake)
    if at_client:
        return Place.SENDER if side == "client" else Place.RECEIVER
    if at_server:
        return Place.SENDER if side == "server" else Place.RECEIVER
    return elsewhere


def _way(
    row: dict[str, Any],
    side: str,
    handshake: tuple[float, float] | None,
    data: pl.DataFrame,
    answers: pl.DataFrame,
    told: Sequence[pl.DataFrame],
    mss: int | None,
    *,
    both_ends: bool,
) -> Way:
    where = place(handshake, side, both_ends=both_ends)
    sent_s = data["time_ns"].to_numpy() / NS
    begin = data["seq"].to_numpy().astype(np.int64)
    payload = data["payload_bytes"].to_numpy().astype(np.int64)
    end = begin + payload
    segment = _longest(data)
    wire = _wire(data, payload, segment, mss, IPV6 if ":" in row["source"] else IPV4)
    before_s, tick_s = _by_timestamps(data, sent_s)
    again, repeats = _sent_again(begin), _repeats(begin)
    enters_s, least_s, delayed = sent_s - np.nan_to_num(before_s), 0.0, np.zeros(begin.size, dtype=bool)
    if where is Place.RECEIVER:
        told_s, queued_s = sent_s.copy(), before_s
        again = delayed
        lost = holes = _holes(begin, end, begin < 0)
    else:
        told_s, exact, delayed = _told(begin, end, segment, answers, told[0])
        queued_s = np.where(exact & ~delayed & ~again & ~repeats, told_s - sent_s, np.nan)
        least_s = float(np.nanmin(queued_s)) if np.isfinite(queued_s).any() else 0.0
        queued_s = queued_s - least_s
        if np.quantile(np.nan_to_num(before_s), 0.9) > _OWN_QUEUE_S:
            queued_s = queued_s + before_s
        else:
            enters_s = sent_s
        holes = _holes(begin, end, repeats)
        lost = _lost(begin, end, again, told[1]) | holes
    return Way(
        connection=row["connection"],
        subflow=row["subflow"],
        side=side,
        source=row["source"],
        destination=row["destination"],
        place=where,
        handshake_s=None if handshake is None else sum(handshake),
        sent_s=sent_s,
        begin=begin,
        end=end,
        offset=data.select(pl.coalesce("dsn", "seq"))["dsn"].to_numpy().astype(np.int64),
        wire=wire,
        told_s=told_s,
        queued_s=queued_s,
        enters_s=enters_s,
        least_s=least_s,
        delayed=delayed,
        again=again,
        holes=holes,
        packets=np.ceil(payload / segment),
        lost=lost,
        segment=segment,
        grain_s=tick_s if where is Place.RECEIVER else 0.0,
    )


def _longest(data: pl.DataFrame) -> int:
    """The payload that most bytes go by: what a host hands to its interface in one piece may be longer."""
    by_size = data.group_by("payload_bytes").agg(pl.len().alias("count"))
    usual = by_size.filter(pl.col("payload_bytes") <= 9000)
    table = by_size if usual.is_empty() else usual
    return int(table.sort(pl.col("payload_bytes") * pl.col("count"), descending=True)["payload_bytes"][0])


def _mss(mine: pl.DataFrame) -> int | None:
    """The lesser of what the ends announce (RFC 9293 section 3.7.1)."""
    told = mine.filter(pl.col("flags").str.starts_with("SYN"))["options"].str.extract(r"MSS=(\d+)").drop_nulls()
    return None if told.is_empty() else int(told.cast(pl.Int64).min())  # type: ignore[arg-type]


def _wire(data: pl.DataFrame, payload: Ints, segment: int, mss: int | None, ip: int) -> Floats:
    packets = np.ceil(payload / segment)
    options: Any = np.where(data["timestamp"].is_not_null().to_numpy(), TIMESTAMPS, 0)
    options = options + np.where(data["data_seq"].is_not_null().to_numpy(), MAPPING, 0)
    if mss is not None and 0 <= mss - segment <= _MOST_OPTIONS:
        options = mss - segment
    return np.asarray(payload + packets * (ETHERNET + ip + TCP + options), dtype=np.float64)


def _by_timestamps(data: pl.DataFrame, seen_s: Floats) -> tuple[Floats, float]:
    """Time on the way above the least, by the sender's timestamps (RFC 7323): as fine as their clock, whose tick is the
    second."""
    stamps = data["timestamp"]
    if stamps.null_count() or data.height < 2:
        return np.full(data.height, np.nan), 0.0
    ticks = stamps.to_numpy().astype(np.int64)
    ticks = np.unwrap(ticks, period=2**32).astype(np.float64)
    if ticks[-1] == ticks[0] or seen_s[-1] == seen_s[0]:
        return np.full(data.height, np.nan), 0.0
    measured = (ticks[-1] - ticks[0]) / (seen_s[-1] - seen_s[0])
    clock = min(_CLOCKS, key=lambda each: abs(np.log(max(measured, 1e-3) / each)))
    late = seen_s - ticks / clock
    return np.asarray(late - late.min(), dtype=np.float64), 1 / clock


def _holes(begin: Ints, end: Ints, repeats: Flags) -> Flags:
    """Marks losses before the capture, such as in the sender's own queue. A segment has such a loss before it if it
    comes behind a hole that is later filled with older data.
    """
    highest = np.maximum.accumulate(end)
    before = np.concatenate((begin[:1], highest[:-1]))
    late = (begin < before) & ~repeats
    first = np.searchsorted(highest, begin[late], side="right")
    found = np.zeros(begin.size, dtype=bool)
    found[first[first < begin.size]] = True
    return found


def _sent_again(begin: Ints) -> Flags:
    """Whether the same bytes are sent a further time later."""
    found = np.ones(begin.size, dtype=bool)
    _, last = np.unique(begin[::-1], return_index=True)
    found[begin.size - 1 - last] = False
    return found


def _repeats(begin: Ints) -> Flags:
    found = np.ones(begin.size, dtype=bool)
    _, first = np.unique(begin, return_index=True)
    found[first] = False
    return found


def _lost(begin: Ints, end: Ints, again: Flags, duplicates: pl.DataFrame) -> Flags:
    """At the sender: what was sent again had been lost, unless the receiver tells that it came twice (RFC 2883)."""
    found = again.copy()
    twice = set(zip(duplicates["begin"].to_list(), duplicates["end"].to_list(), strict=True))
    for low, high in twice:
        inside = np.flatnonzero(found & (begin >= low) & (end <= high))
        if inside.size:
            found[inside[-1]] = False
    return found


def _late(times: Floats, numbers: Ints, segment: int) -> Flags:
    """Which acknowledgements are of one segment and long after the one before, where most are of two."""
    late = np.zeros(times.size, dtype=bool)
    new = np.flatnonzero(np.diff(numbers)) + 1
    if new.size > 1:
        advance, gap = np.diff(numbers)[new - 1], np.diff(times)[new - 1]
        soon = np.quantile(gap / np.ceil(advance / segment), 0.1)
        late[new] = (advance <= segment) & (gap > _LATE * soon) & bool(np.median(advance) > segment)
    return late


def _told(
    begin: Ints, end: Ints, segment: int, answers: pl.DataFrame, sacks: pl.DataFrame
) -> tuple[Floats, Flags, Flags]:
    """When the first acknowledgement of each segment came; whether it ends with this segment; and whether it may have
    been delayed (RFC 1122 section 4.2.3.2)."""
    times = answers["time_ns"].to_numpy() / NS
    numbers = np.maximum.accumulate(answers["ack"].to_numpy().astype(np.int64))
    at = np.searchsorted(numbers, end, side="left")
    inside = at < times.size
    told = np.full(end.size, np.inf)
    told[inside] = times[at[inside]]
    exact = np.zeros(end.size, dtype=bool)
    delayed = np.zeros(end.size, dtype=bool)
    delayed[inside] = _late(times, numbers, segment)[at[inside]]
    exact[inside] = numbers[at[inside]] == end[inside]
    order = np.argsort(begin, kind="stable")
    low = begin[order]
    seen: dict[int, int] = {}
    for time_ns, first, last in zip(
        sacks["time_ns"].to_list(), sacks["begin"].to_list(), sacks["end"].to_list(), strict=True
    ):
        since = seen.get(first, first)
        if last <= since:
            continue
        seen[first] = last
        inner = order[np.searchsorted(low, since) : np.searchsorted(low, last)]
        new = inner[(end[inner] <= last) & (told[inner] > time_ns / NS)]
        told[new] = time_ns / NS
        exact[new] = end[new] == last
        delayed[new] = False
    return np.where(np.isinf(told), np.nan, told), exact, delayed
