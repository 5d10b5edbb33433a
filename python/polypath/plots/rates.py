"""Rate of each subflow over time, stacked."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from polypath.plots.base import TIME, Canvas, Kind, chosen, drawing, span
from polypath.plots.changes import Events, finish
from polypath.plots.lanes import by_path, lanes
from polypath.plots.smoothing import Floats, interval_s, limit, rates, told
from polypath.results import MetricError, Recording, metrics


def rate(
    recording: Recording,
    ax: Axes | None = None,
    *,
    connection: str | metrics.Connection | None = None,
    label: str | None = None,
    color: str | None = None,
    smooth_s: float | None = None,
    events: Events = True,
    legend: bool = True,
) -> Axes:
    """Rate (Mbps) over time (s): data that arrived on each subflow, stacked by path, and the goodput as a line.

    With `label`, only the goodput is drawn, as one line for the run, so that several runs share axes. A rate is the
    mean over `smooth_s` seconds; None chooses by the RTT, and the figure shows the choice. The axis ends above the rate
    of arrival. Data that waited for reassembly is delivered at once; a mark shows where its rate is cut off.

    Raises MetricError if the run has several connections and `connection` names none of them.
    """
    with drawing(ax) as axes:
        of = chosen(recording, connection, shows)
        canvas, start = Canvas.of(axes), of.start_ns / metrics.SECOND
        width = interval_s(recording, of) if smooth_s is None else smooth_s
        if not width > 0:
            raise MetricError(f"a rate is taken over more than 0 s, not over {width:g} s")
        goodput = rates(*metrics.goodput_series(recording, of), start, width)
        parts = [
            (lane, rates(*metrics.subflow_series(recording, of, lane.subflow), start, width))
            for lane in by_path(lanes(recording, of))
        ]
        arrived = np.sum([own.mbps for _, own in parts], axis=0) if parts else np.zeros(0)
        tint = canvas.run(label, color)
        if label is None:
            below = np.zeros_like(goodput.mbps)
            for lane, own in parts:
                above = below + own.mbps
                axes.fill_between(
                    own.edges,
                    _stepped(below),
                    _stepped(above),
                    step="pre",
                    facecolor=lane.colour,
                    edgecolor="white",
                    linewidth=0.3 if len(parts) > 2 else 0.0,
                    label=lane.label,
                )
                below = above
        line = tint or "black"
        axes.step(
            goodput.edges,
            _stepped(goodput.mbps),
            where="pre",
            color=line,
            linewidth=1.0 if label is None else 1.3,
            label=label or "goodput",
        )
        span(axes, of)
        axes.set(xlabel=TIME, ylabel="rate (Mbps)" if label is None else "goodput (Mbps)")
        canvas.note(told(goodput))
        limit(axes, goodput, arrived, line, stacked=label is None)
        return finish(axes, recording, label, events, legend)


def _stepped(values: Floats) -> Floats:
    return np.concatenate([values[:1], values])


def shows(recording: Recording, of: metrics.Connection) -> bool:
    return of.id is not None and of.bytes > 0


KINDS = (Kind("rate", "rate of each subflow, stacked, and goodput", rate, shows),)
