"""The capacity of a connection's paths by the plan, and closed forms over their rates and round-trip times.

Rates are those of the links at the start, headers included; times are propagation alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from polypath.plan.access import setting
from polypath.plan.routing import PathOfSubflow
from polypath.registry import traffic

if TYPE_CHECKING:
    from polypath.plan.data import PlanData
    from polypath.plan.types import Application


def rate_bps(plan: PlanData, paths: Sequence[PathOfSubflow], *, reverse: bool) -> float | None:
    """What the paths carry together, towards the server or (`reverse`) the client: the greatest flow over their links.

    None where some path has no link with a rate.
    """
    import networkx as nx

    graph = nx.DiGraph()
    for path in paths:
        place: Any = "sender"
        for hop in path.back if reverse else path.hops:
            rate = plan["links"][hop.link][hop.direction]["rate_bps"]
            entry, leaving = ("in", hop), ("out", hop)
            graph.add_edge(place, entry)
            graph.add_edge(entry, leaving, **({} if rate is None else {"capacity": rate}))
            place = leaving
        graph.add_edge(place, "receiver")
    if not graph:
        return None
    try:
        return float(nx.maximum_flow_value(graph, "sender", "receiver"))
    except nx.NetworkXUnbounded:
        return None


def rule_of_thumb_bytes(total_rate_bps: float, longest_rtt_s: float) -> float:
    """The receive buffer that keeps all paths busy while one of them repairs a loss.

    It is twice the sum of the rates times the longest round-trip time (RFC 6182 section 5.3; Barré, Paasch and
    Bonaventure, "MultiPath TCP: From Theory to Practice", 2011).
    """
    return 2 * total_rate_bps / 8 * longest_rtt_s


def window_limit_bps(window_bytes: float, rtt_s: float, total_rate_bps: float) -> float:
    """What one window each round-trip time comes to, as far as the links carry it (RFC 7323 section 1.1)."""
    return min(8 * window_bytes / rtt_s, total_rate_bps)


def capped_rate_bps(rates_bps: Sequence[float], cap: float) -> float:
    """The rate of disjoint paths together if each is limited to a share `cap` of the total, at least 1 over their
    number.

    The total T is the largest with T = sum of min(rate, cap T). Some of the slowest paths are full, and the others
    carry cap T each. Hence T = sum of the slowest / (1 - cap x number of the others).
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


def is_reverse(application: Application) -> bool:
    """Whether most bytes go from server to client."""
    work = application["work"]
    answers = work["kind"] == "request-response" and work.get("response_bytes", 0) > work.get("request_bytes", 0)
    return traffic(work["kind"]).direction == "fetched" or bool(setting(work, "reverse")) or answers
