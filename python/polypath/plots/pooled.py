"""Distributions over a sweep: the delays of all requests, or the completion times of all runs, a curve for each place.

Seeds, drawn networks and other axes of many values are pooled: each curve has all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Final

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from polypath.plots.base import put_legend
from polypath.plots.files import Picture
from polypath.plots.requests import DELAY, distribution, shows
from polypath.plots.style import Look, colour, style
from polypath.results import Recording, metrics
from polypath.results.axes import SEED, Axis
from polypath.statistics.points import FLOWS

#: Curves that are told apart by colour.
MOST_CURVES: Final = 8
_WIDTH, _HEIGHT = 7.0, 3.2

#: Of each place its label on every axis, the seed's included, and the recording there.
Places = Mapping[tuple[str, ...], Recording]


def drawn_axes(axes: Sequence[Axis]) -> list[Axis]:
    """All axes, for recordings of every seed; none where there are too many curves to tell apart."""
    curves = prod(len(axes[place].labels) for place in _told_apart(axes))
    return list(axes) if 1 < curves <= MOST_CURVES else []


def _told_apart(axes: Sequence[Axis]) -> list[int]:
    """The places of the axes whose values are curves of their own."""
    return [
        place
        for place, axis in enumerate(axes)
        if axis.name != SEED and axis.settings is None and 1 < len(axis.labels) <= MOST_CURVES
    ]


def draw_delays(name: str, axes: Sequence[Axis], places: Places, look: Look | None = None) -> Figure | None:
    """A panel for each application that asks, a curve for each place; None where nothing asks."""
    names = list(dict.fromkeys(of.name for run in places.values() for of in metrics.connections(run) if shows(run, of)))
    told = _told_apart(axes)

    def times(application: str, labels: tuple[str, ...]) -> _Sample:
        runs = [run for key, run in places.items() if tuple(key[place] for place in told) == labels]
        delays = [
            delay
            for run in runs
            for of in metrics.connections(run)
            if of.name == application and shows(run, of)
            for delay in metrics.delays(run, of)
        ]
        return len(runs), delays

    return _draw(name, axes, names, times, _DELAYS, look)


def draw_completions(name: str, axes: Sequence[Axis], points: pl.DataFrame, look: Look | None = None) -> Figure | None:
    """A panel for each connection that is to finish, a curve for each place; None where nothing finishes, or where
    there are too many curves to tell apart. `points` is the table of the sweep."""
    finished = pl.col("completion_s").is_not_null() | (pl.col("application") == FLOWS)
    names = points.filter(finished)["connection"].unique(maintain_order=True).to_list()
    told = [axes[place].name for place in _told_apart(axes)]

    def times(connection: str, labels: tuple[str, ...]) -> _Sample:
        chosen = (pl.col(axis) == label for axis, label in zip(told, labels, strict=True))
        rows = points.filter(pl.col("connection") == connection, *chosen)
        is_of_flows = (rows["application"] == FLOWS).any()
        own = rows["flow_times_s"].explode() if is_of_flows else rows["completion_s"]
        return len(rows), [None if each is None else round(each * metrics.SECOND) for each in own]

    words = dict.fromkeys(points.filter(pl.col("application") == FLOWS)["connection"].unique(), _FLOWS)
    return _draw(name, axes, names, times, _COMPLETIONS, look, words)


#: Of a place how many runs it has, and their times in ns; None: never.
_Sample = tuple[int, list[int | None]]


@dataclass(frozen=True)
class _Words:
    """How a figure names what it is of."""

    across: str
    #: What is counted, and what a legend says where no time is known.
    what: str
    none: str


_DELAYS: Final = _Words(DELAY, "requests", "none answered")
_COMPLETIONS: Final = _Words("completion time (ms)", "runs", "none finished")
_FLOWS: Final = _Words("completion time (ms)", "flows", "none finished")


def _draw(
    name: str,
    axes: Sequence[Axis],
    names: Sequence[str],
    times: Callable[[str, tuple[str, ...]], _Sample],
    words: _Words,
    look: Look | None,
    others: Mapping[str, _Words] | None = None,
) -> Figure | None:
    """`others`: the words of the panels by these names."""
    look = look or Look()
    if not names or not drawn_axes(axes):
        return None
    with style(look):
        figure = Picture(figsize=look.size or (_WIDTH, _HEIGHT * len(names)), layout="constrained")
        if look.titles:
            figure.suptitle(name, x=0.01, ha="left")
        for panel, each in zip(figure.subplots(len(names), squeeze=False)[:, 0], names, strict=True):
            _draw_panel(panel, each, axes, times, (others or {}).get(each, words))
            panel.set_title(each if len(names) > 1 else "")
            put_legend(panel, panel is figure.axes[0])
        return figure


def _draw_panel(
    panel: Axes,
    name: str,
    axes: Sequence[Axis],
    times: Callable[[str, tuple[str, ...]], _Sample],
    words: _Words,
) -> None:
    counts = set()
    curves: dict[metrics.Delays, list[str]] = {}
    for labels in product(*(axes[place].labels for place in _told_apart(axes))):
        runs, found = times(name, labels)
        if runs:
            counts.add((runs, len(found)))
            curves.setdefault(metrics.Delays.of(found), []).append(", ".join(labels))
    for number, (known, same) in enumerate(curves.items()):
        none = words.none if known.sent else "none sent"
        distribution(panel, known, color=colour(number), label=" = ".join(same), none=none)
    panel.set(xlabel=words.across, ylabel=f"part of the {words.what}")
    panel.set_ylim(0, 1.02)
    panel.set_title(_told(counts, words.what, axes), loc="right", fontsize="small", fontweight="normal")


def _told(counts: set[tuple[int, int]], what: str, axes: Sequence[Axis]) -> str:
    """How much each curve is of, and what is pooled in it."""
    runs, values = zip(*counts, strict=True)
    told = _told_apart(axes)
    pooled = [axis.name for place, axis in enumerate(axes) if place not in told and len(axis.labels) > 1]
    each = f"{_reach(values)} {what} each"
    if pooled == [SEED]:
        return f"{each}, of {_reach(runs)} seeds" if max(runs) > 1 else each
    if not pooled:
        return each
    over = " and ".join("seeds" if name == SEED else name for name in pooled)
    return f"{each}, over {over}" if what == "runs" else f"{each}, of {_reach(runs)} runs over {over}"


def _reach(numbers: Sequence[int]) -> str:
    return " to ".join(f"{each:,}" for each in dict.fromkeys((min(numbers), max(numbers))))
