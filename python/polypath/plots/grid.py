"""Goodput over time at every point of a sweep whose axes are names: a small panel each, row by row.

The first axis gives the rows, and each combination of the others a column. The first seed is drawn, and connections are
stacked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from polypath.plots.changes import mark
from polypath.plots.style import Look, colour, listed, style
from polypath.results import Recording, metrics
from polypath.results.axes import SEED, Axis
from polypath.results.changes import changes

MOST_PANELS = 240
_LEAST_INTERVALS = 10
#: Connections that are told apart by colour.
_MOST_NAMES = 8
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
    names = list(dict.fromkeys(name for own in rates.values() for name, mbps in own.mbps.items() if any(mbps)))
    full = [place for place, own in rates.items() if any(map(any, own.mbps.values()))]
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
            own = rates.get((label, *others))
            if own is None:
                panel.text(0.5, 0.5, "no result", transform=panel.transAxes, ha="center", va="center", fontsize=smaller)
                continue
            below = [0.0] * (len(own.edges) - 1)
            for number, name in enumerate(names):
                if name in own.mbps:
                    above = [sum(pair) for pair in zip(below, own.mbps[name], strict=True)]
                    ends = [[heights[0], *heights] for heights in (below, above)]
                    panel.fill_between(own.edges, *ends, step="pre", color=colour(number), linewidth=0)
                    below = above
            recording = places[(label, *others)]
            mark(panel, changes(recording), words=False)
        grid[row][0].set_ylabel(label, fontsize=small)
    for column, others in enumerate(columns):
        grid[0][column].set_title("\n".join(others), fontsize=small, loc="center")
        grid[-1][column].set_xlabel("s", fontsize=smaller)
    if 1 < len(names) <= _MOST_NAMES:
        keys = [Patch(color=colour(number), label=listed(name)) for number, name in enumerate(names)]
        figure.legend(handles=keys, loc="outside lower left", ncols=4, fontsize=small)
    grid[0][0].set_ylim(bottom=0)
    grid[0][0].set_xlim(left=0)
    empty = [label for label in first.labels if label not in rows]
    empty += [", ".join(others) for others in every if others not in columns]
    if empty:
        figure.supxlabel(f"nothing carried, not drawn: {'; '.join(empty)}", fontsize=smaller, x=0.01, ha="left")
    return figure


@dataclass(frozen=True)
class _Rates:
    """Mbps of each connection by its name, before each of `edges` in s."""

    edges: Sequence[float]
    mbps: Mapping[str, Sequence[float]]


def _rates(recording: Recording) -> _Rates:
    """Over a second, as iperf reports; of short runs over a part of it. A short rest belongs to the last interval."""
    connections = metrics.connections(recording)
    start, until = (
        min((of.start_ns for of in connections), default=0),
        max((of.until_ns for of in connections), default=0),
    )
    step = max(1, min(metrics.SECOND, (until - start) // _LEAST_INTERVALS))
    edges = [*range(start, until - step // 2, step), until]
    found: dict[str, list[float]] = {}
    for of in connections:
        own = [(metrics.goodput(recording, of, *pair) or 0.0) / 1e6 for pair in pairwise(edges)]
        before = found.get(of.name, [0.0] * len(own))
        found[of.name] = [sum(pair) for pair in zip(before, own, strict=True)]
    return _Rates([edge / metrics.SECOND for edge in edges], found)


def _combinations(axes: Sequence[Axis]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = [()]
    for axis in axes:
        found = [(*before, label) for before in found for label in axis.labels]
    return found
