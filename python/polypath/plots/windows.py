"""Congestion window and RTT of each subflow over time."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from polypath.plots.base import TIME, Canvas, Kind, chosen, drawing, seconds, span
from polypath.plots.changes import Events, finish
from polypath.plots.lanes import Lane, by_path, lanes
from polypath.results import Recording, metrics


def window(
    recording: Recording,
    ax: Axes | None = None,
    *,
    connection: str | metrics.Connection | None = None,
    label: str | None = None,
    color: str | None = None,
    events: Events = True,
    legend: bool = True,
) -> Axes:
    """Congestion window (packets) of the sender over time (s), a line for each subflow; of a capture, which tells no
    window, what is in flight.

    With `label` the lines of this run are shades of one colour, so that several runs share axes. Raises MetricError
    where the run has several connections and `connection` names none of them.
    """
    with drawing(ax) as axes:
        of = chosen(recording, connection, shows)
        known = recording.table("subflows")["cwnd_packets"].count() > 0
        column, what = ("cwnd_packets", "cwnd") if known else ("in_flight_packets", "in flight")
        for lane, name in _named(axes, recording, of, label, color):
            times, windows = _samples(recording, of, lane.subflow, column)
            axes.step(times, windows, where="post", color=lane.colour, label=name)
        axes.set(xlabel=TIME, ylabel=f"{what} (packets)")
        span(axes, of)
        return finish(axes, recording, label, events, legend)


def rtt(
    recording: Recording,
    ax: Axes | None = None,
    *,
    connection: str | metrics.Connection | None = None,
    label: str | None = None,
    color: str | None = None,
    events: Events = True,
    legend: bool = True,
) -> Axes:
    """Smoothed round-trip time (ms) at the sender over time (s), a line for each subflow from its first measurement on.

    With `label` the lines of this run are shades of one colour, so that several runs share axes. Raises MetricError
    where the run has several connections and `connection` names none of them.
    """
    with drawing(ax) as axes:
        of = chosen(recording, connection, shows)
        for lane, name in _named(axes, recording, of, label, color):
            times, delays = _samples(recording, of, lane.subflow, "srtt_us")
            known = [(time, delay / 1e3) for time, delay in zip(times, delays, strict=True) if delay]
            axes.plot(*(zip(*known, strict=True) if known else ((), ())), color=lane.colour, label=name)
        axes.set(xlabel=TIME, ylabel="smoothed RTT (ms)")
        span(axes, of)
        return finish(axes, recording, label, events, legend)


def _named(
    axes: Axes, recording: Recording, of: metrics.Connection, label: str | None, color: str | None
) -> list[tuple[Lane, str]]:
    """The subflows with their names in the legend: of an overlay the run's, at its first subflow."""
    found = by_path(lanes(recording, of, Canvas.of(axes).run(label, color)))
    if label is None:
        return [(lane, lane.label) for lane in found]
    return [(lane, f"{label}, {lane.label}" if len(found) > 1 else label) for lane in found]


def _samples(
    recording: Recording, of: metrics.Connection, subflow: metrics.Subflow, column: str
) -> tuple[Sequence[float], Sequence[float]]:
    """While the subflow lasts; the last sample holds until its end."""
    times, values = metrics.sampled(recording, of, subflow, column)
    end = metrics.lasts_until_ns(of, subflow)
    if times and times[-1] < end:
        times, values = [*times, end], [*values, values[-1]]
    return seconds(times), values


def shows(recording: Recording, of: metrics.Connection) -> bool:
    samples = metrics.subflow_samples(recording)
    return any((of.id, subflow.id, of.sender) in samples for subflow in metrics.subflows(recording, of))


KINDS = (
    Kind("window", "congestion window of each subflow", window, shows),
    Kind("rtt", "smoothed RTT of each subflow", rtt, shows),
)
