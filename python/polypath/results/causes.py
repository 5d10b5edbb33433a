"""Why a connection was not faster: the causes of lost time, in sentences, costliest first.

Some are exact: handshakes, and the time that data waited at the receiver, by cause (docs/recording.md). The others come
from samples, and are no finer than their interval:

- the time without delivery beyond a round trip, while data was there to be sent;
- the time with a full receive window while a congestion window had room.

Causes may overlap, so their times do not add up.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Final

import polars as pl

from polypath.results import metrics
from polypath.results.changes import changes
from polypath.results.metrics import SECOND, Blocking, Connection, Side, Subflow
from polypath.results.phrases import capitalised, counted, seconds
from polypath.results.recording import Recording

#: A receive window is full when this part of it is outstanding: what is left may be less than a segment.
_FULL = 0.9
#: A congestion window has room when less than this part of it is in flight.
_ROOM = 0.9
#: Causes that cost less than this part of the connection's time are left out.
_LEAST = 0.001
#: How long after a loss the wait for its repair is looked for.
_AFTER_LOSS_NS = SECOND
#: A path is slower than another if its RTT is this many times as long.
_SLOWER = 1.2
#: How long an acknowledgement may be delayed: Linux's 40 ms, more than the 25 ms of QUIC (RFC 9000 section 18.2).
_ACK_DELAY_NS = 40_000_000
_SIDES: Final[tuple[Side, ...]] = ("client", "server")
_LOSSES = ("loss", "timeout", "tail-loss-probe")
_REINJECTIONS = ("reinjection",)


@dataclass(frozen=True)
class Cause:
    """Something that cost time."""

    #: waiting, stalled, window, handshake or joining.
    kind: str
    time_ns: int
    sentence: str
    #: A moment at which it can be seen, if there is one.
    at_ns: int | None


def of_connection(recording: Recording, of: Connection) -> list[Cause]:
    """The causes of a connection's lost time, costliest first; none for an application without a connection."""
    if of.id is None:
        return []
    found = [
        *_waiting(recording, of),
        *_stalled(recording, of),
        *_window(recording, of),
        *_handshakes(recording, of),
    ]
    least = _LEAST * (of.until_ns - of.start_ns)
    return sorted((each for each in found if each.time_ns > least), key=lambda each: -each.time_ns)


def _waiting(recording: Recording, of: Connection) -> Iterator[Cause]:
    """The accounts of head-of-line blocking."""
    lanes = {each.id: each for each in metrics.subflows(recording, of)}
    found = metrics.blocking(recording, of) or []
    never = any(each.level == "connection" and each.cause == "missing" for each in found)
    for each in found:
        if each.level == "subflow" and each.cause == "missing" and len(lanes) > 1 and not never:
            continue  # copies of the bytes behind the hole came on another subflow, which has its own account
        sentence = f"{_because(recording, of, lanes, each)}; at most {_amount(each.max_bytes)} waited at once"
        yield Cause("waiting", each.time_ns, f"{sentence}.", _moment(recording, of, each))


def _because(recording: Recording, of: Connection, lanes: dict[int, Subflow], each: Blocking) -> str:
    lane = None if each.subflow is None else lanes.get(each.subflow)
    where = f"{of.lane} {each.subflow}" if lane is None else lane.label
    if each.level == "subflow":
        return {
            "late": f"On {where} data waited for bytes that were reordered on that {of.lane}",
            "retransmitted": f"On {where} data waited behind bytes lost there until they had been retransmitted",
            "reinjected": f"On {where} data waited behind bytes that came as a copy on another {of.lane}",
        }.get(each.cause, f"On {where} data waited behind bytes that never came")
    return {
        "late": f"Data waited for bytes still on their way on {where}{_slower(recording, of, lane, lanes)}",
        "retransmitted": f"Data waited for bytes lost on {where} until they had been retransmitted there",
        "reinjected": f"Data waited for bytes that came as a copy on {where}, because another {of.lane} held them up",
    }.get(each.cause, "Data waited for bytes that never came")


def _slower(recording: Recording, of: Connection, lane: Subflow | None, lanes: dict[int, Subflow]) -> str:
    if lane is None:
        return ""
    rtts = {
        each: fmean(samples) / 1e3
        for each, subflow in lanes.items()
        if (samples := metrics.srtt_us(recording, of, subflow))
    }
    own = rtts.pop(lane.id, None)
    if own is None or not rtts:
        return ""
    other = min(rtts, key=lambda each: (rtts[each], each))
    if own < _SLOWER * rtts[other]:
        return ""
    return f", whose RTT was {own:.0f} ms on average against {rtts[other]:.0f} ms of {lanes[other].label}"


