"""Goodput over time at every point of a sweep whose axes are names: a small panel each, rows by rows.

The first axis makes the rows; every combination of the others is a column. Of several seeds the first is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod
from pathlib import Path

from matplotlib.figure import Figure

from polypath.plots.base import colour, style
from polypath.results import Recording, metrics
from polypath.results.files import replacing
from polypath.results.points import SEED, Axis

_MOST_PANELS = 240
_LEAST_INTERVALS = 10
_WIDTH, _HEIGHT = 1.5, 1.25

#: Of each place, its label on every axis but the seed, the recording there.
Places = Mapping[tuple[str, ...], Recording]


def drawn_axes(axes: Sequence[Axis]) -> list[Axis]:
    """The axes that a grid has; none where there is no grid to draw, for less than two of them are of names alone."""
    found = [axis for axis in axes if axis.name != SEED and len(axis.labels) > 1]
    named = len(found) >= 2 and all(axis.numbers is None for axis in found)
    return found if named and prod(len(axis.labels) for axis in found) <= _MOST_PANELS else []


def save_grid(name: str, axes: Sequence[Axis], places: Places, directory: Path) -> Path | None:
    """Draws grid-goodput.png. Raises OutputError."""
    with style():
        figure = draw(name, axes, places)
        if figure is None:
            return None
        path = directory / "grid-goodput.png"
        with replacing(path) as temporary:
            figure.savefig(temporary, format="png", bbox_inches="tight", metadata={"Software": "polypath"})
    return path


def draw(name: str, axes: Sequence[Axis], places: Places) -> Figure | None:
    """None where the sweep has no two axes of names."""
    drawn = drawn_axes(axes)
    if not drawn or not places:
        return None
    first, *rest = drawn
    columns = _combinations(rest)
    size = (1.0 + _WIDTH * len(columns), 1.0 + _HEIGHT * len(first.labels))
    figure = Figure(figsize=size, layout="constrained")
    what = ", ".join(axis.name for axis in rest)
    figure.suptitle(f"{name}: goodput (Mbps) by {first.name} (rows), {what} (columns)", x=0.01, ha="left", fontsize=10)
    grid = figure.subplots(len(first.labels), len(columns), squeeze=False, sharex=True, sharey=True)
    for row, label in enumerate(first.labels):
        for column, others in enumerate(columns):
            panel = grid[row][column]
            panel.tick_params(labelsize=6)
            recording = places.get((label, *others))
            if recording is None:
                panel.text(0.5, 0.5, "no result", transform=panel.transAxes, ha="center", va="center", fontsize=6)
                continue
            for number, of in enumerate(metrics.connections(recording)):
                edges = range(of.start_ns, of.until_ns + 1, _interval_ns(of))
                rates = [metrics.goodput(recording, of, *pair) or 0.0 for pair in pairwise(edges)]
                if rates:
                    times = [edge / metrics.SECOND for edge in edges]
                    heights = [rate / 1e6 for rate in (rates[0], *rates)]
                    panel.fill_between(times, heights, step="pre", color=colour(number), linewidth=0)
        grid[row][0].set_ylabel(label, fontsize=8)
    for column, others in enumerate(columns):
        grid[0][column].set_title("\n".join(others), fontsize=7, loc="center")
        grid[-1][column].set_xlabel("s", fontsize=6)
    grid[0][0].set_ylim(bottom=0)
    grid[0][0].set_xlim(left=0)
    return figure


def _interval_ns(of: metrics.Connection) -> int:
    """A second, as iperf reports; of short connections a part of it."""
    return max(1, min(metrics.SECOND, (of.until_ns - of.start_ns) // _LEAST_INTERVALS))


def _combinations(axes: Sequence[Axis]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = [()]
    for axis in axes:
        found = [(*before, label) for before in found for label in axis.labels]
    return found
