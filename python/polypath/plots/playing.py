"""The buffer of a video player, and the rates that it requested (docs/video.md)."""

from __future__ import annotations

from matplotlib.axes import Axes

from polypath.plots.base import TIME, Canvas, Kind, chosen, drawing, seconds, span
from polypath.plots.changes import Events, finish
from polypath.plots.style import colour
from polypath.results import Recording, metrics, video


def player(
    recording: Recording,
    ax: Axes | None = None,
    *,
    connection: str | metrics.Connection | None = None,
    label: str | None = None,
    color: str | None = None,
    events: Events = True,
    legend: bool = True,
) -> Axes:
    """Video that is there to play (s) over time (s), with stalls as grey bands where one run is drawn.

    Raises MetricError where the run has several connections and `connection` names none of them.
    """
    with drawing(ax) as axes:
        of = chosen(recording, connection, shows)
        times, depths = video.buffered(recording, of)
        axes.plot(
            seconds(times), depths, color=Canvas.of(axes).run(label, color) or colour(0), linewidth=1.2, label=label
        )
        seen = video.playback(recording, of)
        for stall in () if label is not None or seen is None else seen.stalls:
            axes.axvspan(*seconds([stall.begin_ns, stall.end_ns]), color="#bbbbbb", linewidth=0)
        axes.set(xlabel=TIME, ylabel="video in hand (s)")
        span(axes, of)
        return finish(axes, recording, label, events, legend)


def quality(
    recording: Recording,
    ax: Axes | None = None,
    *,
    connection: str | metrics.Connection | None = None,
    label: str | None = None,
    color: str | None = None,
    events: Events = True,
    legend: bool = True,
) -> Axes:
    """Rate (Mbps) of each segment of a video over the time (s) at which it was asked for.

    Raises MetricError where the run has several connections and `connection` names none of them.
    """
    with drawing(ax) as axes:
        of = chosen(recording, connection, shows)
        times, rates = video.asked(recording, of)
        tint = Canvas.of(axes).run(label, color) or colour(0)
        axes.step(seconds(times), [rate / 1e6 for rate in rates], where="post", color=tint, linewidth=1.2, label=label)
        axes.set(xlabel=TIME, ylabel="asked for (Mbps)")
        span(axes, of)
        return finish(axes, recording, label, events, legend)


def shows(recording: Recording, of: metrics.Connection) -> bool:
    return video.playback(recording, of) is not None


_VIDEO = "an application of kind `video`"
KINDS = (
    Kind("player", "what a player of video has in hand", player, shows, needs=_VIDEO),
    Kind("quality", "the rates at which it asks for video", quality, shows, needs=_VIDEO),
)
