"""Scheduled changes of links and interfaces, marked on time axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from polypath.plots.base import Canvas, put_legend
from polypath.results import Recording
from polypath.results.changes import Change, changes

#: More than these have lines and no words.
_MOST_WORDS: Final = 6
#: More than these are ticks at the top, which hide no curve.
_MOST_LINES: Final = 24
_TICK: Final = 0.04
_TINT: Final = "#444444"
#: Part of the axis in which words stand on the other side of their line.
_NEAR_THE_EDGE: Final = 0.08


#: Whether scheduled events are marked: with their words, as lines alone, not at all.
Events = bool | Literal["lines"]


def mark(ax: Axes, found: Sequence[Change], *, words: bool = True, tint: str = _TINT) -> None:
    """A dashed line for each change, with its words along it; of many the line alone, of very many its top."""
    if not found:
        return
    ticks = len(found) > _MOST_LINES
    lines = LineCollection(
        [[(each.time_s, 1.0 - _TICK if ticks else 0.0), (each.time_s, 1.0)] for each in found],
        colors=tint,
        linestyles="solid" if ticks else "dashed",
        linewidths=0.9,
        transform=ax.get_xaxis_transform(),
        zorder=2.6,
        label="_changes",
    )
    ax.add_collection(lines, autolim=False)
    if not words:
        return
    if len(found) > _MOST_WORDS:
        Canvas.of(ax).note(f"{'ticks' if ticks else 'dashed'}: {len(found)} changes of links or interfaces")
        return
    left, right = ax.get_xlim()
    for each in found:
        last = right - each.time_s < _NEAR_THE_EDGE * (right - left)
        ax.annotate(
            each.text,
            (each.time_s, 1.0),
            (-2 if last else 2, -2),
            xycoords=ax.get_xaxis_transform(),
            textcoords="offset points",
            rotation=90,
            ha="right" if last else "left",
            va="top",
            fontsize="x-small",
            color=tint,
            annotation_clip=True,
            bbox={"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.75},
            zorder=2.7,
        ).set_in_layout(False)


def finish(ax: Axes, recording: Recording, label: str | None, events: Events, legend: bool) -> Axes:
    """What plots over time have in common: scheduled events, in the colour of a run with a label, and the legend."""
    if events:
        tint = _TINT if label is None else Canvas.of(ax).runs[label]
        mark(ax, changes(recording), words=events != "lines", tint=tint)
    put_legend(ax, legend)
    return ax
