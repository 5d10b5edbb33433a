"""The network: hosts, routers, switches and links with their rates and delays."""

from __future__ import annotations

from math import hypot
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Bezier

from polypath.plan.overview import is_large
from polypath.plan.places import Places, parallel, places
from polypath.plots import overview
from polypath.plots.base import Kind, drawing
from polypath.plots.style import colour, rounded
from polypath.results import MetricError, Recording, metrics

if TYPE_CHECKING:
    from polypath.plan.types import Channel, Link

_SHAPES = {"host": ("s", 0), "router": ("o", 1), "switch": ("D", 2)}

#: Distance of neighbouring parallel links, in columns; inches from column to column.
_GAP = 0.25
_UNIT_INCHES = 2.6
#: Room for what is written around nodes, in columns.
_BESIDE, _BELOW = 0.35, 0.25


def topology(recording: Recording, ax: Axes | None = None) -> Axes:
    """The network: hosts, routers and switches, and the links between them with their rates and delays at the start.

    A large one is drawn in bounded size, with words beside rows of nodes instead of at each node and link. The axes
    have no scale; a unit is a column, of a large network an inch. Raises MetricError where the plan has no links.
    """
    nodes, links = recording.plan.get("nodes", []), recording.plan.get("links", [])
    if not nodes or not links:
        raise MetricError(f"{recording.metadata.scenario} has no links")
    with drawing(ax) as axes:
        axes.set_axis_off()
        axes.set_aspect("equal")
        if is_large(recording.plan):
            overview.draw(axes, recording.plan, _SHAPES)
            return axes
        where = places(recording.plan)
        for group in parallel(links).values():
            for rank, link in enumerate(group):
                _link(axes, where, link, _bend(rank, len(group)))
        (left, right), (bottom, top) = _bounds(recording)
        axes.set_xlim(left, right)
        axes.set_ylim(bottom, top)
        for index, node in enumerate(nodes):
            shape, tint = _SHAPES[node["kind"]]
            x, y = where[index]
            axes.plot([x], [y], shape, markersize=20, color=colour(tint), markeredgecolor="white", zorder=3)
            axes.annotate(
                node["name"],
                (x, y),
                (0, -20),
                textcoords="offset points",
                ha="center",
                va="top",
                fontweight="bold",
                annotation_clip=False,
            )
        return axes


def size(recording: Recording) -> tuple[float, float]:
    """Inches for the width and height of the data, so that labels of one size fit networks of any."""
    if is_large(recording.plan):
        return overview.size(recording.plan)
    (left, right), (bottom, top) = _bounds(recording)
    return _UNIT_INCHES * (right - left), _UNIT_INCHES * (top - bottom)


def _bounds(recording: Recording) -> tuple[tuple[float, float], tuple[float, float]]:
    """What the network spans, in columns and rows, with room for names at its edges."""
    where = places(recording.plan)
    xs, ys = zip(*(where[index] for index in range(len(recording.plan["nodes"]))), strict=True)
    widest = max(len(group) for group in parallel(recording.plan["links"]).values())
    over = max(_BELOW, abs(_bend(0, widest)) + _BELOW / 2)
    return (min(xs) - _BESIDE, max(xs) + _BESIDE), (min(ys) - over, max(ys) + over)


def _bend(rank: int, count: int) -> float:
    return _GAP * ((count - 1) / 2 - rank)


def _link(axes: Axes, where: Places, link: Link, bend: float) -> None:
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


def _describe(link: Link) -> str:
    forward, backward = _channel(link["forward"]), _channel(link["backward"])
    shared = [part for part in forward if part in backward]
    forth, back = (", ".join(part for part in way if part not in shared) for way in (forward, backward))
    texts = [", ".join(shared), forth if back or not forth else f"forth: {forth}", f"back: {back}" if back else ""]
    return "\n".join([link["name"], *(text for text in texts if text)])


def _channel(channel: Channel) -> list[str]:
    parts = []
    rate, trace, loss = channel.get("rate_bps"), channel.get("trace"), channel.get("loss")
    if rate is not None:
        if trace is not None:
            parts.append(f"{trace['name']} (mean {rounded(rate / 1e6)} Mbps)")
        elif "wifi" in channel:
            parts.append(f"Wi-Fi up to {rounded(rate / 1e6)} Mbps")
        else:
            parts.append(f"{rate / 1e6:g} Mbps")
    if channel.get("delay_ns"):
        parts.append(f"{channel['delay_ns'] / 1e6:g} ms")
    if loss is not None and loss["kind"] == "random":
        parts.append(f"{loss['probability'] * 100:g} % loss")
    return parts


def shows(recording: Recording, of: metrics.Connection | None) -> bool:
    return bool(recording.plan.get("nodes")) and bool(recording.plan.get("links"))


KINDS = (Kind("topology", "the network", topology, shows, of="run", across="", overlays=False, fitting=size),)
