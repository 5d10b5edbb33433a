"""Rate of each subflow over time, stacked."""

from __future__ import annotations

from matplotlib.figure import Figure

from polypath.plots.base import arrange, colour, label, legend, panels, transfers
from polypath.results import Recording, metrics


def draw(recording: Recording) -> Figure | None:
    connections = [each for each in transfers(recording) if each.bytes]
    if not connections:
        return None
    figure, axes = panels(recording, len(connections))
    for each, connection in zip(axes, connections, strict=True):
        base: list[float] | None = None
        for subflow in metrics.subflows(recording, connection):
            ends, rates = metrics.subflow_series(recording, connection, subflow)
            times = [connection.start_ns / 1e9, *ends]
            bottom = base or [0.0] * len(rates)
            top = [below + rate for below, rate in zip(bottom, rates, strict=True)]
            each.fill_between(
                times,
                [bottom[0], *bottom] if bottom else [],
                [top[0], *top] if top else [],
                step="pre",
                color=colour(subflow.id),
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
    axes[-1].set_xlim(min(each.start_ns for each in connections) / 1e9, max(map(_last_byte_s, connections)))
    arrange(figure, [[each] for each in axes])
    return figure


def _last_byte_s(connection: metrics.Connection) -> float:
    last = connection.until_ns if connection.last_byte_ns is None else connection.last_byte_ns
    return last / 1e9
