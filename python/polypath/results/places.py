"""Where a plan's nodes are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Places = Mapping[int, tuple[float, float]]


def parallel(links: Sequence[Mapping[str, Any]]) -> dict[tuple[int, int], list[Mapping[str, Any]]]:
    """Links by the pair of nodes that they join."""
    groups: dict[tuple[int, int], list[Mapping[str, Any]]] = {}
    for link in links:
        a, b = link["a"]["node"], link["b"]["node"]
        groups.setdefault((min(a, b), max(a, b)), []).append(link)
    return groups


def places(plan: Mapping[str, Any]) -> Places:
    """Columns by distance from the nodes that open connections, so that paths run from left to right; by node, a column
    and the next are 1 apart, as are nodes of a column. 0, 0 is the middle of all nodes."""
    columns = _columns(plan)
    middle = sum(place * len(columns[column]) for place, column in enumerate(sorted(columns))) / len(plan["nodes"])
    return {
        node: (place - middle, row - (len(columns[column]) - 1) / 2)
        for place, column in enumerate(sorted(columns))
        for row, node in enumerate(columns[column])
    }


def distances(near: Sequence[Sequence[int]], sources: Iterable[int]) -> dict[int, int]:
    """Of each node that can be reached the number of links from the nearest source; `near` has its neighbours."""
    found = dict.fromkeys(sources, 0)
    reached = list(found)
    for node in reached:
        for other in near[node]:
            if other not in found:
                found[other] = found[node] + 1
                reached.append(other)
    return found


def _columns(plan: Mapping[str, Any]) -> dict[int, list[int]]:
    """Nodes by distance from those that open connections; last those that none of them reaches."""
    near: list[list[int]] = [[] for _ in plan["nodes"]]
    for a, b in parallel(plan["links"]):
        near[a].append(b)
        near[b].append(a)
    found = distances(near, {each["client"] for each in plan.get("applications", [])} or {0})
    beyond = max(found.values()) + 1
    columns: dict[int, list[int]] = {}
    for node in range(len(near)):
        columns.setdefault(found.get(node, beyond), []).append(node)
    return columns
