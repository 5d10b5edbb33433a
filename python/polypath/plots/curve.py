"""A sweep as curves: a figure over an axis, with confidence intervals over seeds, in small multiples.

The first axis of numbers is horizontal. The next one with values has colours and markers. Each combination of the rest,
and each connection, has its own panel. Numbers have lines, with bands for the intervals. Names have points with
whiskers. A dashed line is the links' total capacity; over receive buffers, a dotted line is the rule of thumb.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from polypath.measures import MEASURES
from polypath.plots import legends
from polypath.plots.base import drawing, put_legend
from polypath.plots.requests import label_decades
from polypath.plots.style import Look, colour, rounded, style
from polypath.results import MetricError
from polypath.results.axes import SEED, Axis

#: Greatest over least value from which an axis is logarithmic.
_LOGARITHMIC = 20
_COLUMNS = 3
_MOST_PANELS = 24
_MOST_TICKS = 12
#: Part of a logarithmic axis that two of its numbers are apart.
_APART = 0.05
#: Part of the room between two names in which the points of a place stand; characters from which names are slanted.
_WIDE = 0.6
_LONG_NAMES = 40
#: Part of a panel's height that crosses without a value are apart.
_CROSS = 0.07
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_BESIDE: Final = "outside right upper"
#: How far beyond an axis's greatest value the rule of thumb is drawn, as a multiple of it.
_REACH = 2
_SHARED = "#555555"
#: A unit in which an axis is written, by the size of its greatest value.
_SCALES = {
    "bps": ((1e9, "Gbps"), (1e6, "Mbps"), (1e3, "kbps"), (1, "bit/s")),
    "bytes": ((1e6, "MB"), (1e3, "kB"), (1, "B")),
    "s": ((1, "s"), (1e-3, "ms"), (1e-6, "us")),
    "fraction": ((0.01, "%"),),
}


@dataclass(frozen=True)
class _Roles:
    """Which axis is drawn how."""

    along: Axis
    colours: Axis | None
    panels: Sequence[Axis]

    @classmethod
    def of(cls, axes: Sequence[Axis]) -> _Roles | None:
        drawn = [axis for axis in axes if axis.name != SEED and len(axis.labels) > 1]
        if not drawn:
            return None
        along = next((axis for axis in drawn if axis.numbers is not None), drawn[0])
        rest = [axis for axis in drawn if axis is not along]
        return cls(along, rest[0] if rest else None, rest[1:])


class Swept(Protocol):
    """What is drawn of a sweep: `polypath.sweeps.Result`, or one that was stored."""

    @property
    def name(self) -> str: ...
    @property
    def axes(self) -> Sequence[Axis]: ...
    @property
    def points(self) -> pl.DataFrame: ...
    @property
    def statistics(self) -> pl.DataFrame: ...


def curve(result: Swept, ax: Axes | None = None, *, measure: str = "goodput_mbps", legend: bool = True) -> Axes:
    """A measure of a sweep (in the unit of its column) over an axis, with 95 % confidence intervals over seeds.

    `measure` is a column of statistics.parquet: goodput_mbps, completion_s (s), delay_p95_s (s) and so on. A second
    axis is told apart by colour. Raises MetricError where there is more than one panel to draw, and where none is.
    """
    roles = _Roles.of(result.axes)
    own = result.statistics.filter(pl.col("measure") == measure)
    if measure not in MEASURES:
        raise MetricError(f"no measure '{measure}'; there is {', '.join(MEASURES)}")
    if roles is None or own.is_empty():
        raise MetricError(f"{result.name} has no axis and no values to draw")
    if own["connection"].n_unique() > 1 or roles.panels:
        raise MetricError(f"{result.name} has several panels; polypath.plots.draw_curves draws all of them")
    with drawing(ax) as axes:
        _panel(axes, roles, own, result.points if measure == "goodput_mbps" else None)
        axes.set_ylim(bottom=0)
        axes.set(xlabel=_label(roles.along), ylabel=f"{MEASURES[measure].title} ({MEASURES[measure].unit.data})")
        put_legend(axes, legend and (roles.colours is not None or len(axes.get_legend_handles_labels()[0]) > 1))
        return axes


def measures(result: Swept) -> list[str]:
    """The measures that have values other than zero."""
    return [name for name in MEASURES if _Roles.of(result.axes) is not None and _says_something(result, name)]


def _says_something(result: Swept, measure: str) -> bool:
    own = result.statistics.filter(pl.col("measure") == measure)
    return not own.is_empty() and bool((own["mean"] != 0).any() or (own["unfinished"] > 0).any())


def draw_curves(result: Swept, measure: str, look: Look | None = None) -> Figure | None:
    """All panels of a measure; None where the sweep has no axis but the seed, or the measure no value but zero."""
    roles = _Roles.of(result.axes)
    if roles is None or not _says_something(result, measure):
        return None
    look = look or Look()
    with style(look):
        return _draw(result, measure, roles, look)


def _draw(result: Swept, measure: str, roles: _Roles, look: Look) -> Figure:
    own = result.statistics.filter(pl.col("measure") == measure)
    keys = [axis.name for axis in roles.panels] + ["connection"]
    groups = own.partition_by(keys, as_dict=True, maintain_order=True)
    shown = list(groups.items())[:_MOST_PANELS]
    columns = min(_COLUMNS, len(shown))
    rows = math.ceil(len(shown) / columns)
    figure = Figure(figsize=look.size or (2.4 + 4.6 * columns, 3.6 * rows + 0.6), layout="constrained")
    if look.titles:
        figure.suptitle(result.name, x=0.01, ha="left")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    panels = list(grid.flat)
    for panel in panels[len(shown) :]:
        panel.remove()
    several = own["connection"].n_unique() > 1
    for panel, (key, group) in zip(panels, shown, strict=False):
        here = result.points.filter(
            pl.all_horizontal(pl.col(column) == value for column, value in zip(keys, key, strict=True))
        )
        _panel(panel, roles, group, here if measure == "goodput_mbps" else None)
        parts = [f"{axis.name} {value}" for axis, value in zip(roles.panels, key, strict=False)]
        panel.set_title(", ".join([*parts, *([str(key[-1])] if several else [])]))
    # They share the axis: from when its bottom is set on, its top does not follow what is drawn.
    panels[0].set_ylim(bottom=0)
    for panel in grid[:, 0]:
        panel.set_ylabel(f"{MEASURES[measure].title} ({MEASURES[measure].unit.data})")
    for column in range(columns):
        below = [row for row in range(rows) if row * columns + column < len(shown)]
        grid[below[-1]][column].set_xlabel(_label(roles.along))
        grid[below[-1]][column].tick_params(labelbottom=True)
    handles, labels = panels[0].get_legend_handles_labels()
    if len(handles) > 1 or roles.colours is not None:
        heading = None if roles.colours is None else roles.colours.name
        if legends.is_narrow(figure):
            legends.below(figure, heading and heading.rpartition(".")[2])
        else:
            figure.legend(handles, labels, title=heading, loc=_BESIDE)
    if len(groups) > len(shown):
        figure.text(0.01, 0.0, f"{len(shown)} of {len(groups)} panels", fontsize="small")
    return figure


def _panel(panel: Axes, roles: _Roles, group: pl.DataFrame, points: pl.DataFrame | None) -> None:
    """The curves of a panel and, given the points, what their links carry."""
    labels = roles.colours.labels if roles.colours is not None else ("",)
    without: Counter[float] = Counter()
    for index, label in enumerate(labels):
        line = group if roles.colours is None else group.filter(pl.col(roles.colours.name) == label)
        places = _places(roles.along, line)
        order = sorted(range(len(places)), key=places.__getitem__)
        beside = _WIDE * ((index + 0.5) / len(labels) - 0.5) if roles.along.numbers is None else 0.0
        at = [places[each] + beside for each in order]
        ordered = line[order]
        _line(panel, roles.along, at, ordered, index, label or "mean")
        _unfinished(panel, at, ordered, colour(index), without)
    if points is not None:
        _references(panel, roles, points)
    numbers = roles.along.numbers
    if numbers is None:
        names = roles.along.labels
        panel.set_xticks(range(len(names)), names)
        if sum(map(len, names)) > _LONG_NAMES:
            slant(panel)
        panel.set_xlim(-0.5, len(names) - 0.5)
        panel.grid(visible=False, axis="x")
    elif min(numbers) > 0 and max(numbers) / min(numbers) >= _LOGARITHMIC:
        panel.set_xscale("log")
        if len(numbers) <= _MOST_TICKS:
            ticks = [number / _scale(roles.along)[0] for number in numbers]
            panel.set_xticks(ticks, _apart(ticks))
            panel.minorticks_off()
        else:
            label_decades(panel.xaxis)


def slant(panel: Axes) -> None:
    """Names along the horizontal axis that would touch beside each other."""
    panel.tick_params(axis="x", labelrotation=30)
    for text in panel.get_xticklabels():
        text.set(ha="right", rotation_mode="anchor")


def _line(panel: Axes, along: Axis, at: Sequence[float], rows: pl.DataFrame, index: int, label: str) -> None:
    """A line with its band; along names points with whiskers."""
    means, marker = _gaps(rows["mean"]), _MARKERS[index % len(_MARKERS)]
    known = rows["low"].is_not_null().any()
    if along.numbers is None:
        reach = [
            [abs(value) for value in _gaps(rows["mean"] - rows["low"])],
            [abs(value) for value in _gaps(rows["high"] - rows["mean"])],
        ]
        panel.errorbar(
            at,
            means,
            yerr=reach if known else None,
            linestyle="",
            marker=marker,
            markersize=5,
            capsize=3,
            elinewidth=1.2,
            color=colour(index),
            label=label,
        )
        return
    panel.plot(at, means, marker=marker, markersize=3.5, color=colour(index), label=label)
    if known:
        low, high = (_gaps(rows[side].fill_null(rows["mean"])) for side in ("low", "high"))
        panel.fill_between(at, low, high, color=colour(index), alpha=0.2, linewidth=0)


def _apart(ticks: Sequence[float]) -> list[str]:
    """The ticks of a logarithmic axis in words; none for one that is too close to the one before."""
    reach, last = math.log(max(ticks) / min(ticks)), -math.inf
    words = {}
    for tick in sorted(ticks):
        place = math.log(tick) / reach
        words[tick] = f"{tick:g}" if place - last >= _APART else ""
        last = place if words[tick] else last
    return [words[tick] for tick in ticks]


def _gaps(values: pl.Series) -> list[float]:
    """A curve is interrupted where there is no value."""
    return [math.nan if value is None else value for value in values]


def _unfinished(panel: Axes, at: Sequence[float], line: pl.DataFrame, tint: str, without: Counter[float]) -> None:
    """Marks places with unfinished runs: their number, and a cross at the median. Without a median, the cross is at the
    top, or at the bottom if more is better. `without` counts the latter at each place, which are stacked.
    """
    for place, row in zip(at, line.iter_rows(named=True), strict=True):
        if row["unfinished"]:
            known = row["median"] is not None
            transform = panel.transData if known else panel.get_xaxis_transform()
            edge = 0.03 + _CROSS * without[place]
            height = row["median"] if known else 1 - edge if MEASURES[row["measure"]].beyond > 0 else edge
            without[place] += not known
            (cross,) = panel.plot([place], [height], marker="x", color=tint, linestyle="", transform=transform)
            note = panel.annotate(
                f"{row['unfinished']} of {row['n']} unfinished",
                (place, height),
                (3, -3),
                xycoords=transform,
                textcoords="offset points",
                fontsize="x-small",
                color=tint,
                va="top" if known or height > 0.5 else "bottom",
            )
            for each in (cross, note):
                each.set_in_layout(False)


def _references(panel: Axes, roles: _Roles, points: pl.DataFrame) -> None:
    """What the links carry and the rule of thumb: once where all lines share it, else in each line's colour."""
    labels = roles.colours.labels if roles.colours is not None else ("",)
    size, _ = _scale(roles.along)
    curves: dict[tuple[tuple[float, float], ...], str] = {}
    thumbs: dict[float, str] = {}
    for index, label in enumerate(labels):
        line = points if roles.colours is None else points.filter(pl.col(roles.colours.name) == label)
        line = line.filter(pl.col("links_mbps").is_not_null()).unique(roles.along.name, maintain_order=True)
        if line.is_empty():
            continue
        curves.setdefault(
            tuple(sorted(zip(_places(roles.along, line), line["links_mbps"].to_list(), strict=True))), colour(index)
        )
        for thumb in line["rule_of_thumb_bytes"].drop_nulls().unique(maintain_order=True):
            thumbs.setdefault(thumb / size, colour(index))
    for number, (curve, tint) in enumerate(curves.items()):
        own = _SHARED if len(curves) == 1 else tint
        note = "_" if number else "the links together"
        if roles.along.numbers is None:
            for place, rate in curve:
                ends = (place - _WIDE / 2, place + _WIDE / 2)
                panel.plot(ends, (rate, rate), linestyle="--", linewidth=1.0, color=own, label=note)
                note = "_"
        else:
            panel.plot(*zip(*curve, strict=True), linestyle="--", linewidth=1.0, color=own, label=note)
    if "receive_buffer" in roles.along.name:
        _rules_of_thumb(panel, roles.along, thumbs)


