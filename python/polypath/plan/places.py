"""The places of a plan's nodes in a drawing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polypath.plan.data import PlanData
    from polypath.plan.types import Link


Places = Mapping[int, tuple[float, float]]


def parallel(links: Sequence[Link]) -> dict[tuple[int, int], list[Link]]:
    """Links by the pair of nodes that they join."""
    groups: dict[tuple[int, int], list[Link]] = {}
    for link in links:
        a, b = link["a"]["node"], link["b"]["node"]
        groups.setdefault((min(a, b), max(a, b)), []).append(link)
    return groups


def places(plan: PlanData) -> Places:
    """Places of nodes in columns by distance from the nodes that open connections, so that paths run from left to
    right.

    Neighbouring columns are 1 apart, as are nodes of a column. 0, 0 is the middle of all nodes. In a column, nodes are
    in the order of their neighbours in the column before, so that few links cross.
    """
    near = _neighbours(plan)
    columns = _columns(plan, near)
    middle = sum(place * len(column) for place, column in enumerate(columns)) / len(near)
    found: dict[int, tuple[float, float]] = {}
    for place, column in enumerate(columns):
        before = {node: [found[other][1] for other in near[node] if other in found] for node in column}
        for row, node in enumerate(sorted(column, key=lambda node: fmean(before[node] or [0.0]))):
            found[node] = place - middle, row - (len(column) - 1) / 2
    return found


def distances(near: Sequence[Sequence[int]], sources: Iterable[int]) -> dict[int, int]:
    """The number of links from the nearest source to each reachable node; `near` has the neighbours of each."""
    found = dict.fromkeys(sources, 0)
    reached = list(found)
    for node in reached:
        for other in near[node]:
            if other not in found:
                found[other] = found[node] + 1
                reached.append(other)
    return found


def _neighbours(plan: PlanData) -> list[list[int]]:
    near: list[list[int]] = [[] for _ in plan["nodes"]]
    for a, b in parallel(plan["links"]):
        near[a].append(b)
        near[b].append(a)
    return near


def _columns(plan: PlanData, near: Sequence[Sequence[int]]) -> list[list[int]]:
    """Nodes by distance from those that open connections; last those that none of them reaches."""
    found = distances(near, {each["client"] for each in plan.get("applications", [])} or {0})
    columns: dict[int, list[int]] = {}
    for node in range(len(near)):
        columns.setdefault(found.get(node, len(near)), []).append(node)
    return [columns[each] for each in sorted(columns)]
