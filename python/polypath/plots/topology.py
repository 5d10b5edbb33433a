"""The network: hosts, routers, switches and links with their rates and delays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import hypot
from typing import Any

import networkx as nx
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Bezier

from polypath.plots.base import PALETTE, title
from polypath.results import Recording

_SHAPES = {"host": ("s", PALETTE[0]), "router": ("o", PALETTE[1]), "switch": ("D", PALETTE[2])}
_Places = Mapping[int, tuple[float, float]]

#: Distance of neighbouring parallel links, in columns; inches from column to column.
_GAP = 0.25
_UNIT_INCHES = 2.6


def draw(recording: Recording) -> Figure | None:
    nodes = recording.plan.get("nodes", [])
    links = recording.plan.get("links", [])
    if not nodes or not links:
        return None
    figure = Figure(figsize=(8, 5), layout="constrained")
    figure.suptitle(title(recording), x=0.01, ha="left", fontweight="bold")
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set_aspect("equal")
    places = _layout(recording.plan)
    for group in _parallel(links).values():
        for rank, link in enumerate(group):
            _link(axes, places, link, _GAP * ((len(group) - 1) / 2 - rank))
    axes.autoscale_view()
    axes.margins(0.15)
    figure.set_size_inches(*_size(axes))
    for index, node in enumerate(nodes):
        shape, tint = _SHAPES[node["kind"]]
        x, y = places[index]
        axes.plot([x], [y], shape, markersize=20, color=tint, markeredgecolor="white", zorder=3)
        axes.annotate(
            node["name"], (x, y), xytext=(0, -20), textcoords="offset points", ha="center", va="top", fontweight="bold"
        )
    return figure


def _size(axes: Axes) -> tuple[float, float]:
    """Inches for the width and height of the data, so that labels of one size fit networks of any."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    return max(5.0, _UNIT_INCHES * (right - left)), max(2.5, _UNIT_INCHES * (top - bottom) + 1.0)


def _parallel(links: Sequence[Mapping[str, Any]]) -> dict[tuple[int, int], list[Mapping[str, Any]]]:
    """Links by the pair of nodes that they join."""
    groups: dict[tuple[int, int], list[Mapping[str, Any]]] = {}
    for link in links:
        a, b = link["a"]["node"], link["b"]["node"]
        groups.setdefault((min(a, b), max(a, b)), []).append(link)
    return groups


def _layout(plan: Mapping[str, Any]) -> _Places:
    """Columns by distance from the nodes that open connections, so that paths run from left to right."""
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(len(plan["nodes"])))
    graph.add_edges_from(_parallel(plan["links"]))
    sources = {application["client"] for application in plan.get("applications", [])} or {0}
    distance = nx.multi_source_dijkstra_path_length(graph, sources)
    beyond = max(distance.values()) + 1
    for node in graph:
        graph.nodes[node]["column"] = distance.get(node, beyond)
    places = nx.multipartite_layout(graph, subset_key="column")
    columns = sorted({float(x) for x, _ in places.values()})
    width = columns[1] - columns[0] if len(columns) > 1 else 1.0
    return {node: (float(x) / width, float(y) / width) for node, (x, y) in places.items()}


def _link(axes: Axes, places: _Places, link: Mapping[str, Any], bend: float) -> None:
    """A quadratic curve whose middle lies `bend` off the straight line, with the link's description there."""
    (ax, ay), (bx, by) = sorted((places[link["a"]["node"]], places[link["b"]["node"]]))
    length = hypot(bx - ax, by - ay) or 1.0
    across = (ay - by) / length * bend, (bx - ax) / length * bend
    middle = (ax + bx) / 2 + across[0], (ay + by) / 2 + across[1]
    control = (ax + bx) / 2 + 2 * across[0], (ay + by) / 2 + 2 * across[1]
    curve = Bezier([(ax, ay), control, (bx, by)], [Bezier.MOVETO, Bezier.CURVE3, Bezier.CURVE3])
    axes.add_patch(PathPatch(curve, facecolor="none", edgecolor="#555555", linewidth=1.4, zorder=1))
    box = {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "none"}
    axes.text(*middle, _describe(link), fontsize=8, ha="center", va="center", bbox=box, zorder=2)


def _describe(link: Mapping[str, Any]) -> str:
    forward, backward = link["forward"], link["backward"]
    texts = [_channel(forward)]
    if _channel(backward) != texts[0]:
        texts.append(f"back: {_channel(backward)}")
    return "\n".join([link["name"], *(text for text in texts if text)])


def _channel(channel: Mapping[str, Any]) -> str:
    parts = []
    if channel.get("rate_bps") is not None:
        parts.append(f"{channel['rate_bps'] / 1e6:g} Mbps")
    if channel.get("delay_ns"):
        parts.append(f"{channel['delay_ns'] / 1e6:g} ms")
    if channel.get("loss", {}).get("kind") == "random":
        parts.append(f"{channel['loss']['probability'] * 100:g} % loss")
    return ", ".join(parts)
