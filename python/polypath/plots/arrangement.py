"""The arrangement of panels in a figure.

What matplotlib's own layouts do, with few sizes measured instead of all: they draw a figure three times to place it.
Legends stand beside the panels or, in a narrow figure, above them; one that repeats that of the panel above is left
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import AutoLocator

#: Inches: below this width legends are above their panels.
_NARROW: Final = 5.0
#: In font sizes: around the figure, between title and panels, a line of text, from numbers to axes.
_EDGE: Final = 0.8
_LINE: Final = 1.35
_PAD: Final = 0.9
#: What an entry of a legend takes up, and columns of one above a panel.
_ENTRY: Final = 1.7
_MOST_COLUMNS: Final = 6
_LEAST_ENTRIES: Final = 5
#: How much smaller a label may get.
_SMALLEST: Final = 0.6
#: Room that a number has, across and up, and how many there are at most.
_ACROSS: Final = 4.5
_UP: Final = 2.4
_MOST_NUMBERS: Final = 6

Grid = Sequence[Sequence[Axes | None]]


def arrange(figure: Figure, grid: Grid, weights: Sequence[float], footnote: str = "", *, fitted: bool = False) -> None:
    """Places the panels of a grid, their labels and legends, and the figure's title.

    `weights` are the columns' shares of the width; a `fitted` panel takes all of the figure.
    """
    em = float(mpl.rcParams["font.size"]) / 72
    width, height = map(float, figure.get_size_inches())
    # texts are measured alone, without a picture of the figure's size
    renderer = RendererAgg(1, 1, figure.dpi)  # type: ignore[no-untyped-call]
    top = height - _EDGE * em
    if figure.get_suptitle():
        title = figure.suptitle(figure.get_suptitle(), x=_EDGE * em / width, y=top / height, ha="left", va="top")
        title.set_in_layout(False)
        _fit(title, title.get_window_extent(renderer).width, (width - 2 * _EDGE * em) * figure.dpi)
        top -= 1.6 * em
    bottom = _EDGE * em
    if footnote:
        figure.text(_EDGE * em / width, bottom / height, footnote, fontsize="small", va="bottom")
        bottom += _LINE * em
    rows = [[axes for axes in row if axes is not None] for row in grid]
    if fitted:
        rows[0][0].set_position((0, bottom / height, 1, (top - bottom) / height))
        return
    narrow = width < _NARROW
    speaking = _with_legends(grid)
    entries = int(height / (_ENTRY * em)) // max(1, len(speaking)) // (2 if narrow else 1)
    legends = {axes: _legend(axes, renderer, figure, width if narrow else None, entries) for axes in speaking}
    wide = 0.0 if narrow else max((wide for _, wide, _ in legends.values()), default=0.0)
    # half of the last number on an axis stands out
    beside = max(wide + 0.5 * em, 0.9 * em)
    below = [max(_below(axes, em) for axes in row) for row in rows]
    above = [max(_above(axes, em, legends, narrow) for axes in row) for row in rows]
    tall = (top - bottom - sum(below) - sum(above)) / len(rows)
    lefts = [1.5 * em] * len(weights)
    # first with a guess, since the numbers on an axis depend on its size
    for attempt in range(2):
        room = width - sum(lefts) - beside - _EDGE * em * (len(weights) + 1)
        wides = [room * weight / sum(weights) for weight in weights]
        y = top
        for number, row in enumerate(grid):
            y -= above[number] + tall
            x = 0.0
            for column, axes in enumerate(row):
                x += _EDGE * em + lefts[column]
                if axes is not None:
                    place = (x / width, y / height, max(wides[column], em) / width, max(tall, em) / height)
                    axes.set_position(place)
                x += wides[column]
            y -= below[number]
        if attempt == 0:
            _thin(rows, wides, tall, em)
            lefts = [
                max((_left(row[column], renderer, figure, em) for row in grid), default=0.0)
                for column in range(len(weights))
            ]
    for row in grid:
        for column, axes in enumerate(row):
            if axes is not None:
                wide = max(wides[column], em)
                # else matplotlib measures every number to find places for the labels
                axes.yaxis.set_label_coords(-(lefts[column] - 1.1 * em) / wide, 0.5)
                label = axes.yaxis.label
                _fit(label, label.get_window_extent(renderer).height, tall * figure.dpi)
                axes.xaxis.set_label_coords(0.5, -2.0 * em / max(tall, em))
                axes.set_title(axes.get_title(loc=mpl.rcParams["axes.titlelocation"]), y=1.0)
    taken: dict[float, float] = {}
    right = max(axes.get_position().x1 for row in rows for axes in row)
    for axes, (legend, _, deep) in legends.items():
        if narrow:
            legend.set_loc("lower left")
            legend.set_bbox_to_anchor((0.0, 1 + (0.4 * em + _titled(axes, em)) / max(tall, em)), axes.transAxes)
        else:
            upper = axes.get_position().y1
            legend.set_loc("upper left")
            corner = (right + 0.5 * em / width, upper - taken.get(upper, 0.0) / height)
            legend.set_bbox_to_anchor(corner, figure.transFigure)
            taken[upper] = taken.get(upper, 0.0) + deep + 0.6 * em


def _fit(label: Text, long: float, most: float) -> None:
    """Makes a text smaller that is longer than its place, as far as it can still be read."""
    if long > most:
        label.set_fontsize(float(label.get_fontsize()) * max(_SMALLEST, most / long))


def _thin(rows: Sequence[Sequence[Axes]], wides: Sequence[float], tall: float, em: float) -> None:
    """As many numbers on an axis as can be read at a glance; each takes time to draw."""
    for axes in (axes for row in rows for axes in row):
        for axis, length, room in ((axes.xaxis, min(wides), _ACROSS * em), (axes.yaxis, tall, _UP * em)):
            locator = axis.get_major_locator()
            if isinstance(locator, AutoLocator):
                locator.set_params(nbins=max(2, min(_MOST_NUMBERS, int(length / room))))


def _with_legends(grid: Grid) -> list[Axes]:
    """Panels whose legends say something that none before has said."""
    found: list[Axes] = []
    said: set[str] = set()
    for axes in (axes for row in grid for axes in row if axes is not None):
        labels = set(axes.get_legend_handles_labels()[1])
        if not labels <= said:
            found.append(axes)
            said |= labels
    return found


def _legend(
    axes: Axes, renderer: RendererAgg, figure: Figure, within: float | None, entries: int
) -> tuple[Legend, float, float]:
    """The legend with its width and height in inches; within a width in as many columns as it has room for."""
    handles, labels = _few(axes, max(_LEAST_ENTRIES, entries - 1))
    if within is None:
        made = axes.legend(handles, labels, loc="upper left", borderaxespad=0.0, borderpad=0.2)
        box = made.get_window_extent(renderer)
    else:
        for columns in range(min(len(handles), _MOST_COLUMNS), 0, -1):
            made = axes.legend(
                handles,
                labels,
                loc="upper left",
                ncols=columns,
                fontsize="small",
                handlelength=1.4,
                columnspacing=1.0,
                borderaxespad=0.0,
                borderpad=0.2,
            )
            box = made.get_window_extent(renderer)
            if box.width / figure.dpi < 0.82 * within or columns == 1:
                break
    made.set_in_layout(False)
    return made, box.width / figure.dpi, box.height / figure.dpi


def _few(axes: Axes, most: int) -> tuple[list[Artist], list[str]]:
    """What a legend has room for; of more entries the number."""
    handles, labels = axes.get_legend_handles_labels()
    if len(handles) <= most:
        return handles, labels
    more = Line2D([], [], linestyle="")
    left = len(handles) - most + 2
    # the last one is what all others are parts of: the goodput
    return [*handles[: most - 2], more, handles[-1]], [*labels[: most - 2], f"and {left - 1} more", labels[-1]]


def _titled(axes: Axes, em: float) -> float:
    """Inches that the titles take above the axes."""
    return 1.7 * em if any(axes.get_title(loc=loc) for loc in ("left", "center", "right")) else 0.0


def _above(axes: Axes, em: float, legends: dict[Axes, tuple[Legend, float, float]], narrow: bool) -> float:
    return 0.5 * em + _titled(axes, em) + (legends[axes][2] + 0.3 * em if narrow and axes in legends else 0.0)


def _below(axes: Axes, em: float) -> float:
    numbers = axes.xaxis.get_tick_params().get("labelbottom", True)
    return (2.0 * em if numbers else 0.6 * em) + (1.2 * em if axes.get_xlabel() else 0.0)


def _left(axes: Axes | None, renderer: RendererAgg, figure: Figure, em: float) -> float:
    """Inches that the numbers of a vertical axis and its label take."""
    if axes is None:
        return 0.0
    texts = [text for text in axes.get_yticklabels() if text.get_text()]
    numbers = max((text.get_window_extent(renderer).width for text in texts), default=0.0) / figure.dpi
    return numbers + _PAD * em + (1.5 * em if axes.get_ylabel() else 0.0)