def _amount(count: int) -> str:
    for size, unit in ((1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"


def _moment(recording: Recording, of: Connection, each: Blocking) -> int | None:
    """When most waited, of the samples: after what the cause follows; of bytes that were late, apart from any loss."""
    if each.level == "subflow":
        samples = recording.groups("subflows", ("connection", "subflow", "side"), ("time_ns",))
        key: tuple[object, ...] = (of.id, each.subflow, of.receiver)
        waiting = samples.column("out_of_order_bytes", *key)
    else:
        samples = recording.groups("connections", ("connection", "side"), ("time_ns",))
        key = (of.id, of.receiver)
        waiting = samples.column("reassembly_bytes", *key)
    pairs = [(time, size) for time, size in zip(samples.column("time_ns", *key), waiting, strict=True) if size]
    if each.cause == "late":
        losses = _times(recording, of, (*_LOSSES, *_REINJECTIONS))
    elif each.cause == "reinjected":
        losses = _times(recording, of, _REINJECTIONS)
    else:
        losses = _times(recording, of, _LOSSES, each.subflow)
    wanted = each.cause != "late"
    chosen = [pair for pair in pairs if _follows(pair[0], losses) is wanted] or pairs
    if chosen:
        return int(max(chosen, key=lambda pair: (pair[1], -pair[0]))[0])
    return losses[0] if losses and each.cause != "late" else None


def _follows(time: int, losses: Sequence[int]) -> bool:
    """Whether the last loss up to then is near; `losses` ascend."""
    before = bisect_right(losses, time)
    return before > 0 and time <= losses[before - 1] + _AFTER_LOSS_NS


def _times(recording: Recording, of: Connection, kinds: Sequence[str], subflow: int | None = None) -> list[int]:
    """When events of these kinds happened, on a subflow or on any; ascending."""
    events = recording.table("events").filter(pl.col("connection") == of.id, pl.col("kind").is_in(kinds))
    own = events if subflow is None else events.filter(pl.col("subflow") == subflow)
    return own["time_ns"].sort().to_list()


def _stalled(recording: Recording, of: Connection) -> Iterator[Cause]:
    """The stretches between samples without delivery to either end, although one had data to send.

    Data in flight counts as data to send. A stretch counts only if it exceeds the sum of a round trip, an ACK's delay
    and a sampling interval. Nothing can have arrived in that time.
    """
    samples = metrics.connection_samples(recording)
    waiting, delivered = set(), []
    for side in _SIDES:
        delivered.append(dict(samples.rows(("time_ns", "delivered_bytes"), of.id, side)))
        waiting |= {time for time, size in samples.rows(("time_ns", "send_queue_bytes"), of.id, side) if size}
    still = [
        (before, after)
        for before, after in pairwise(samples.column("time_ns", of.id, of.receiver))
        if all(totals.get(before) == totals.get(after) for totals in delivered)
        and before in waiting
        and after in waiting
        and (of.established_ns or 0) <= before < of.until_ns
    ]
    interval = max((after - before for before, after in still), default=0)
    round_trips, stretches = _round_trips(recording, of), []
    for before, after in _joined(still):
        round_trip = round_trips(before)
        if round_trip is None or after - before > round_trip + _ACK_DELAY_NS + interval:
            stretches.append((before, after, round_trip or 0))
    if not stretches:
        return
    since, until, round_trip = max(stretches, key=lambda each: (each[1] - each[0], -each[0]))
    longer = f", for longer than a round trip of {round_trip / 1e6:.3g} ms" if round_trip else ""
    number = "" if len(stretches) == 1 else f"in {len(stretches)} stretches, the longest of "
    place = f"{number}{seconds(until - since)} from {seconds(since)} on{_meanwhile(recording, of, since, until)}"
    yield Cause(
        "stalled",
        sum(after - before - explained for before, after, explained in stretches),
        f"Nothing was delivered though data was there to be sent{longer}: {place}.",
        since,
    )


def _round_trips(recording: Recording, of: Connection) -> Callable[[int], int | None]:
    """The longest smoothed RTT that an end has of a subflow, in ns, by the time; None before the first measurement."""
    measured = [
        (metrics.lasts_until_ns(of, lane), *metrics.sampled(recording, of, lane, "srtt_us", side))
        for lane in metrics.subflows(recording, of)
        for side in _SIDES
    ]

    def longest(at: int) -> int | None:
        before = [(values, bisect_right(times, at)) for until, times, values in measured if at <= until]
        return max((values[place - 1] for values, place in before if place), default=0) * 1_000 or None

    return longest


def _joined(intervals: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for before, after in intervals:
        if found and found[-1][1] == before:
            found[-1] = (found[-1][0], after)
        else:
            found.append((before, after))
    return found


def _meanwhile(recording: Recording, of: Connection, since: int, until: int) -> str:
    """What happened on the way into a stretch and in it, in words."""
    begin = since - SECOND
    parts = [f"{each.text} at {seconds(each.time_ns)}" for each in changes(recording) if begin <= each.time_ns <= until]
    events = recording.table("events").filter(
        pl.col("time_ns").is_between(begin, until) & (pl.col("connection") == of.id)
    )
    timeouts = events.filter(pl.col("kind") == "timeout").height
    if timeouts:
        parts.append(counted(timeouts, "timeout"))
    return f" ({', '.join(parts)})" if parts else ""


def _window(recording: Recording, of: Connection) -> Iterator[Cause]:
    """The samples at which the receive window held data back that a congestion window had room for."""
    own = recording.table("subflows").filter(pl.col("connection") == of.id)
    if own.is_empty():
        return
    sent = (
        own.filter(side=of.sender)
        .group_by("time_ns")
        .agg(
            (pl.col("sent_bytes").cast(pl.Int64) - pl.col("acked_bytes").cast(pl.Int64)).sum().alias("outstanding"),
            (pl.col("in_flight_packets") < _ROOM * pl.col("cwnd_packets")).any().alias("room"),
        )
    )
    offered = own.filter(side=of.receiver).group_by("time_ns").agg(pl.col("receive_window_bytes").max())
    queued = (
        recording.table("connections")
        .filter(pl.col("connection") == of.id, pl.col("side") == of.sender)
        .select("time_ns", "send_queue_bytes")
    )
    both = sent.join(offered, on="time_ns").join(queued, on="time_ns", how="left")
    both = both.filter(pl.col("time_ns") < of.until_ns).sort("time_ns")
    # what a subflow lacks an acknowledgement of may have come, and been acknowledged, by another
    outstanding = pl.min_horizontal("outstanding", pl.col("send_queue_bytes").cast(pl.Int64))
    full = pl.col("room") & (outstanding >= _FULL * pl.col("receive_window_bytes")) & (outstanding > 0)
    marked = both.with_columns(full.alias("full"), (pl.col("time_ns").shift(-1) - pl.col("time_ns")).alias("length"))
    held = marked.filter("full").drop_nulls("length")
    if held.is_empty():
        return
    window = int(held["receive_window_bytes"].median() or 0)  # type: ignore[arg-type]
    yield Cause(
        "window",
        int(held["length"].sum()),
        f"The receive window was full (median {_amount(window)}) while a congestion window had room.",
        int(held["time_ns"][0]),
    )


def _handshakes(recording: Recording, of: Connection) -> Iterator[Cause]:
    if of.established_ns is not None:
        passed = of.established_ns - of.start_ns
        yield Cause("handshake", passed, "The handshake came before the first data.", of.start_ns)
    ends = recording.table("connection_ends").filter(pl.col("connection") == of.id)
    first_byte = next(iter(ends["first_byte_ns"].drop_nulls()), of.until_ns)
    begun = max(of.start_ns, of.established_ns or 0, first_byte)
    lanes = metrics.subflows(recording, of)
    for lane in lanes:
        if lane.established_ns is None:
            whole = of.until_ns - begun
            yield Cause("joining", whole, f"{capitalised(lane.label)} was never established.", begun)
        elif lane.id and not lane.backup and lane.established_ns > begun:
            since, after = begun, ""
            if (before := _predecessor(lane, lanes)) is not None:
                since = before.closed_ns or begun
                after = f", after {before.label} had closed at {seconds(since)}"
            said = f"{capitalised(lane.label)} was there only from {seconds(lane.established_ns)} on{after}."
            yield Cause("joining", lane.established_ns - since, said, since)


def _predecessor(lane: Subflow, lanes: Sequence[Subflow]) -> Subflow | None:
    """The last one of its interface to close before it was established, if none remained."""
    at = lane.established_ns or 0
    there = [it for it in lanes if it.interface == lane.interface and it.id != lane.id]
    before = [it for it in there if it.established_ns is not None and it.established_ns < at]
    if any(it.closed_ns is None or it.closed_ns > at for it in before):
        return None
    return max(before, key=lambda it: it.closed_ns or 0, default=None)
