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
    and the next are 1 apart."""
    import networkx as nx

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(len(plan["nodes"])))
    graph.add_edges_from(parallel(plan["links"]))
    sources = {application["client"] for application in plan.get("applications", [])} or {0}
    distance = nx.multi_source_dijkstra_path_length(graph, sources)
    beyond = max(distance.values()) + 1
    for node in graph:
        graph.nodes[node]["column"] = distance.get(node, beyond)
    found = nx.multipartite_layout(graph, subset_key="column")
    columns = sorted({float(x) for x, _ in found.values()})
    width = columns[1] - columns[0] if len(columns) > 1 else 1.0
    return {node: (float(x) / width, float(y) / width) for node, (x, y) in found.items()}
