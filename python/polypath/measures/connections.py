"""Figures of a connection as a whole, and of several together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from polypath.measures.measure import MBPS, MILLISECONDS, NUMBER, PART, SECONDS, Figure, Measure, over_connection
from polypath.results import metrics
from polypath.results.metrics import Connection
from polypath.results.recording import Recording


def _ns(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * metrics.SECOND)


def _goodput(recording: Recording, of: Connection, *, from_s: float | None = None, to_s: float | None = None) -> Figure:
    return metrics.goodput(recording, of, _ns(from_s), _ns(to_s))


def _completion(recording: Recording, of: Connection) -> Figure:
    return metrics.completion_ns(of)


def _established(recording: Recording, of: Connection) -> Figure:
    if of.id is None:
        raise metrics.MetricError(f"measure 'established': '{of.name}' has no connection")
    return None if of.established_ns is None else of.established_ns - of.start_ns


def _fallback(recording: Recording, of: Connection) -> Figure:
    return float(of.transport == "fallback")


def _unfinished(recording: Recording) -> Figure:
    return float(sum(each.finished is False for each in metrics.connections(recording)))


def _rates(recording: Recording, names: Iterable[str], from_s: float | None, to_s: float | None) -> dict[str, Figure]:
    return {
        name: metrics.goodput(recording, metrics.connection(recording, name), _ns(from_s), _ns(to_s)) for name in names
    }


def _goodput_mean(
    recording: Recording,
    *,
    connections: Sequence[str] | None = None,
    from_s: float | None = None,
    to_s: float | None = None,
) -> Figure:
    if connections is None:
        every = [metrics.goodput(recording, of, _ns(from_s), _ns(to_s)) for of in metrics.connections(recording)]
        rates = [rate for rate in every if rate is not None]
    else:
        named = [*_rates(recording, connections, from_s, to_s).values()]
        rates = [rate for rate in named if rate is not None]
        if len(rates) < len(named):
            return None
    return sum(rates) / len(rates) if rates else None


def _throughput_mean(
    recording: Recording,
    *,
    payload_bytes: int,
    wire_bytes: int,
    connections: Sequence[str] | None = None,
    from_s: float | None = None,
    to_s: float | None = None,
) -> Figure:
    mean = _goodput_mean(recording, connections=connections, from_s=from_s, to_s=to_s)
    return None if mean is None else mean * wire_bytes / payload_bytes


def _host_throughput(
    recording: Recording,
    *,
    payload_bytes: int,
    wire_bytes: int,
    from_s: float | None = None,
    to_s: float | None = None,
    least: bool = False,
) -> Figure:
    applications = recording.plan["applications"]
    hosts: dict[int, float] = {}
    for each in metrics.connections(recording):
        rate = metrics.goodput(recording, each, _ns(from_s), _ns(to_s)) or 0.0
        host = applications[each.application][each.sender]
        hosts[host] = hosts.get(host, 0.0) + rate
    if not hosts:
        return None
    found = min(hosts.values()) if least else sum(hosts.values()) / len(hosts)
    return found * wire_bytes / payload_bytes


def _jain(
    recording: Recording, *, connections: Sequence[str], from_s: float | None = None, to_s: float | None = None
) -> Figure:
    rates = [rate or 0.0 for rate in _rates(recording, connections, from_s, to_s).values()]
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares > 0 else None


def _share_of(
    recording: Recording,
    *,
    connections: Sequence[str],
    numerator: str,
    from_s: float | None = None,
    to_s: float | None = None,
) -> Figure:
    if numerator not in connections:
        raise metrics.MetricError(f"measure 'share_of': '{numerator}' is not among the connections")
    rates = {name: rate or 0.0 for name, rate in _rates(recording, connections, from_s, to_s).items()}
    total = sum(rates.values())
    return rates[numerator] / total if total > 0 else None


FIGURES = (
    Measure(
        "goodput",
        MBPS,
        "connection",
        "goodput",
        "bytes delivered in order over the connection's time, as iperf counts; or between two times",
        _goodput,
        heading="Mbps",
        kept=("goodput_mbps",),
        beside=True,
        more_is_better=True,
    ),
    Measure(
        "completion",
        SECONDS,
        "connection",
        "completion time",
        "time from the connection's start to its last byte",
        _completion,
        heading="time s",
        kept=("completion_s",),
        beside=True,
        applies=over_connection,
        unfinished=lambda row: row["finished"] is False,
    ),
    Measure(
        "established",
        MILLISECONDS,
        "connection",
        "time until the client is established",
        "time from a connection's start until its client is established",
        _established,
    ),
    Measure(
        "fallback",
        NUMBER,
        "connection",
        "fallback to TCP",
        "whether the connection fell back to TCP, 1 or 0",
        _fallback,
        source="RFC 8684 section 3.7",
    ),
    Measure(
        "unfinished",
        NUMBER,
        "run",
        "unfinished connections",
        "connections that did not do all that they were to do",
        _unfinished,
    ),
    Measure(
        "goodput_mean",
        MBPS,
        "connections",
        "mean goodput",
        "mean goodput of several connections, by default of all that have one; or between two times",
        _goodput_mean,
    ),
    Measure(
        "throughput_mean",
        MBPS,
        "connections",
        "mean throughput",
        "mean goodput of several connections on the wire, for a given payload and length of packets",
        _throughput_mean,
    ),
    Measure(
        "host_throughput",
        MBPS,
        "connections",
        "throughput of a host",
        "on the wire, what a sending host carries over all of its connections: the mean of hosts, or the least",
        _host_throughput,
    ),
    Measure(
        "jain",
        NUMBER,
        "connections",
        "Jain's fairness index",
        "Jain's fairness index of the goodput of several connections",
        _jain,
        source="Jain et al. 1984",
    ),
    Measure(
        "share_of",
        PART,
        "connections",
        "share of the goodput",
        "a connection's part of the goodput of several",
        _share_of,
    ),
)
