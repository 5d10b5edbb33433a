"""Goodput over time at every point of a sweep whose axes are names: a small panel each, rows by rows.

The first axis makes the rows; every combination of the others is a column. Of several seeds the first is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod

from matplotlib.figure import Figure

from polypath.plots.changes import mark
from polypath.plots.style import Look, colour, style
from polypath.results import Recording, metrics
from polypath.results.changes import changes
from polypath.results.points import SEED, Axis

MOST_PANELS = 240
_LEAST_INTERVALS = 10
_WIDTH, _HEIGHT = 1.5, 1.25

#: Of each place, its label on every axis but the seed, the recording there.
Places = Mapping[tuple[str, ...], Recording]


def drawn_axes(axes: Sequence[Axis]) -> list[Axis]:
    """The axes that a grid has; none where there is no grid to draw, for less than two of them are of names alone."""
    found = [axis for axis in axes if axis.name != SEED and len(axis.labels) > 1]
    named = len(found) >= 2 and all(axis.numbers is None for axis in found)
    return found if named and prod(len(axis.labels) for axis in found) <= MOST_PANELS else []


def draw_grid(name: str, axes: Sequence[Axis], places: Places, look: Look | None = None) -> Figure | None:
    """The grid of a sweep; None where it has no two axes of names.

    Rows and columns in which nothing was carried anywhere are left out, which the figure says.
    """
    drawn = drawn_axes(axes)
    if not drawn or not places:
        return None
    look = look or Look()
    with style(look):
        return _draw(name, drawn, places, look)


def _draw(name: str, drawn: Sequence[Axis], places: Places, look: Look) -> Figure:
    first, *rest = drawn
    rates = {place: _rates(recording) for place, recording in places.items()}
    full = [place for place, lines in rates.items() if any(any(heights) for _, heights in lines)]
    rows = [label for label in first.labels if not full or any(place[0] == label for place in full)]
    every = _combinations(rest)
    columns = [others for others in every if not full or any(place[1:] == others for place in full)]
    size = (1.0 + _WIDTH * len(columns), 1.0 + _HEIGHT * len(rows))
    figure = Figure(figsize=look.size or size, layout="constrained")
    small, smaller = 0.8 * look.points, 0.65 * look.points
    if look.titles:
        what = ", ".join(axis.name for axis in rest)
        text = f"{name}\ngoodput (Mbps) by {first.name} (rows), {what} (columns)"
        figure.suptitle(text, x=0.01, ha="left", fontsize=look.points)
    grid = figure.subplots(len(rows), len(columns), squeeze=False, sharex=True, sharey=True)
    for row, label in enumerate(rows):
        for column, others in enumerate(columns):
            panel = grid[row][column]
            panel.tick_params(labelsize=smaller)
            lines = rates.get((label, *others))
            if lines is None:
                panel.text(0.5, 0.5, "no result", transform=panel.transAxes, ha="center", va="center", fontsize=smaller)
                continue
            for number, (times, heights) in enumerate(lines):
                panel.fill_between(times, heights, step="pre", color=colour(number), linewidth=0)
            recording = places[(label, *others)]
            mark(panel, changes(recording), words=False)
        grid[row][0].set_ylabel(label, fontsize=small)
    for column, others in enumerate(columns):
        grid[0][column].set_title("\n".join(others), fontsize=small, loc="center")
        grid[-1][column].set_xlabel("s", fontsize=smaller)
    grid[0][0].set_ylim(bottom=0)
    grid[0][0].set_xlim(left=0)
    empty = [label for label in first.labels if label not in rows]
    empty += [", ".join(others) for others in every if others not in columns]
    if empty:
        figure.supxlabel(f"nothing carried, not drawn: {'; '.join(empty)}", fontsize=smaller, x=0.01, ha="left")
    return figure


def _rates(recording: Recording) -> list[tuple[list[float], list[float]]]:
    """Of each connection the edges of its intervals in s, and the rate before each in Mbps."""
    found = []
    for of in metrics.connections(recording):
        edges = range(of.start_ns, of.until_ns + 1, _interval_ns(of))
        rates = [metrics.goodput(recording, of, *pair) or 0.0 for pair in pairwise(edges)]
        if rates:
            times = [edge / metrics.SECOND for edge in edges]
            found.append((times, [rate / 1e6 for rate in (rates[0], *rates)]))
    return found


def _interval_ns(of: metrics.Connection) -> int:
    """A second, as iperf reports; of short connections a part of it."""
    return max(1, min(metrics.SECOND, (of.until_ns - of.start_ns) // _LEAST_INTERVALS))


def _combinations(axes: Sequence[Axis]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = [()]
    for axis in axes:
        found = [(*before, label) for before in found for label in axis.labels]
    return found
