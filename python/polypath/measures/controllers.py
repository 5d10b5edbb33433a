"""Figures of a controller and of its switches."""

from __future__ import annotations

from collections.abc import Callable

from polypath.measures.measure import MILLISECONDS, NUMBER, Figure, Measure, Unit
from polypath.results import control, metrics
from polypath.results.control import Control
from polypath.results.recording import Recording


def _measure(name: str, unit: Unit, title: str, definition: str, of: Callable[[Control], Figure]) -> Measure:
    def compute(recording: Recording) -> Figure:
        found = control.of(recording)
        if found is None:
            raise metrics.MetricError(f"measure '{name}': the run has no controller")
        return of(found)

    return Measure(name, unit, "controller", title, definition, compute, source="OpenFlow 1.3")


FIGURES = (
    _measure(
        "packet_ins",
        NUMBER,
        "packets to the controller",
        "packets that switches sent to their controller",
        lambda found: float(found.packet_ins),
    ),
    _measure(
        "flow_mods",
        NUMBER,
        "changes of flow tables",
        "changes of flow tables by the controller",
        lambda found: float(found.flow_mods),
    ),
    _measure(
        "table_entries",
        NUMBER,
        "entries of tables",
        "the most entries that any switch's tables had at once",
        lambda found: float(found.most_entries),
    ),
    _measure(
        "table_drops",
        NUMBER,
        "packets dropped by tables",
        "packets that switches dropped by their tables",
        lambda found: float(found.dropped_packets),
    ),
    _measure(
        "setup_mean",
        MILLISECONDS,
        "mean time of a flow's setup",
        "mean time from a flow's first packet at a switch that did not know it until that packet was sent on",
        lambda found: found.mean_delay_ns,
    ),
    _measure(
        "setup_max",
        MILLISECONDS,
        "longest time of a flow's setup",
        "longest time from a flow's first packet at a switch that did not know it until that packet was sent on",
        lambda found: found.delays.quantile(1.0),
    ),
)
