"""The network: hosts, routers, switches and links with their rates and delays."""

from __future__ import annotations

from collections.abc import Mapping
from math import hypot
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Bezier

from polypath.plots.base import title
from polypath.results import Recording
from polypath.results.palette import PALETTE
from polypath.results.places import Places, parallel, places

_SHAPES = {"host": ("s", PALETTE[0]), "router": ("o", PALETTE[1]), "switch": ("D", PALETTE[2])}

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
    where = places(recording.plan)
    for group in parallel(links).values():
        for rank, link in enumerate(group):
            _link(axes, where, link, _GAP * ((len(group) - 1) / 2 - rank))
    axes.autoscale_view()
    axes.margins(0.15)
    figure.set_size_inches(*_size(axes))
    for index, node in enumerate(nodes):
        shape, tint = _SHAPES[node["kind"]]
        x, y = where[index]
        axes.plot([x], [y], shape, markersize=20, color=tint, markeredgecolor="white", zorder=3)
        axes.annotate(
            node["name"], (x, y), xytext=(0, -20), textcoords="offset points", ha="center", va="top", fontweight="bold"
        )
    return figure


def _size(axes: Axes) -> tuple[float, float]:
    """Inches for the width and height of the data, so that labels of one size fit networks of any."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    return max(5.0, _UNIT_INCHES * (right - left)), max(2.5, _UNIT_INCHES * (top - bottom) + 1.0)


def _link(axes: Axes, where: Places, link: Mapping[str, Any], bend: float) -> None:
    """A quadratic curve whose middle lies `bend` off the straight line, with the link's description there."""
    (ax, ay), (bx, by) = sorted((where[link["a"]["node"]], where[link["b"]["node"]]))
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
