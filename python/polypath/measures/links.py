"""Figures of links, and what hosts count."""

from __future__ import annotations

import math
from fnmatch import fnmatchcase

from polypath.measures.measure import NUMBER, PACKETS, PART, Figure, Measure
from polypath.results import metrics
from polypath.results.recording import Recording


def _link_use(recording: Recording, *, links: str) -> Figure:
    ends = recording.table("link_ends")
    busy: list[int] = [row["busy_ns"] for row in ends.iter_rows(named=True) if fnmatchcase(row["name"], links)]
    if not busy:
        raise metrics.MetricError(f"no link is called '{links}'")
    return sum(busy) / len(busy) / recording.metadata.end_ns


def _packets(recording: Recording, *, link: str, direction: str) -> Figure:
    return float(metrics.link_packets(recording, link, direction))


def _counter(recording: Recording, *, counter: str, host: str | None = None) -> Figure:
    own = [
        row["value"]
        for row in recording.table("counters").iter_rows(named=True)
        if row["name"] == counter and host in (None, row["host"])
    ]
    if not own:
        raise metrics.MetricError(f"measure 'counter': no host counts '{counter}'")
    return float(sum(own))


def _queue_mean(
    recording: Recording, *, link: str, direction: str, from_s: float | None = None, to_s: float | None = None
) -> Figure:
    found = metrics.queue_packets(recording, link, direction, metrics.between(from_s, to_s))
    return sum(found) / len(found) if found else None


def _queue_p95(
    recording: Recording, *, link: str, direction: str, from_s: float | None = None, to_s: float | None = None
) -> Figure:
    found = metrics.queue_packets(recording, link, direction, metrics.between(from_s, to_s))
    return float(found[math.ceil(0.95 * len(found)) - 1]) if found else None


def _queue_max(recording: Recording, *, link: str, direction: str) -> Figure:
    return float(metrics.most_queued(recording, link, direction))


FIGURES = (
    Measure(
        "link_use",
        PART,
        "link",
        "use of links",
        "part of the time that links are busy, whose names match, both directions",
        _link_use,
    ),
    Measure("packets", NUMBER, "link", "packets", "packets that left a link's queue in one direction", _packets),
    Measure(
        "queue_mean",
        PACKETS,
        "link",
        "mean queue",
        "mean of the samples of the packets in a link's queue in one direction; or between two times",
        _queue_mean,
    ),
    Measure(
        "queue_p95",
        PACKETS,
        "link",
        "95th percentile of the queue",
        "95th percentile of the samples of the packets in a link's queue in one direction; or between two times",
        _queue_p95,
    ),
    Measure(
        "queue_max",
        PACKETS,
        "link",
        "largest queue",
        "the most packets in a link's queue in one direction at any time",
        _queue_max,
    ),
    Measure(
        "counter",
        NUMBER,
        "run",
        "counter",
        "a counter of Linux's MIBs, of one host or all of them",
        _counter,
        source="net/mptcp/mib.c, net/ipv4/proc.c",
    ),
)
