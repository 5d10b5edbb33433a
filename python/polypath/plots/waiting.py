"""Head-of-line blocking: data waiting at the receiver over time, and its causes (docs/recording.md)."""

from __future__ import annotations

from typing import Final

from matplotlib.axes import Axes

from polypath.plots.base import TIME, Canvas, Kind, chosen, drawing, put_legend, seconds, span
from polypath.plots.changes import Events, finish
from polypath.plots.lanes import lanes
from polypath.plots.style import colour
from polypath.results import Recording, metrics

#: In the order of the documentation, each with a colour beyond those of two subflows.
CAUSES: Final = ("late", "retransmitted", "reinjected", "missing")
_WAITED: Final = "time something waited (s)"
#: Bars that can be read beside each other.
_MOST_ROWS: Final = 16


def waits(
    recording: Recording,
    ax: Axes | None = None,
    *,
    connection: str | metrics.Connection | None = None,
    label: str | None = None,
    color: str | None = None,
    events: Events = True,
    legend: bool = True,
) -> Axes:
    """Bytes that wait at the receiver (kB) over time (s).

    Waiting between subflows is an area, and waiting on each subflow a line; paths of QUIC have no such line. With
    `label`, only waiting between subflows is drawn, as one line for the run. Raises MetricError if the run has several
    connections and `connection` names none of them.
    """
    with drawing(ax) as axes:
        of = chosen(recording, connection, shows)
        whole, key = metrics.connection_samples(recording), (of.id, of.receiver)
        times = seconds(whole.column("time_ns", *key))
        waiting = [(each or 0) / 1e3 for each in whole.column("reassembly_bytes", *key)]
        tint = Canvas.of(axes).run(label, color)
        if label is not None:
            axes.step(times, waiting, where="post", color=tint, label=label)
        else:
            axes.fill_between(times, waiting, step="post", color="#bbbbbb", label=f"between {of.lane}s")
            # A path of QUIC holds nothing back.
            for lane in lanes(recording, of) if not of.over_quic else ():
                own, held = metrics.sampled(recording, of, lane.subflow, "out_of_order_bytes", of.receiver)
                axes.step(
                    seconds(own),
                    [(each or 0) / 1e3 for each in held],
                    where="post",
                    color=lane.colour,
                    linewidth=1.2,
                    label=f"within {lane.label}",
                )
        axes.set(xlabel=TIME, ylabel="waiting (kB)")
        span(axes, of)
        return finish(axes, recording, label, events, legend)


def causes(
    recording: Recording,
    ax: Axes | None = None,
    *,
    connection: str | metrics.Connection | None = None,
    legend: bool = True,
) -> Axes:
    """Waiting time (s) by level and subflow, as a bar with a segment per cause.

    The times of the two levels do not add up (docs/recording.md). If there are many bars, the longest are drawn. Raises
    MetricError if the run has several connections and `connection` names none of them.
    """
    with drawing(ax) as axes:
        of = chosen(recording, connection, shows)
        found = metrics.blocking(recording, of) or []
        names = {lane.subflow.id: lane.label for lane in lanes(recording, of)}
        waited: dict[tuple[metrics.Level, int | None], int] = {}
        for each in found:
            waited[each.level, each.subflow] = waited.get((each.level, each.subflow), 0) + each.time_ns
        longest = sorted(waited, key=lambda row: -waited[row])[:_MOST_ROWS]
        rows = [row for row in waited if row in longest]
        if len(rows) < len(waited):
            Canvas.of(axes).note(f"the longest {len(rows)} of {len(waited)}")
        before = [0.0] * len(rows)
        for index, cause in enumerate(CAUSES):
            times = {(each.level, each.subflow): each.time_ns / metrics.SECOND for each in found if each.cause == cause}
            lengths = [times.get(row, 0.0) for row in rows]
            if any(lengths):
                axes.barh(range(len(rows)), lengths, left=before, color=colour(index + 2), label=cause)
            before = [sum(pair) for pair in zip(before, lengths, strict=True)]
        axes.set_yticks(range(len(rows)), [_row(of, *row, names) for row in rows], fontsize="small")
        axes.invert_yaxis()
        axes.set(xlabel=_WAITED, ylabel="for what")
        axes.grid(visible=False, axis="y")
        put_legend(axes, legend)
        return axes


def _row(of: metrics.Connection, level: metrics.Level, subflow: int | None, names: dict[int, str]) -> str:
    if subflow is None:
        return f"between {of.lane}s, nothing came"
    where = names.get(subflow, f"{of.lane} {subflow}")
    return f"within {where}" if level == "subflow" else f"between {of.lane}s, came on {where}"


def shows(recording: Recording, of: metrics.Connection) -> bool:
    return of.id is not None and bool(metrics.blocking(recording, of))


KINDS = (
    Kind("waits", "what waits at the receiver", waits, shows, width=1.5),
    Kind("causes", "what it waited for", causes, shows, across=_WAITED, overlays=False),
)
