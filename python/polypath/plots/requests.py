"""Delay of each request: over time, and distributed."""

from __future__ import annotations

from itertools import cycle
from math import inf, log10
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.ticker import LogLocator, NullFormatter

from polypath.plots.base import Canvas, Kind, drawing, named, put_legend
from polypath.plots.changes import Events, finish
from polypath.plots.style import colour, listed
from polypath.results import MetricError, Recording, metrics

DELAY: Final = "delay (ms)"
#: Greatest over median delay from which a distribution is drawn over a logarithmic axis.
_LOGARITHMIC: Final = 10.0
#: Greatest over least value from which only the decades of such an axis have numbers.
_DECADES_APART: Final = 2000.0
#: What the numbers of a decade need: 1, 2, 5.
_DECADE_INCHES: Final = 1.15
_MARKERS: Final = ("o", "s", "^", "D", "v")
_DASHES: Final = ("-", "--", ":", "-.")


def delays(
    recording: Recording,
    ax: Axes | None = None,
    *,
    connection: str | metrics.Connection | None = None,
    label: str | None = None,
    color: str | None = None,
    events: Events = True,
    legend: bool = True,
) -> Axes:
    """Delay (ms) of each request, or message, over the time of sending (s); crosses at 0 are those without an answer.

    All connections that ask, or the one that `connection` names. With `label` those of this run have one colour.
    """
    with drawing(ax) as axes:
        tint = Canvas.of(axes).run(label, color)
        for number, (of, mark) in enumerate(zip(_asking(recording, connection), cycle(_MARKERS))):
            own = tint or colour(number)
            sent, waited = _times(recording, of)
            known = [(at, delay) for at, delay in zip(sent, waited, strict=True) if delay is not None]
            lost = [at for at, delay in zip(sent, waited, strict=True) if delay is None]
            name = _name(recording, of, connection, label)
            if known:
                shape = mark if label is not None else _MARKERS[0]
                axes.plot(*zip(*known, strict=True), shape, markersize=3, color=own, label=name)
            if lost:
                what = "lost" if metrics.sends_messages(recording, of) else "unanswered"
                axes.scatter(
                    lost, [0.0] * len(lost), marker="x", color=own, label=f"{name}, {what}", clip_on=False, zorder=3
                )
        axes.set(xlabel="time of sending (s)", ylabel=DELAY)
        axes.set_ylim(bottom=0)
        return finish(axes, recording, label, events, legend)


def cdf(
    recording: Recording,
    ax: Axes | None = None,
    *,
    connection: str | metrics.Connection | None = None,
    label: str | None = None,
    color: str | None = None,
    legend: bool = True,
) -> Axes:
    """Cumulative distribution of the delays (ms): the part of all requests, or messages, that took no longer.

    A curve ends below 1 where some have no answer. All connections that ask, or the one that `connection` names. The
    axis is logarithmic where the longest delay is more than ten times the median. With `label` the curves of this
    run have one colour.
    """
    with drawing(ax) as axes:
        tint = Canvas.of(axes).run(label, color)
        what = "requests"
        for number, (of, dash) in enumerate(zip(_asking(recording, connection), cycle(_DASHES))):
            known = metrics.Delays.of(metrics.delays(recording, of))
            messages = metrics.sends_messages(recording, of)
            what = "messages" if messages else "requests"
            distribution(
                axes,
                known,
                color=tint or colour(number),
                linestyle=dash if label is not None else _DASHES[0],
                label=_name(recording, of, connection, label),
                none="none arrived" if messages else "none answered",
            )
        axes.set(xlabel=DELAY, ylabel=f"part of the {what}")
        axes.set_ylim(0, 1.02)
        put_legend(axes, legend)
        return axes


def distribution(axes: Axes, known: metrics.Delays, *, label: str, none: str, **look: Any) -> None:
    """A curve over ms that ends below 1 where some have no answer; where all have none, `none` in the legend."""
    if not known.answered:
        axes.plot([], [], label=f"{label}: {none}", **look)
        return
    ordered = [delay / 1e6 for delay in known.answered]
    shares = [(rank + 1) / known.sent for rank in range(len(ordered))]
    axes.step([ordered[0], *ordered], [0.0, *shares], where="post", label=label, **look)
    if ordered[0] > 0 and ordered[-1] > _LOGARITHMIC * ordered[len(ordered) // 2]:
        axes.set_xscale("log")
        label_decades(axes.xaxis)


def label_decades(axis: Axis) -> None:
    """Numbers on a logarithmic axis: 1, 2, 5 of each decade, or 1 alone where these would touch."""
    low, high = axis.get_data_interval()
    wide = high > _DECADES_APART * low > 0
    if isinstance(axis, XAxis) and 0 < low < high < inf:
        wide |= log10(high / low) * _DECADE_INCHES > axis.axes.bbox.width / axis.axes.figure.dpi
    axis.set_major_locator(LogLocator(subs=(1,) if wide else (1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def _asking(recording: Recording, given: str | metrics.Connection | None) -> list[metrics.Connection]:
    if isinstance(given, metrics.Connection):
        return [given]
    if given is not None:
        return [named(recording, given, shows)]
    found = [each for each in metrics.connections(recording) if shows(recording, each)]
    if not found:
        raise MetricError(f"{recording.metadata.scenario} has no requests")
    return found


def _name(
    recording: Recording, of: metrics.Connection, given: str | metrics.Connection | None, label: str | None
) -> str:
    if label is None:
        return listed(of.name)
    return f"{label}, {of.name}" if given is None and len(_asking(recording, None)) > 1 else label


def _times(recording: Recording, of: metrics.Connection) -> tuple[list[float], list[float | None]]:
    """The time of sending in s and the delay in ms of each request."""
    groups = recording.groups("requests", ("application",), ("index",))
    sent = [time / metrics.SECOND for time in groups.column("sent_ns", of.application)]
    return sent, [None if each is None else each / 1e6 for each in groups.column("delay_ns", of.application)]


def shows(recording: Recording, of: metrics.Connection | None) -> bool:
    if of is None:
        return not recording.table("requests").is_empty()
    return (of.application,) in recording.groups("requests", ("application",), ("index",))


_ANSWERS = "an application that waits for answers or sends messages"
KINDS = (
    Kind(
        "delays",
        "delay of each request",
        delays,
        shows,
        of="run",
        across="time of sending (s)",
        width=1.5,
        needs=_ANSWERS,
    ),
    Kind("cdf", "cumulative distribution of the delays", cdf, shows, of="run", across=DELAY, needs=_ANSWERS),
)