def _rules_of_thumb(panel: Axes, along: Axis, thumbs: Mapping[float, str]) -> None:
    """Vertical lines; a buffer far beyond the axis is named in the legend alone."""
    size, unit = _scale(along)
    reach = _REACH * max(along.numbers or (0,)) / size
    for number, (thumb, tint) in enumerate(thumbs.items()):
        own = _SHARED if len(thumbs) == 1 else tint
        name = f"rule of thumb, {rounded(thumb)} {unit}" if len(thumbs) == 1 else "rule of thumb"
        note = "_" if number else name
        if thumb <= reach:
            panel.axvline(thumb, linestyle=":", linewidth=1.3, color=own, label=note)
        else:
            panel.plot([], [], linestyle=":", linewidth=1.3, color=own, label=note)


def _places(axis: Axis, rows: pl.DataFrame) -> list[float]:
    size, _ = _scale(axis)
    numbers = axis.numbers or tuple(range(len(axis.labels)))
    return [numbers[axis.labels.index(label)] / size for label in rows[axis.name]]


def _scale(axis: Axis) -> tuple[float, str]:
    """The unit that suits the greatest value: its size and its name."""
    if axis.numbers is None or axis.unit not in _SCALES:
        return 1.0, axis.unit
    units = _SCALES[axis.unit]
    return next(((size, name) for size, name in units if max(axis.numbers) >= size), units[-1])


def _label(axis: Axis) -> str:
    unit = _scale(axis)[1]
    return f"{axis.name} ({unit})" if unit else axis.name
