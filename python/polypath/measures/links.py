"""Figures of links, and what hosts count."""

from __future__ import annotations

from fnmatch import fnmatchcase

from polypath.measures.measure import NUMBER, PART, Figure, Measure
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
        "counter",
        NUMBER,
        "run",
        "counter",
        "a counter of Linux's MIBs, of one host or all of them",
        _counter,
        source="net/mptcp/mib.c, net/ipv4/proc.c",
    ),
)
