"""Requests as bars: the wait for the answer, its transfer time, and its path."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any, Final

import polars as pl

from polypath.report.columns import differences
from polypath.results import Recording, metrics
from polypath.results.metrics import Connection, Subflow

#: More are not shown one by one: those without an answer and the longest stay.
MOST: Final = 10_000


def of_connection(recording: Recording, of: Connection, lanes: Sequence[Subflow]) -> dict[str, Any] | None:
    """A connection's requests in the order of sending; None where it sends none.

    `first` is when the first byte of the answer was sent, and `by` the bytes of the answer by subflow. They need
    requests of which the next is sent after the answer of the one before, and recorded segments. Without segments
    `by` is what arrived on each subflow, from the samples: null of a request that no samples part from its neighbours.
    """
    own = recording.table("requests").filter(pl.col("application") == of.application).sort("sent_ns", "index")
    if own.is_empty():
        return None
    sent, delays = own["sent_ns"].to_list(), own["delay_ns"].to_list()
    chosen = list(range(len(sent)))
    if len(sent) > MOST:
        end = recording.metadata.end_ns
        chosen = sorted(sorted(chosen, key=lambda each: -(end if delays[each] is None else delays[each]))[:MOST])
    first, by = _answers(recording, of, lanes, sent, delays)
    if by is None and not metrics.sends_messages(recording, of):
        by = _sampled(recording, of, lanes, sent, delays)
    return {
        "of": len(sent),
        "messages": metrics.sends_messages(recording, of),
        "index": differences(own["index"].gather(chosen).to_list()),
        "sent": differences([round(sent[each] / 1000) for each in chosen]),
        "delay": [None if delays[each] is None else round(delays[each] / 1000) for each in chosen],
        "first": [None if (at := first[each]) is None else round((at - sent[each]) / 1000) for each in chosen],
        "by": None if by is None else [by[each] for each in chosen],
        "sampled": by is not None and all(each is None for each in first),
    }


def _answers(
    recording: Recording, of: Connection, lanes: Sequence[Subflow], sent: Sequence[int], delays: Sequence[int | None]
) -> tuple[list[int | None], list[list[int] | None] | None]:
    nothing: list[int | None] = [None] * len(sent)
    if of.id is None or metrics.sends_messages(recording, of):
        return nothing, None
    segments = recording.table("segments").filter(
        (pl.col("connection") == of.id)
        & (pl.col("side") == "server")
        & (pl.col("payload_bytes") > 0)
        & pl.col("dsn").is_not_null()
    )
    ends = _ends(sent, delays)
    if segments.is_empty() or ends is None:
        return nothing, None
    places = {lane.id: place for place, lane in enumerate(lanes)}
    by: list[list[int]] = [[0] * len(lanes) for _ in sent]
    first = list(nothing)
    number = 0
    ordered = segments.sort("time_ns", maintain_order=True)
    columns = ("time_ns", "subflow", "payload_bytes", "kind")
    for time, subflow, length, kind in ordered.select(columns).iter_rows():
        while number + 1 < len(sent) and time >= sent[number + 1]:
            number += 1
        if time < sent[number] or (ends[number] is not None and time > (ends[number] or 0)):
            continue
        if first[number] is None:
            first[number] = time
        if kind != "retransmission" and subflow in places:
            by[number][places[subflow]] += length
    return first, list(by)


def _ends(sent: Sequence[int], delays: Sequence[int | None]) -> list[int | None] | None:
    """When each was answered; None where several are open at once: whose answer came on a subflow is not known."""
    ends = [start + delay if delay is not None else None for start, delay in zip(sent, delays, strict=True)]
    if any(end is None or end > start for end, start in zip(ends[:-1], sent[1:], strict=True)):
        return None
    return ends


def _sampled(
    recording: Recording, of: Connection, lanes: Sequence[Subflow], sent: Sequence[int], delays: Sequence[int | None]
) -> list[list[int] | None] | None:
    """The bytes of each answer by subflow, as the client received them; None without samples.

    The figures are exact if one sample lies between the previous answer and the request, and one between the answer and
    the next request. No other data is in flight then, except a late copy of the previous answer.
    """
    ends = _ends(sent, delays)
    if of.id is None or of.over_quic or ends is None:  # of a path whole packets are counted, ACKs, too
        return None
    own = (pl.col("connection") == of.id) & (pl.col("side") == "client")
    # At a sampling instant each subflow has a row; at others only the one that changed.
    instants = recording.table("connections").filter(own).select(pl.col("time_ns").unique().sort())
    times = instants["time_ns"].to_list()
    rows = recording.table("subflows").filter(own).join(instants, on="time_ns", how="semi")
    totals = [dict.fromkeys(times, 0) for _ in lanes]
    places = {lane.id: place for place, lane in enumerate(lanes)}
    for time, subflow, received in rows.select("time_ns", "subflow", "received_bytes").iter_rows():
        if received is None:
            return None
        if subflow in places:
            totals[places[subflow]][time] = received
    found: list[list[int] | None] = []
    for number, (start, end) in enumerate(zip(sent, ends, strict=True)):
        before = bisect.bisect_right(times, start) - 1
        since = ends[number - 1] if number else 0
        beyond = sent[number + 1] if number + 1 < len(sent) else recording.metadata.end_ns
        after = len(times) if end is None else bisect.bisect_left(times, end)
        apart = number == 0 or (before >= 0 and since is not None and times[before] >= since)
        if not apart or after >= len(times) or times[after] > beyond:
            found.append(None)
            continue
        had = [0] * len(lanes) if before < 0 else [total[times[before]] for total in totals]
        found.append([total[times[after]] - more for total, more in zip(totals, had, strict=True)])
    return found if any(each is not None for each in found) else None
