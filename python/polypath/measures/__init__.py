"""The measures of a lab's expectations: one function and one registry entry each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from polypath.measures.summary import summary as summary
from polypath.results import completions, control, costs, metrics, pages, tunnels, video
from polypath.results import exposure as exposing
from polypath.results.recording import Recording

#: None: the run gives no such figure.
Figure = float | None


@dataclass(frozen=True)
class Measure:
    """A named figure of a Recording."""

    name: str
    unit: str
    description: str
    compute: Callable[..., Figure]

    def __call__(self, recording: Recording, parameters: Mapping[str, Any]) -> Figure:
        """Raises MetricError for parameters that the measure does not take."""
        try:
            bound = inspect.signature(self.compute).bind(recording, **parameters)
        except TypeError as error:
            raise metrics.MetricError(f"measure '{self.name}': {error}") from None
        return self.compute(*bound.args, **bound.kwargs)


def _ns(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * metrics.SECOND)


def goodput(recording: Recording, *, connection: str, from_s: float | None = None, to_s: float | None = None) -> Figure:
    rate = metrics.goodput(recording, metrics.connection(recording, connection), _ns(from_s), _ns(to_s))
    return None if rate is None else rate / 1e6


def mean_goodput(recording: Recording, *, from_s: float | None = None, to_s: float | None = None) -> Figure:
    found = [metrics.goodput(recording, each, _ns(from_s), _ns(to_s)) for each in metrics.connections(recording)]
    rates = [rate for rate in found if rate is not None]
    return sum(rates) / len(rates) / 1e6 if rates else None


def mean_throughput(
    recording: Recording,
    *,
    payload_bytes: int,
    wire_bytes: int,
    from_s: float | None = None,
    to_s: float | None = None,
) -> Figure:
    mean = mean_goodput(recording, from_s=from_s, to_s=to_s)
    return None if mean is None else mean * wire_bytes / payload_bytes


def host_throughput(
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
    return found * wire_bytes / payload_bytes / 1e6


def completion_mean(recording: Recording, *, group: str) -> Figure:
    found = completions.of_groups(recording)
    if group not in found:
        raise metrics.MetricError(f"there is no group '{group}' of flows; there is {', '.join(found) or 'none'}")
    mean = found[group][0].mean_ns()
    return None if mean is None else mean / 1e6


def link_use(recording: Recording, *, links: str) -> Figure:
    ends = recording.table("link_ends")
    busy: list[int] = [row["busy_ns"] for row in ends.iter_rows(named=True) if fnmatchcase(row["name"], links)]
    if not busy:
        raise metrics.MetricError(f"no link is called '{links}'")
    return sum(busy) / len(busy) / recording.metadata.end_ns


def completion(recording: Recording, *, connection: str) -> Figure:
    passed = metrics.completion_ns(metrics.connection(recording, connection))
    return None if passed is None else passed / metrics.SECOND


def subflows(recording: Recording, *, connection: str) -> Figure:
    found = metrics.subflows(recording, metrics.connection(recording, connection))
    return float(sum(subflow.established_ns is not None for subflow in found))


def _delays_ns(recording: Recording, connection: str, skip: int, last: int | None) -> list[int | None]:
    """The delays of the last `last` requests after the first `skip`."""
    everything = metrics.delays(recording, metrics.connection(recording, connection))[skip:]
    return everything if last is None else everything[max(0, len(everything) - last) :]


def _answered_ms(recording: Recording, connection: str, skip: int, last: int | None) -> list[float]:
    """Answered delays in ms among these requests."""
    return [delay / 1e6 for delay in _delays_ns(recording, connection, skip, last) if delay is not None]


def _all_answered_ms(recording: Recording, connection: str, skip: int, last: int | None) -> list[float]:
    """Raises MetricError where some are unanswered: a figure of the others would pass for that of all."""
    chosen = _delays_ns(recording, connection, skip, last)
    unanswered = sum(delay is None for delay in chosen)
    if unanswered:
        raise metrics.MetricError(f"{unanswered} of {len(chosen)} requests are unanswered")
    return [delay / 1e6 for delay in chosen if delay is not None]


def reinjected(recording: Recording, *, connection: str) -> Figure:
    found = metrics.subflows(recording, metrics.connection(recording, connection))
    total = metrics.reinjected_bytes(found)
    return None if total is None else total / 1e3


def _blocked(
    recording: Recording,
    connection: str,
    level: metrics.Level | None,
    cause: str | None,
    interface: str | Sequence[str] | None,
) -> list[metrics.Blocking] | None:
    of = metrics.connection(recording, connection)
    chosen = [interface] if isinstance(interface, str) else interface
    found = metrics.blocking(recording, of)
    interfaces = {subflow.id: subflow.interface for subflow in metrics.subflows(recording, of)}
    return found and [
        each
        for each in found
        if level in (None, each.level)
        and cause in (None, each.cause)
        and (chosen is None or (each.subflow is not None and interfaces.get(each.subflow) in chosen))
    ]


def blocked_s(
    recording: Recording, *, connection: str, cause: str | None = None, interface: str | Sequence[str] | None = None
) -> Figure:
    found = _blocked(recording, connection, "connection", cause, interface)
    return None if found is None else sum(each.time_ns for each in found) / metrics.SECOND


def blocked_kb(
    recording: Recording,
    *,
    connection: str,
    level: metrics.Level | None = None,
    cause: str | None = None,
    interface: str | Sequence[str] | None = None,
) -> Figure:
    of = metrics.connection(recording, connection)
    found, passed = _blocked(recording, connection, level, cause, interface), of.until_ns - of.start_ns
    return None if found is None or passed <= 0 else sum(each.byte_s for each in found) * metrics.SECOND / passed / 1e3


def goodput_mean(
    recording: Recording, *, connections: Sequence[str], from_s: float | None = None, to_s: float | None = None
) -> Figure:
    rates = [goodput(recording, connection=name, from_s=from_s, to_s=to_s) for name in connections]
    known = [rate for rate in rates if rate is not None]
    return sum(known) / len(known) if known and len(known) == len(rates) else None


def throughput_mean(
    recording: Recording,
    *,
    connections: Sequence[str],
    payload_bytes: int,
    wire_bytes: int,
    from_s: float | None = None,
    to_s: float | None = None,
) -> Figure:
    mean = goodput_mean(recording, connections=connections, from_s=from_s, to_s=to_s)
    return None if mean is None else mean * wire_bytes / payload_bytes


def jain(
    recording: Recording, *, connections: Sequence[str], from_s: float | None = None, to_s: float | None = None
) -> Figure:
    rates = [goodput(recording, connection=name, from_s=from_s, to_s=to_s) or 0.0 for name in connections]
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares > 0 else None


def delay_min(recording: Recording, *, connection: str, skip: int = 0, last: int | None = None) -> Figure:
    return min(_answered_ms(recording, connection, skip, last), default=None)


def delay_max(recording: Recording, *, connection: str, skip: int = 0, last: int | None = None) -> Figure:
    return max(_all_answered_ms(recording, connection, skip, last), default=None)


def delay_first(recording: Recording, *, connection: str, skip: int = 0, last: int | None = None) -> Figure:
    return next(iter(_answered_ms(recording, connection, skip, last)), None)


def delay_mean(recording: Recording, *, connection: str, skip: int = 0, last: int | None = None) -> Figure:
    values = _all_answered_ms(recording, connection, skip, last)
    return sum(values) / len(values) if values else None


def delay_count_between(
    recording: Recording, *, connection: str, low_ms: float, high_ms: float, skip: int = 0, last: int | None = None
) -> Figure:
    values = _answered_ms(recording, connection, skip, last)
    return float(sum(low_ms <= value <= high_ms for value in values))


def delay_fraction(
    recording: Recording, *, connection: str, low_ms: float, high_ms: float, skip: int = 0, last: int | None = None
) -> Figure:
    values = _answered_ms(recording, connection, skip, last)
    sent = len(_delays_ns(recording, connection, skip, last))
    return sum(low_ms <= value <= high_ms for value in values) / sent if sent else None


def fallback(recording: Recording, *, connection: str) -> Figure:
    return float(metrics.connection(recording, connection).transport == "fallback")


def counter(recording: Recording, *, counter: str, host: str | None = None) -> Figure:
    own = [
        row["value"]
        for row in recording.table("counters").iter_rows(named=True)
        if row["name"] == counter and host in (None, row["host"])
    ]
    if not own:
        raise metrics.MetricError(f"measure 'counter': no host counts '{counter}'")
    return float(sum(own))


def unanswered(recording: Recording, *, connection: str) -> Figure:
    delays = metrics.delays(recording, metrics.connection(recording, connection))
    return float(sum(delay is None for delay in delays))


def subflow_share(recording: Recording, *, connection: str, interface: str | Sequence[str]) -> Figure:
    chosen = [interface] if isinstance(interface, str) else interface
    found = metrics.subflows(recording, metrics.connection(recording, connection))
    shares = [subflow.share for subflow in found if subflow.interface in chosen]
    return None if None in shares else sum(share for share in shares if share is not None)


def alternations(recording: Recording, *, connection: str, interface: str | Sequence[str]) -> Figure:
    chosen = [interface] if isinstance(interface, str) else interface
    return metrics.alternations(recording, metrics.connection(recording, connection), chosen)


def share_of(
    recording: Recording,
    *,
    connections: Sequence[str],
    numerator: str,
    from_s: float | None = None,
    to_s: float | None = None,
) -> Figure:
    if numerator not in connections:
        raise metrics.MetricError(f"measure 'share_of': '{numerator}' is not among the connections")
    rates = {name: goodput(recording, connection=name, from_s=from_s, to_s=to_s) or 0.0 for name in connections}
    total = sum(rates.values())
    return rates[numerator] / total if total > 0 else None


def packets(recording: Recording, *, link: str, direction: str) -> Figure:
    return float(metrics.link_packets(recording, link, direction))


def sent(recording: Recording, *, connection: str, interface: str, side: str | None = None) -> Figure:
    found = metrics.sent_bytes(recording, metrics.connection(recording, connection), interface, side)
    return found / 1e3


def _control(recording: Recording, measure: str) -> control.Control:
    found = control.of(recording)
    if found is None:
        raise metrics.MetricError(f"measure '{measure}': the run has no controller")
    return found


def packet_ins(recording: Recording) -> Figure:
    return float(_control(recording, "packet_ins").packet_ins)


def flow_mods(recording: Recording) -> Figure:
    return float(_control(recording, "flow_mods").flow_mods)


def table_entries(recording: Recording) -> Figure:
    return float(_control(recording, "table_entries").most_entries)


def table_drops(recording: Recording) -> Figure:
    return float(_control(recording, "table_drops").dropped_packets)


def setup_mean(recording: Recording) -> Figure:
    mean = _control(recording, "setup_mean").mean_delay_ns
    return None if mean is None else mean / 1e6


def setup_max(recording: Recording) -> Figure:
    longest = _control(recording, "setup_max").delays.quantile(1.0)
    return None if longest is None else longest / 1e6


def established(recording: Recording, *, connection: str) -> Figure:
    of = metrics.connection(recording, connection)
    if of.id is None:
        raise metrics.MetricError(f"measure 'established': '{connection}' has no connection")
    return None if of.established_ns is None else (of.established_ns - of.start_ns) / 1e6


def _costs(recording: Recording, measure: str, link: str | None) -> Sequence[costs.LinkCost]:
    """One link, or all that have a price or a cap."""
    found = costs.of(recording)
    chosen = () if found is None else [each for each in found.links if link in (None, each.link)]
    if not chosen:
        which = "no link" if link is None else f"no link '{link}'"
        raise metrics.MetricError(f"measure '{measure}': {which} has a price or a cap")
    return chosen


def cost(recording: Recording, *, link: str | None = None) -> Figure:
    known = [each.cost for each in _costs(recording, "cost", link) if each.cost is not None]
    return sum(known) if known else None


def over_cap(recording: Recording, *, link: str | None = None) -> Figure:
    beyond = [each.over_cap_bytes for each in _costs(recording, "over_cap", link)]
    known = [each for each in beyond if each is not None]
    return sum(known) / 1e6 if known else None


def dear_share(recording: Recording, *, link: str) -> Figure:
    links = _costs(recording, "dear_share", None)
    own, total = sum(each.bytes for each in _costs(recording, "dear_share", link)), sum(each.bytes for each in links)
    return own / total if total else None


def _through(recording: Recording, measure: str, tunnel: str | None) -> list[tunnels.Direction]:
    found = [each for each in tunnels.of(recording) if tunnel is None or each.name == tunnel]
    if not found:
        which = "no tunnel" if tunnel is None else f"no tunnel '{tunnel}'"
        raise metrics.MetricError(f"measure '{measure}': there is {which}")
    return found


def tunnel_lost(recording: Recording, *, connection: str | None = None) -> Figure:
    found = _through(recording, "tunnel_lost", connection)
    entered = sum(each.entered for each in found)
    return sum(each.lost for each in found) / entered if entered else None


def tunnel_dropped(recording: Recording, *, connection: str | None = None) -> Figure:
    found = _through(recording, "tunnel_dropped", connection)
    entered = sum(each.entered for each in found)
    return sum(each.entered - each.carried for each in found) / entered if entered else None


def tunnel_late(recording: Recording, *, connection: str | None = None) -> Figure:
    found = _through(recording, "tunnel_late", connection)
    left = sum(each.left for each in found)
    return sum(each.late for each in found) / left if left else None


def _playback(recording: Recording, connection: str) -> video.Playback:
    found = video.playback(recording, metrics.connection(recording, connection))
    if found is None:
        raise metrics.MetricError(f"'{connection}' is no video")
    return found


def video_rate(recording: Recording, *, connection: str) -> Figure:
    rate = _playback(recording, connection).rate_bps
    return None if rate is None else rate / 1e6


def video_startup(recording: Recording, *, connection: str) -> Figure:
    startup = _playback(recording, connection).startup_ns
    return None if startup is None else startup / metrics.SECOND


def video_stalled(recording: Recording, *, connection: str) -> Figure:
    stalled = _playback(recording, connection).stalled_ns
    return None if stalled is None else stalled / metrics.SECOND


def video_switches(recording: Recording, *, connection: str) -> Figure:
    return float(_playback(recording, connection).switches)


def _page(recording: Recording, connection: str) -> pages.Load:
    found = pages.load(recording, metrics.connection(recording, connection))
    if found is None:
        raise metrics.MetricError(f"'{connection}' is no page")
    return found


def page_load(recording: Recording, *, connection: str) -> Figure:
    load = _page(recording, connection).load_ns
    return None if load is None else load / metrics.SECOND


def first_object(recording: Recording, *, connection: str) -> Figure:
    first = _page(recording, connection).first_ns
    return None if first is None else first / metrics.SECOND


def unfinished(recording: Recording) -> Figure:
    return float(sum(each.finished is False for each in metrics.connections(recording)))


def _most_exposed(recording: Recording, connection: str) -> exposing.Exposure | None:
    of = metrics.connection(recording, connection)
    found = [
        each
        for each in exposing.exposure(recording)
        if each.tap.kind == "path" and (each.stream.connection, each.stream.side) == (of.id, of.sender)
    ]
    return max(found, key=lambda each: each.share, default=None)


def exposure(recording: Recording, *, connection: str) -> Figure:
    found = _most_exposed(recording, connection)
    return None if found is None else found.share


def exposure_cbc(recording: Recording, *, connection: str) -> Figure:
    found = _most_exposed(recording, connection)
    return None if found is None or not found.share else found.readable_share / found.share


REGISTRY: Mapping[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure(
            "goodput", "Mbps", "bytes delivered in order over time, as iperf counts; or between two times", goodput
        ),
        Measure("mean_goodput", "Mbps", "mean goodput of all connections; or between two times", mean_goodput),
        Measure(
            "mean_throughput",
            "Mbps",
            "the same on the wire, for a given payload and length of packets",
            mean_throughput,
        ),
        Measure(
            "host_throughput",
            "Mbps",
            "on the wire, what a sending host carries over all of its connections: the mean of hosts, or the least",
            host_throughput,
        ),
        Measure("completion_mean", "ms", "mean completion time of a group's flows, all finished", completion_mean),
        Measure("link_use", "", "part of the time that links are busy, whose names match, both directions", link_use),
        Measure("completion", "s", "time from the connection's start to its last byte", completion),
        Measure("subflows", "", "subflows that were established", subflows),
        Measure("reinjected", "kB", "bytes sent again on another subflow than before", reinjected),
        Measure(
            "blocked_s",
            "s",
            "time during which data in sequence on its subflow waited for other bytes of the stream; of one cause, or "
            "for what came by an interface",
            blocked_s,
        ),
        Measure(
            "blocked_kb",
            "kB",
            "mean of the bytes that waited at the receiver for those before them; at one level (subflow, connection), "
            "of one cause (late, retransmitted, reinjected, missing), for what came by an interface",
            blocked_kb,
        ),
        Measure("goodput_mean", "Mbps", "mean goodput of several connections", goodput_mean),
        Measure(
            "throughput_mean",
            "Mbps",
            "the same on the wire, for a given payload and length of packets",
            throughput_mean,
        ),
        Measure("jain", "", "Jain's fairness index of the goodput of several connections (Jain et al. 1984)", jain),
        Measure("delay_min", "ms", "least delay of the requests", delay_min),
        Measure("delay_max", "ms", "greatest delay of the requests", delay_max),
        Measure("delay_first", "ms", "delay of the first answered request", delay_first),
        Measure("delay_mean", "ms", "mean delay of the requests", delay_mean),
        Measure(
            "delay_fraction",
            "",
            "part of the requests with a delay between two bounds",
            delay_fraction,
        ),
        Measure("delay_count_between", "", "requests with a delay between two bounds", delay_count_between),
        Measure("fallback", "", "whether the connection fell back to TCP, 1 or 0", fallback),
        Measure("counter", "", "a counter of Linux's MIBs, of one host or all of them", counter),
        Measure("unanswered", "", "requests without an answer", unanswered),
        Measure(
            "subflow_share",
            "",
            "part of the bytes that arrived by an interface or several",
            subflow_share,
        ),
        Measure(
            "alternations",
            "1/s",
            "how often another of some interfaces becomes the one that brings most within a sampling interval",
            alternations,
        ),
        Measure("packets", "", "packets that left a link's queue in one direction", packets),
        Measure("sent", "kB", "bytes that were sent first by an interface's subflows or paths; of one side", sent),
        Measure("packet_ins", "", "packets that switches sent to their controller", packet_ins),
        Measure("flow_mods", "", "changes of flow tables by the controller", flow_mods),
        Measure("table_entries", "", "the most entries that any switch's tables had at once", table_entries),
        Measure("table_drops", "", "packets that switches dropped by their tables", table_drops),
        Measure(
            "setup_mean",
            "ms",
            "mean time from a flow's first packet at a switch that did not know it until that packet was sent on",
            setup_mean,
        ),
        Measure("setup_max", "ms", "the longest such time", setup_max),
        Measure("established", "ms", "time from a connection's start until its client is established", established),
        Measure("cost", "", "what bytes over links with a price cost, or over one of them", cost),
        Measure("over_cap", "MB", "bytes beyond the caps of links, or of one of them", over_cap),
        Measure("dear_share", "", "a link's part of the bytes over all links that have a price or a cap", dear_share),
        Measure("tunnel_lost", "", "part of a tunnel's packets that its connection took and lost", tunnel_lost),
        Measure("tunnel_dropped", "", "part of a tunnel's packets that were dropped at its entry", tunnel_dropped),
        Measure("tunnel_late", "", "part of a tunnel's packets that left behind one sent later", tunnel_late),
        Measure("unfinished", "", "connections that did not do all that they were to do", unfinished),
        Measure(
            "exposure", "", "part of the bytes that the path sees which sees most; of a run with segments", exposure
        ),
        Measure(
            "exposure_cbc",
            "",
            "part of what that path sees which a known key opens in CBC mode, in blocks of 16 bytes",
            exposure_cbc,
        ),
        Measure("video_rate", "Mbps", "mean rate of the segments of a video that were shown", video_rate),
        Measure("video_startup", "s", "time from a video's first request to its first picture", video_startup),
        Measure("video_stalled", "s", "how long a video's picture stood still after it began", video_stalled),
        Measure("video_switches", "", "how often a video went on at another rate", video_switches),
        Measure("page_load", "s", "time until all objects of a page are there", page_load),
        Measure("first_object", "s", "time until the first object of a page is there", first_object),
        Measure("share_of", "", "a connection's part of the goodput of several", share_of),
    )
}
