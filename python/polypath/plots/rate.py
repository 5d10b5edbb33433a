"""Rate of each subflow over time, stacked."""

from __future__ import annotations

from matplotlib.figure import Figure

from polypath.plots.base import colour, label, legend, panels, transfers
from polypath.results import Recording, metrics


def draw(recording: Recording) -> Figure | None:
    connections = [each for each in transfers(recording) if each.bytes]
    if not connections:
        return None
    figure, axes = panels(recording, len(connections))
    for each, connection in zip(axes, connections, strict=True):
        base: list[float] | None = None
        for index, subflow in enumerate(metrics.subflows(recording, connection)):
            ends, rates = metrics.subflow_series(recording, connection, subflow)
            times = [connection.start_ns / 1e9, *ends]
            bottom = base or [0.0] * len(rates)
            top = [below + rate for below, rate in zip(bottom, rates, strict=True)]
            each.fill_between(
                times,
                [bottom[0], *bottom] if bottom else [],
                [top[0], *top] if top else [],
                step="pre",
                color=colour(index),
                alpha=0.75,
                linewidth=0,
                label=label(subflow),
            )
            base = top
        ends, rates = metrics.goodput_series(recording, connection)
        if rates:
            times = [connection.start_ns / 1e9, *ends]
            each.step(times, [rates[0], *rates], where="pre", color="black", linewidth=1.0, label="goodput")
        each.set_title(connection.name, fontsize=10)
        each.set_ylabel("rate (Mbps)")
        each.set_ylim(bottom=0)
        legend(each)
    return figure
