"""Where a plan's nodes are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    columns: dict[int, list[int]] = {}
    for node, column in enumerate(_distances(plan)):
        columns.setdefault(column, []).append(node)
    middle = sum(place * len(columns[column]) for place, column in enumerate(sorted(columns))) / len(plan["nodes"])
    return {
        node: (place - middle, row - (len(columns[column]) - 1) / 2)
        for place, column in enumerate(sorted(columns))
        for row, node in enumerate(columns[column])
    }


def _distances(plan: Mapping[str, Any]) -> list[int]:
    """Of each node the number of links from the nearest that opens a connection; beyond all where no link leads."""
    near: list[list[int]] = [[] for _ in plan["nodes"]]
    for a, b in parallel(plan["links"]):
        near[a].append(b)
        near[b].append(a)
    found = dict.fromkeys({each["client"] for each in plan.get("applications", [])} or {0}, 0)
    reached = list(found)
    for node in reached:
        for other in near[node]:
            if other not in found:
                found[other] = found[node] + 1
                reached.append(other)
    beyond = max(found.values()) + 1
    return [found.get(node, beyond) for node in range(len(near))]
