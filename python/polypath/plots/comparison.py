"""Goodput over time of the same connections on several engines, one over the other."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from polypath.plots.base import colour, legend, panels, style, transfers
from polypath.results import Recording, metrics


def draw(recordings: Mapping[str, Recording]) -> Figure | None:
    """None where no connection carried anything."""
    first = next(iter(recordings.values()))
    names = [each.name for each in transfers(first) if each.bytes]
    if not names:
        return None
    with style():
        figure, axes = panels(first, len(names))
        for panel, name in zip(axes, names, strict=True):
            for index, (engine, recording) in enumerate(recordings.items()):
                for connection in transfers(recording):
                    ends, rates = metrics.goodput_series(recording, connection)
                    if connection.name != name or not rates:
                        continue
                    times = [connection.start_ns / 1e9, *ends]
                    panel.step(times, [rates[0], *rates], where="pre", color=colour(index), label=engine)
            panel.set_title(name, fontsize=10)
            panel.set_ylabel("goodput (Mbps)")
            panel.set_ylim(bottom=0)
            legend(panel)
    return figure
