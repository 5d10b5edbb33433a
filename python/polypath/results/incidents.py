"""Incidents of a connection outside its account: fallback, failed joins, resets, timeouts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from polypath.results import metrics
from polypath.results.metrics import Connection, Subflow
from polypath.results.phrases import capitalised, counted, seconds
from polypath.results.recording import Recording

_KINDS: Final = ("fallback", "reset", "timeout")


@dataclass(frozen=True)
class Incident:
    """A sentence, and when it happened first."""

    time_ns: int
    sentence: str


def of_connection(recording: Recording, of: Connection) -> list[Incident]:
    """In the order of time. Engines whose kernels tell of no such events have joins that failed alone."""
    events = recording.table("events").filter((pl.col("connection") == of.id) & pl.col("kind").is_in(_KINDS))
    lanes = metrics.subflows(recording, of)
    found = [
        *_fallback(events),
        *_joins(of, lanes, events),
        *_resets(lanes, events),
        *_timeouts(recording, of, lanes, events),
    ]
    return sorted(found, key=lambda each: each.time_ns)


def _fallback(events: pl.DataFrame) -> Iterator[Incident]:
    """Each end has a reason of its own; the other end's follows from the first."""
    told = events.filter(pl.col("kind") == "fallback").sort("time_ns", maintain_order=True)
    for time, host, detail in told.select("time_ns", "host", "detail").head(1).iter_rows():
        yield Incident(time, f"It fell back to TCP at {seconds(time)} ({host}: {detail}).")


def _joins(of: Connection, lanes: Sequence[Subflow], events: pl.DataFrame) -> Iterator[Incident]:
    """A join that was reset was refused by a host or by what lies between; the others had no answer."""
    if of.established_ns is None:
        return
    for lane in lanes:
        if lane.established_ns is not None or of.over_quic:
            continue
        reset = _first(events, "reset", lane)
        if reset is not None:
            time, host = reset
            yield Incident(time, f"The join of {lane.label} failed at {seconds(time)}: {host} reset it.")
        else:
            yield Incident(of.until_ns, f"The join of {lane.label} had no answer.")


def _resets(lanes: Sequence[Subflow], events: pl.DataFrame) -> Iterator[Incident]:
    for lane in lanes:
        reset = _first(events, "reset", lane)
        if lane.established_ns is not None and reset is not None:
            time, host = reset
            yield Incident(time, f"{capitalised(lane.label)} was reset by {host} at {seconds(time)}.")


def _timeouts(
    recording: Recording, of: Connection, lanes: Sequence[Subflow], events: pl.DataFrame
) -> Iterator[Incident]:
    """The timeouts of the sender; the other end repeats only its own few bytes."""
    host = _host(recording, of)
    for lane in lanes:
        own = (pl.col("kind") == "timeout") & (pl.col("subflow") == lane.id) & (pl.col("host") == host)
        times = sorted(events.filter(own)["time_ns"])
        if not times:
            continue
        when = f"at {seconds(times[0])}"
        if len(times) > 1:
            when = f"between {seconds(times[0])} and {seconds(times[-1])}"
        yield Incident(
            times[0], f"{capitalised(lane.label)} had {counted(len(times), 'retransmission timeout')} {when}."
        )


def _first(events: pl.DataFrame, kind: str, lane: Subflow) -> tuple[int, str] | None:
    told = events.filter((pl.col("kind") == kind) & (pl.col("subflow") == lane.id)).sort("time_ns", maintain_order=True)
    return next(told.select("time_ns", "host").head(1).iter_rows(), None)


def _host(recording: Recording, of: Connection) -> str | None:
    """The name of the sender's node; None of a capture, whose plan has none."""
    applications, nodes = recording.plan.get("applications", []), recording.plan.get("nodes", [])
    place = applications[of.application].get(of.sender) if of.application < len(applications) else None
    return str(nodes[place]["name"]) if isinstance(place, int) and place < len(nodes) else None
