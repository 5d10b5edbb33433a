"""Requests as bars: how long each waited for its answer, how long that took to come, and by which path."""

from __future__ import annotations

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
    recorded segments, and requests of which the next is sent after the answer of the one before.
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
    return {
        "of": len(sent),
        "messages": metrics.sends_messages(recording, of),
        "index": differences(own["index"].gather(chosen).to_list()),
        "sent": differences([round(sent[each] / 1000) for each in chosen]),
        "delay": [None if delays[each] is None else round(delays[each] / 1000) for each in chosen],
        "first": [None if (at := first[each]) is None else round((at - sent[each]) / 1000) for each in chosen],
        "by": None if by is None else [by[each] for each in chosen],
    }


def _answers(
    recording: Recording, of: Connection, lanes: Sequence[Subflow], sent: Sequence[int], delays: Sequence[int | None]
) -> tuple[list[int | None], list[list[int]] | None]:
    nothing: list[int | None] = [None] * len(sent)
    if of.id is None or metrics.sends_messages(recording, of):
        return nothing, None
    segments = recording.table("segments").filter(
        (pl.col("connection") == of.id)
        & (pl.col("side") == "server")
        & (pl.col("payload_bytes") > 0)
        & pl.col("dsn").is_not_null()
    )
    if segments.is_empty():
        return nothing, None
    ends = [start + delay if delay is not None else None for start, delay in zip(sent, delays, strict=True)]
    if any(
        end is None or end > start for end, start in zip(ends[:-1], sent[1:], strict=True)
    ):  # several are open at once: whose answer a segment carries is not known
        return nothing, None
    places = {lane.id: place for place, lane in enumerate(lanes)}
    by = [[0] * len(lanes) for _ in sent]
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
    return first, by
