"""What a connection's paths are by the plan: their links, rates and round-trip times, and closed forms over them.

Rates are those of the links at the start, headers included; times are propagation alone. A path goes as the simulator
routes it: out of the subflow's interface, then by static routes, else by fewest hops and least delay. Where the plan's
routing chooses among equal paths flow by flow, which one a flow takes is not known here.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Literal

from polypath.results.errors import MetricError
from polypath.results.metrics import SECOND

Direction = Literal["forward", "backward"]

_SETTLED = "shortest-path"


@dataclass(frozen=True)
class Hop:
    """A link in the direction from client to server."""

    link: int
    direction: Direction


@dataclass(frozen=True)
class PathOfSubflow:
    """The way of one subflow, from client to server."""

    hops: tuple[Hop, ...]
    rtt_s: float


def of_connection(
    plan: Mapping[str, Any], application: Mapping[str, Any], ends: Sequence[tuple[str, str]]
) -> list[PathOfSubflow]:
    """The paths of subflows, each given by its interface at the client and its destination's address.

    A subflow that the plan has no way for is left out. None at all where some flow has a choice of paths, or goes by a
    host that forwards.
    """
    try:
        found = [way(plan, int(application["client"]), interface, address) for interface, address in ends]
    except Undetermined:
        return []
    return [path for path in found if path is not None]


def rate_bps(plan: Mapping[str, Any], paths: Sequence[PathOfSubflow], *, reverse: bool) -> float | None:
    """What the paths carry together, towards the server or (`reverse`) the client: the greatest flow over their links.

    None where some path has no link with a rate.
    """
    import networkx as nx

    graph = nx.DiGraph()
    for path in paths:
        place: Any = "client"
        for number, hop in enumerate(path.hops):
            last = number == len(path.hops) - 1
            direction = hop.direction if not reverse else "backward" if hop.direction == "forward" else "forward"
            rate = plan["links"][hop.link][direction]["rate_bps"]
            entry, leaving = ("in", hop), ("out", hop)
            graph.add_edge(place, entry)
            graph.add_edge(entry, leaving, **({} if rate is None else {"capacity": rate}))
            place = "server" if last else leaving
            if last:
                graph.add_edge(leaving, place)
    if not graph:
        return None
    try:
        return float(nx.maximum_flow_value(graph, "client", "server"))
    except nx.NetworkXUnbounded:
        return None


def rule_of_thumb_bytes(total_rate_bps: float, longest_rtt_s: float) -> float:
    """The receive buffer that keeps all paths busy while one of them repairs a loss: twice the sum of the rates times
    the longest round-trip time (RFC 6182 section 5.3; Barré, Paasch and Bonaventure, "MultiPath TCP: From Theory to
    Practice", 2011)."""
    return 2 * total_rate_bps / 8 * longest_rtt_s


def window_limit_bps(window_bytes: float, rtt_s: float, total_rate_bps: float) -> float:
    """What one window each round-trip time comes to, as far as the links carry it (RFC 7323 section 1.1)."""
    return min(8 * window_bytes / rtt_s, total_rate_bps)


def capped_rate_bps(rates_bps: Sequence[float], cap: float) -> float:
    """What disjoint paths carry together if each is kept to a share `cap` of the total, at least 1 over their number.

    The total T is the largest with T = sum of min(rate, cap T): some of the slowest paths are full, the others carry
    cap T each, so that T = sum of the slowest / (1 - cap x number of the others).
    """
    slowest = sorted(rates_bps)
    for others in range(len(slowest)):
        full, left = slowest[: len(slowest) - others], 1 - cap * others
        if left <= 0:
            break
        total = sum(full) / left
        if full[-1] <= cap * total * (1 + 1e-12):
            return total
    return slowest[0] / cap


def is_reverse(application: Mapping[str, Any]) -> bool:
    """Whether most bytes go from server to client."""
    work = application["work"]
    return work["kind"] == "fetch" or bool(work.get("reverse"))


class Undetermined(MetricError):
    """Which of several equal paths is taken is up to the run."""

    def __init__(self, message: str = "which of several paths is taken is up to the run") -> None:
        super().__init__(message)


@dataclass(frozen=True)
class _Edge:
    """A hop, the node and interface that it leaves, and those that it reaches."""

    hop: Hop
    leaves: tuple[int, int]
    reaches: tuple[int, int]
    delay_ns: int


def _edges(plan: Mapping[str, Any]) -> list[_Edge]:
    found = []
    for number, link in enumerate(plan["links"]):
        a, b = ((link[end]["node"], link[end]["interface"]) for end in ("a", "b"))
        found.append(_Edge(Hop(number, "forward"), a, b, link["forward"]["delay_ns"]))
        found.append(_Edge(Hop(number, "backward"), b, a, link["backward"]["delay_ns"]))
    return found


def way(plan: Mapping[str, Any], client: int, interface: str, address: str) -> PathOfSubflow | None:
    """From a host's interface to the link of the interface that owns the address; None where none leads there.

    Raises Undetermined where the run chooses among several, and where a host forwards: its ways are not followed here.
    """
    target = owner(plan, address)
    leaving = next(
        (number for number, each in enumerate(plan["nodes"][client]["interfaces"]) if each["name"] == interface), None
    )
    if target is None or leaving is None:
        return None
    version = ipaddress.ip_address(address).version
    owned = plan["nodes"][client]["interfaces"][leaving]["addresses"]
    source = next((each for each in owned if ipaddress.ip_address(each).version == version), None)
    edges = _edges(plan)
    last = next((edge for edge in edges if edge.reaches == target), None)
    own = [edge for edge in edges if edge.leaves == (client, leaving)]  # of a capture, one for each peer's address
    edge = next((edge for edge in own if edge.reaches == target), own[0] if own else None)
    if source is None or last is None:
        return None
    hops, passed = [], set()
    while edge is not None and edge.leaves[0] not in passed:
        hops.append(edge.hop)
        passed.add(edge.leaves[0])
        if edge.reaches == target:
            delay = sum(plan["links"][hop.link][way]["delay_ns"] for hop in hops for way in ("forward", "backward"))
            return PathOfSubflow(tuple(hops), delay / SECOND)
        here = edge.reaches[0]
        if plan["nodes"][here]["kind"] == "host":
            if plan["nodes"][here].get("forwards"):
                raise Undetermined
            return None
        out = _static(plan, here, source, address)
        if out is not None:
            edge = next((each for each in edges if each.leaves == (here, out)), None)
        else:
            if _detours(plan):
                raise Undetermined
            settled = plan.get("routing", _SETTLED) == _SETTLED and plan.get("controller") is None
            if not settled and _choices(plan, edges, here, last.leaves[0]) > 1:
                raise Undetermined
            edge = last if here == last.leaves[0] else _towards(plan, edges, here, last.leaves[0])
    return None


def _detours(plan: Mapping[str, Any]) -> bool:
    """Whether a controller or a spanning tree may have longer paths than there are."""
    if plan.get("bridging") is not None:
        return True
    controller = plan.get("controller")
    if controller is not None and controller.get("app") is not None:
        return True
    return controller is not None and controller["routing"]["name"] in ("spanning-tree", "spread")


def owner(plan: Mapping[str, Any], address: str) -> tuple[int, int] | None:
    """The node and the interface that have an address."""
    for node, each in enumerate(plan["nodes"]):
        for number, interface in enumerate(each["interfaces"]):
            if address in interface.get("addresses", ()):
                return node, number
    return None


def _static(plan: Mapping[str, Any], node: int, source: str, destination: str) -> int | None:
    """The interface of the static route that counts: that of the longest source prefix, then destination prefix."""
    best: tuple[int, int] = (-2, -2)
    chosen = None
    for route in plan.get("routes", ()):
        if route["node"] != node or not _within(destination, route["destination"]):
            continue
        if route["source"] is not None and not _within(source, route["source"]):
            continue
        rank = (-1 if route["source"] is None else route["source"]["length"], route["destination"]["length"])
        if rank > best:
            best, chosen = rank, int(route["interface"])
    return chosen


def _within(address: str, prefix: Mapping[str, Any]) -> bool:
    return ipaddress.ip_address(address) in ipaddress.ip_network(f"{prefix['address']}/{prefix['length']}")


def _choices(plan: Mapping[str, Any], edges: Sequence[_Edge], node: int, gate: int) -> int:
    """How many of a node's links lead on along a way of fewest hops over no host."""
    leaving: dict[int, list[int]] = {}
    for edge in edges:
        if all(plan["nodes"][end]["kind"] != "host" for end in (edge.leaves[0], edge.reaches[0])):
            leaving.setdefault(edge.leaves[0], []).append(edge.reaches[0])
    hops, frontier = {gate: 0}, [gate]
    for here in frontier:
        for there in leaving.get(here, ()):
            if there not in hops:
                hops[there] = hops[here] + 1
                frontier.append(there)
    return sum(hops.get(there, hops.get(node, 0)) < hops.get(node, 0) for there in leaving.get(node, ()))


def _towards(plan: Mapping[str, Any], edges: Sequence[_Edge], node: int, gate: int) -> _Edge | None:
    """The first edge of a way of fewest hops and least delay that leads over no host."""
    queue: list[tuple[int, int, int, int, _Edge | None]] = [(0, 0, 0, node, None)]
    done: set[int] = set()
    pushed = 0
    while queue:
        hops, delay, _, here, first = heappop(queue)
        if here == gate:
            return first
        if here in done or plan["nodes"][here]["kind"] == "host":
            continue
        done.add(here)
        for edge in edges:
            if edge.leaves[0] == here:
                pushed += 1
                heappush(queue, (hops + 1, delay + edge.delay_ns, pushed, edge.reaches[0], first or edge))
    return None
