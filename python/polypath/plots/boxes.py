"""The distribution of a figure over the places of sweeps, as boxes: a measure, or the experimental aggregation benefit.

A box reaches from the first to the third quartile, with a line at the median. Its whiskers end at the last value within
1.5 times this range (Tukey), and each value beyond is a dot. The axis ends at the whiskers, and values outside of it
are counted on the figure. A run that did not finish lies beyond every axis, and so do quartiles that depend on one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl
from matplotlib.axes import Axes
from matplotlib.cbook import boxplot_stats
from matplotlib.figure import Figure

from polypath.measures import MEASURES
from polypath.plots.curve import Swept, slant
from polypath.plots.files import Picture
from polypath.plots.requests import label_decades
from polypath.plots.style import Look, colour, rounded, style
from polypath.results.axes import SEED, Axis
from polypath.results.names import told_apart
from polypath.statistics import benefit

#: Labels of an axis that has a box for each; over one that has more, values are put together.
MOST_BOXES: Final = 8

_MOST_ROWS: Final = 12
_COLUMN, _ROW = 2.1, 2.5
_NAMES: Final[Mapping[str, str]] = {"mpquic": "Multipath QUIC", "mptcp": "Multipath TCP"}
_ORDERS: Final = {True: "better\npath first", False: "worse\npath first"}
_BENEFIT: Final = "aggregation benefit"
#: Greatest over least value from which an axis is logarithmic.
_LOGARITHMIC = 50
#: Stands for infinity where quantiles are interpolated: what depends on it is far beyond any figure.
_INFINITY: Final = 1e300
#: Part of the whiskers' reach that the axis has beyond them with dots, and with the counts of what is cut off.
_MARGIN, _COUNTS = 0.04, 0.16
#: Characters beside each other from which names are slanted.
_LONG_NAMES: Final = 20


@dataclass(frozen=True)
class _Panel:
    """The values of each box, by its name; infinite where a run did not finish."""

    boxes: Mapping[str, Sequence[float]]
    title: str = ""


def draw_benefits(sweeps: Sequence[Swept], look: Look | None = None) -> Figure | None:
    """A column for each sweep and a row for each transport over several paths; None where none stands beside its own
    over one path (`polypath.statistics.benefit.of_sweep`)."""
    found = {
        name: benefit.of_sweep(sweep.points, sweep.axes)
        for name, sweep in zip(told_apart([sweep.name for sweep in sweeps]), sweeps, strict=True)
    }
    transports = [name for name in _NAMES if any(each.transport == name for own in found.values() for each in own)]
    grid = [[_of_transport(own, name) for own in found.values()] for name in transports]
    if not grid:
        return None
    heads = list(found) if len(found) > 1 else [""]
    figure = _draw(
        sweeps, grid, heads, [_NAMES[name] for name in transports], look or Look(), _BENEFIT, share_above=0.0
    )
    for panel in figure.axes:
        for value, name in ((0.0, "the best path alone"), (1.0, "the sum of the paths")):
            panel.axhline(value, color="#555555", linewidth=0.9, linestyle="--" if value else "-", label=name, zorder=1)
    with style(look):
        figure.legend(
            *figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize="small"
        )
    return figure


def _of_transport(found: Iterable[benefit.Benefit], transport: str) -> _Panel:
    own = [each for each in found if each.transport == transport]
    return _Panel({name: [each.value for each in own if each.best_first == order] for order, name in _ORDERS.items()})


def draw_measure(sweeps: Sequence[Swept], measure: str, look: Look | None = None) -> Figure | None:
    """A row per connection of each sweep. With two axes of few labels, each label of the first is a column, and each
    label of the others a box. None if a measure has no values, or no axis has enough labels to combine.
    """
    names = told_apart([sweep.name for sweep in sweeps])
    grid = {
        (name, str(connection)): _of_measure(rows, sweep.axes, measure)
        for name, sweep in zip(names, sweeps, strict=True)
        for (connection,), rows in sweep.points.group_by("connection", maintain_order=True)
    }
    grid = {name: row for name, row in grid.items() if any(values for panel in row for values in panel.boxes.values())}
    if not grid or len({tuple(panel.title for panel in row) for row in grid.values()}) > 1:
        return None
    heads = [panel.title for panel in next(iter(grid.values()))]
    shown, sides = list(grid.values())[:_MOST_ROWS], _sides(list(grid))[:_MOST_ROWS]
    about = f"{MEASURES[measure].title} ({MEASURES[measure].unit.data})"
    figure = _draw(sweeps, shown, heads, sides, look or Look(), about, one_scale=True)
    if len(grid) > len(shown):
        figure.text(0.01, 0.0, f"{len(shown)} of {len(grid)} rows", fontsize="small")
    return figure


def _sides(rows: Sequence[tuple[str, str]]) -> list[str]:
    """What tells the rows apart, of the names of their sweeps and connections."""
    telling = [part for part in (0, 1) if len({row[part] for row in rows}) > 1]
    return [", ".join(row[part] for part in telling) for row in rows]


def _of_measure(points: pl.DataFrame, axes: Sequence[Axis], measure: str) -> list[_Panel]:
    drawn = [axis for axis in axes if 1 < len(axis.labels) <= MOST_BOXES and axis.name != SEED]
    if not any(len(axis.labels) > 1 and axis not in drawn for axis in axes):
        return []
    first, inner = (drawn[0], drawn[1:]) if len(drawn) > 1 else (None, drawn)
    panels = []
    for label in first.labels if first is not None else ("",):
        here = points if first is None else points.filter(pl.col(first.name) == label)
        panels.append(_Panel({box: _values(own, measure) for box, own in _boxes(here, inner)}, label))
    return panels


def _values(rows: pl.DataFrame, measure: str) -> list[float]:
    """Without those of runs that have no such figure."""
    of = MEASURES[measure]
    return [
        of.beyond if row[measure] is None else float(row[measure])
        for row in rows.iter_rows(named=True)
        if row[measure] is not None or of.unfinished(row)
    ]


def _boxes(rows: pl.DataFrame, axes: Sequence[Axis]) -> list[tuple[str, pl.DataFrame]]:
    found = [("", rows)]
    for axis in axes:
        found = [
            (f"{name}\n{label}".strip(), own.filter(pl.col(axis.name) == label))
            for name, own in found
            for label in axis.labels
        ]
    return found


def _draw(
    sweeps: Sequence[Swept],
    grid: Sequence[Sequence[_Panel]],
    heads: Sequence[str],
    sides: Sequence[str],
    look: Look,
    what: str,
    *,
    share_above: float | None = None,
    one_scale: bool = False,
) -> Figure:
    """Panels share their vertical axis, in a column or all of them."""
    with style(look):
        rows, columns = len(grid), len(grid[0])
        size = look.size or (0.6 + max(2.4, _COLUMN * columns), 0.7 + _ROW * rows)
        figure = Picture(figsize=size, layout="constrained")
        if look.titles:
            figure.suptitle(_title(sweeps), x=0.01, ha="left")
        axes = figure.subplots(rows, columns, squeeze=False, sharex="col", sharey=True if one_scale else "col")
        everything = [panel for row in grid for panel in row]
        for number in range(columns):
            column = [grid[row][number] for row in range(rows)]
            shared = everything if one_scale else column
            limits = _limits([values for panel in shared for values in panel.boxes.values() if values])
            for row, panel in enumerate(column):
                _put(axes[row, number], panel, limits, share_above, colour(row))
            axes[0, number].set_title(heads[number])
        for row, side in enumerate(sides):
            axes[row, 0].set_ylabel(f"{side}\n{what}" if side else what)
        return figure


def _title(sweeps: Sequence[Swept]) -> str:
    names = [sweep.name for sweep in sweeps]
    shared = {name.partition("/")[0] for name in names}
    return names[0] if len(names) == 1 else shared.pop() if len(shared) == 1 else ""


@dataclass(frozen=True)
class _Limits:
    low: float
    high: float
    logarithmic: bool

    def stretched(self, below: float, above: float) -> tuple[float, float]:
        """The ends of the axis with some of its length added."""
        if self.logarithmic:
            reach = math.log(self.high / self.low) or 1.0
            return self.low * math.exp(-below * reach), self.high * math.exp(above * reach)
        reach = self.high - self.low or 1.0
        return self.low - below * reach, self.high + above * reach


def _limits(boxes: Sequence[Sequence[float]]) -> _Limits:
    """From the lowest whisker to the highest."""
    ends = [(known, _tukey(values)) for values in boxes if (known := _finite(values))]
    low = min((max(box["whislo"], min(known)) for known, box in ends), default=0.0)
    high = max((min(box["whishi"], max(known)) for known, box in ends), default=1.0)
    return _Limits(low, high, low > 0 and high / low >= _LOGARITHMIC)


def _finite(values: Sequence[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]


def _tukey(values: Sequence[float]) -> dict[str, Any]:
    (box,) = boxplot_stats([max(-_INFINITY, min(_INFINITY, value)) for value in values])
    return dict(box)


def _put(panel: Axes, given: _Panel, limits: _Limits, share_above: float | None, tint: str) -> None:
    names = list(given.boxes)
    ends = limits.stretched(_MARGIN, _MARGIN)
    for place, values in enumerate(given.boxes.values()):
        if values:
            _box(panel, place, values, ends, limits.stretched(1, 1), tint)
    if limits.logarithmic:
        panel.set_yscale("log")
    noted = _COUNTS if share_above is not None else _MARGIN
    panel.set_ylim(*limits.stretched(noted, _COUNTS))
    if limits.logarithmic:
        label_decades(panel.yaxis)
    panel.set_xlim(-0.6, len(names) - 0.4)
    panel.set_xticks(range(len(names)), names)
    if sum(max(map(len, name.split("\n"))) for name in names) > _LONG_NAMES:
        slant(panel)
    panel.grid(visible=False, axis="x")
    for place, values in enumerate(given.boxes.values()):
        _count(panel, place, values, ends)
        if share_above is not None and values:
            share = sum(value > share_above for value in values) / len(values)
            _note(panel, place, 0.01, f"{share:.0%} above {share_above:g}", "bottom")


def _box(
    panel: Axes, place: int, values: Sequence[float], ends: tuple[float, float], beyond: tuple[float, float], tint: str
) -> None:
    known = _tukey(values)
    known |= {part: max(beyond[0], min(beyond[1], known[part])) for part in ("whislo", "q1", "med", "q3", "whishi")}
    known["fliers"] = [value for value in known["fliers"] if ends[0] <= value <= ends[1]]
    drawn = panel.bxp(
        [known],
        positions=[place],
        widths=0.5,
        patch_artist=True,
        manage_ticks=False,
        boxprops={"facecolor": tint, "alpha": 0.35, "linewidth": 1.0, "edgecolor": tint},
        medianprops={"color": "black", "linewidth": 1.6},
        whiskerprops={"color": tint, "linewidth": 1.2},
        capprops={"color": tint, "linewidth": 1.2},
        flierprops={"marker": ".", "markersize": 3.5, "markerfacecolor": tint, "markeredgewidth": 0, "alpha": 0.6},
    )
    for each in drawn["boxes"]:
        each.set_zorder(2)


def _count(panel: Axes, place: int, values: Sequence[float], ends: tuple[float, float]) -> None:
    """How many values are cut off, and how far they reach; how many runs did not finish."""
    known = _finite(values)
    above = [value for value in known if value > ends[1]]
    below = [value for value in known if value < ends[0]]
    unfinished = len(values) - len(known)
    top = [
        *([f"{unfinished} of {len(values)}\nunfinished"] if unfinished else []),
        *([f"▲ {len(above)} of {len(values)}\nup to {rounded(max(above))}"] if above else []),
    ]
    if top:
        _note(panel, place, 0.99, "\n".join(top), "top")
    if below:
        _note(panel, place, 0.07, f"▼ {len(below)} of {len(values)}\ndown to {rounded(min(below))}", "bottom")


def _note(panel: Axes, place: int, height: float, text: str, side: str) -> None:
    panel.text(
        place,
        height,
        text,
        transform=panel.get_xaxis_transform(),
        ha="center",
        va=side,
        fontsize="xx-small",
        bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0.5},
        zorder=4,
    )
