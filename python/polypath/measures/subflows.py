"""Figures of a subflow of Multipath TCP, or of a path of QUIC, and of how they share a connection."""

from __future__ import annotations

from collections.abc import Sequence

from polypath.measures.measure import (
    KILOBYTES,
    MBPS,
    NUMBER,
    PACKETS,
    PART,
    PER_SECOND,
    Figure,
    Measure,
    Unit,
)
from polypath.results import metrics
from polypath.results.metrics import Connection, Subflow
from polypath.results.recording import Recording

_MICROSECONDS = Unit("ms", "ms", 1e3, claimed=1e3, ending="ms")


def _share(recording: Recording, of: Connection, subflow: Subflow) -> Figure:
    return subflow.share


def _goodput(recording: Recording, of: Connection, subflow: Subflow) -> Figure:
    return metrics.subflow_goodput(recording, of, subflow)


def _resent(recording: Recording, of: Connection, subflow: Subflow) -> Figure:
    return subflow.resent


def _srtt(recording: Recording, of: Connection, subflow: Subflow) -> Figure:
    samples = metrics.srtt_us(recording, of, subflow)
    return sum(samples) / len(samples) if samples else None


def _window_mean(
    recording: Recording, of: Connection, *, interface: str, from_s: float | None = None, to_s: float | None = None
) -> Figure:
    within = metrics.between(from_s, to_s)
    samples: list[int] = []
    for subflow in metrics.subflows(recording, of):
        if subflow.interface == interface:
            found = zip(*metrics.sampled(recording, of, subflow, "cwnd_packets"), strict=True)
            samples += [window for time, window in found if window is not None and within(time)]
    return sum(samples) / len(samples) if samples else None


def _subflows(recording: Recording, of: Connection) -> Figure:
    return float(sum(subflow.established_ns is not None for subflow in metrics.subflows(recording, of)))


def _sent(recording: Recording, of: Connection, *, interface: str, side: str | None = None) -> Figure:
    return metrics.sent_bytes(recording, of, interface, side)


def _alternations(recording: Recording, of: Connection, *, interface: str | Sequence[str]) -> Figure:
    return metrics.alternations(recording, of, [interface] if isinstance(interface, str) else interface)


#: In the order of their columns in tables.
FIGURES = (
    Measure(
        "subflow_goodput",
        MBPS,
        "subflow",
        "goodput of a subflow",
        "bytes that arrived on a subflow over the connection's time, or the time until the last of them came",
        _goodput,
        heading="Mbps",
        words="goodput",
        kept=("goodput_mbps",),
    ),
    Measure(
        "subflow_share",
        PART,
        "subflow",
        "share of a subflow",
        "part of the bytes that arrived by an interface or several, of those by all subflows",
        _share,
        heading="share",
        words="share",
        digits=1,
        kept=("share",),
        beside=True,
    ),
    Measure(
        "srtt",
        _MICROSECONDS,
        "subflow",
        "smoothed round-trip time",
        "mean of the sender's samples of a subflow's smoothed round-trip time",
        _srtt,
        source="RFC 6298 section 2",
        adds=False,
        heading="RTT ms",
        beside=True,
    ),
    Measure(
        "window_mean",
        PACKETS,
        "connection",
        "mean congestion window",
        "mean of the sender's samples of the congestion window on an interface; or between two times",
        _window_mean,
        source="RFC 9438 section 5",
    ),
    Measure(
        "resent",
        PART,
        "subflow",
        "part sent again",
        "retransmitted bytes, as a part of all bytes sent on a subflow",
        _resent,
        heading="resent",
        adds=False,
    ),
    Measure(
        "subflows", NUMBER, "connection", "subflows", "subflows that were established", _subflows, source="RFC 8684"
    ),
    Measure(
        "alternations",
        PER_SECOND,
        "connection",
        "alternations of interfaces",
        "how often another of some interfaces becomes the one that brings most within a sampling interval",
        _alternations,
    ),
    Measure(
        "sent",
        KILOBYTES,
        "connection",
        "sent by an interface",
        "bytes that were sent first by an interface's subflows or paths; of one side",
        _sent,
    ),
)
