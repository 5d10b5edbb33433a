"""What became of the packets that were routed into tunnels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from polypath.measures.measure import PART, Figure, Measure
from polypath.results import metrics, tunnels
from polypath.results.recording import Recording
from polypath.results.tunnels import Direction

_Count = Callable[[Direction], int]


def _part(name: str, title: str, definition: str, part: _Count, whole: _Count) -> Measure:
    def compute(recording: Recording, *, connection: str | None = None) -> Figure:
        found = [each for each in tunnels.of(recording) if connection is None or each.name == connection]
        if not found:
            which = "no tunnel" if connection is None else f"no tunnel '{connection}'"
            raise metrics.MetricError(f"measure '{name}': there is {which}")
        total = sum(map(whole, found))
        return sum(map(part, found)) / total if total else None

    return Measure(name, PART, "tunnel", title, definition, compute, source="docs/hybrid.md")


FIGURES: Final = (
    _part(
        "tunnel_lost",
        "lost in a tunnel",
        "part of a tunnel's packets that its connection took and lost",
        lambda each: each.lost,
        lambda each: each.entered,
    ),
    _part(
        "tunnel_dropped",
        "dropped at a tunnel's entry",
        "part of a tunnel's packets that were dropped at its entry",
        lambda each: each.entered - each.carried,
        lambda each: each.entered,
    ),
    _part(
        "tunnel_late",
        "late out of a tunnel",
        "part of a tunnel's packets that left behind one sent later",
        lambda each: each.late,
        lambda each: each.left,
    ),
)
