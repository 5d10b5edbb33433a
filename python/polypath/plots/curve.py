"""A sweep as curves: a figure over an axis, with confidence intervals over seeds, in small multiples.

The first axis of numbers is drawn along; the next one with values is told apart by colour; what remains, and each
connection, has a panel of its own. Dashed is what the links carry together; dotted, over receive buffers, the rule of
thumb.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from polypath.plots.base import colour, style
from polypath.results.files import replacing
from polypath.results.points import MEASURES, SEED, Axis, short

#: Greatest over least value from which an axis is logarithmic.
_LOGARITHMIC = 20
_COLUMNS = 3
_MOST_PANELS = 24
_MOST_TICKS = 12
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


def save_curves(
    name: str, points: pl.DataFrame, statistics: pl.DataFrame, axes: Sequence[Axis], directory: Path
) -> list[Path]:
    """Draws curve-MEASURE.png for each measure that has values other than zero; the files. Raises OutputError."""
    saved = []
    for measure in MEASURES:
        with style():
            figure = draw(name, measure, points, statistics, axes)
            if figure is None:
                continue
            path = directory / f"curve-{short(measure)}.png"
            with replacing(path) as temporary:
                figure.savefig(temporary, format="png", bbox_inches="tight", metadata={"Software": "polypath"})
        saved.append(path)
    return saved


def draw(
    name: str, measure: str, points: pl.DataFrame, statistics: pl.DataFrame, axes: Sequence[Axis]
) -> Figure | None:
    """None where the sweep has no axis but the seed, or the measure no value other than zero."""
    roles = _Roles.of(axes)
    own = statistics.filter(pl.col("measure") == measure)
    if roles is None or own.is_empty() or not ((own["mean"] != 0).any() or (own["unfinished"] > 0).any()):
        return None
    keys = [axis.name for axis in roles.panels] + ["connection"]
    groups = own.partition_by(keys, as_dict=True, maintain_order=True)
    shown = list(groups.items())[:_MOST_PANELS]
    columns = min(_COLUMNS, len(shown))
    rows = math.ceil(len(shown) / columns)
    figure = Figure(figsize=(2.4 + 4.6 * columns, 3.6 * rows + 0.6), layout="constrained")
    figure.suptitle(name, x=0.01, ha="left", fontweight="bold")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    panels = list(grid.flat)
    for panel in panels[len(shown) :]:
        panel.remove()
    several = own["connection"].n_unique() > 1
    for panel, (key, group) in zip(panels, shown, strict=False):
        _panel(panel, roles, group)
        here = points.filter(
            pl.all_horizontal(pl.col(column) == value for column, value in zip(keys, key, strict=True))
        )
        if measure == "goodput_mbps":
            _references(panel, roles, here)
        parts = [f"{axis.name} {value}" for axis, value in zip(roles.panels, key, strict=False)]
        panel.set_title(", ".join([*parts, *([str(key[-1])] if several else [])]), fontsize=10)
        panel.set_ylim(bottom=0)
    for panel in grid[:, 0]:
        panel.set_ylabel(f"{MEASURES[measure].title} ({MEASURES[measure].unit})")
    for column in range(columns):
        below = [row for row in range(rows) if row * columns + column < len(shown)]
        grid[below[-1]][column].set_xlabel(_label(roles.along))
        grid[below[-1]][column].tick_params(labelbottom=True)
    handles, labels = panels[0].get_legend_handles_labels()
    if len(handles) > 1 or roles.colours is not None:
        heading = None if roles.colours is None else roles.colours.name
        figure.legend(handles, labels, loc="outside right upper", title=heading)
    if len(groups) > len(shown):
        figure.text(0.01, 0.0, f"{len(shown)} of {len(groups)} panels", fontsize=8)
    return figure


def _panel(panel: Axes, roles: _Roles, group: pl.DataFrame) -> None:
    labels = roles.colours.labels if roles.colours is not None else ("",)
    for index, label in enumerate(labels):
        line = group if roles.colours is None else group.filter(pl.col(roles.colours.name) == label)
        places = _places(roles.along, line)
        order = sorted(range(len(places)), key=places.__getitem__)
        at = [places[each] for each in order]
        ordered = line[order]
        means = ordered["mean"]
        panel.plot(at, _gaps(means), marker="o", markersize=3.5, color=colour(index), label=label or "mean")
        low, high = (_gaps(ordered[side].fill_null(means)) for side in ("low", "high"))
        if ordered["low"].is_not_null().any():
            panel.fill_between(at, low, high, color=colour(index), alpha=0.2, linewidth=0)
        _unfinished(panel, at, ordered, colour(index))
    numbers = roles.along.numbers
    if numbers is None:
        panel.set_xticks(range(len(roles.along.labels)), roles.along.labels, rotation=30, ha="right")
    elif min(numbers) > 0 and max(numbers) / min(numbers) >= _LOGARITHMIC:
        panel.set_xscale("log")
        if len(numbers) <= _MOST_TICKS:
            ticks = [number / _scale(roles.along)[0] for number in numbers]
            panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            panel.minorticks_off()


def _gaps(values: pl.Series) -> list[float]:
    """A curve is interrupted where there is no value."""
    return [math.nan if value is None else value for value in values]


def _unfinished(panel: Axes, at: Sequence[float], line: pl.DataFrame, tint: str) -> None:
    """Places at which runs did not finish: their number, and a cross at the median or, without one, at the top."""
    for place, row in zip(at, line.iter_rows(named=True), strict=True):
        if row["unfinished"]:
            known = row["median"] is not None
            transform = panel.transData if known else panel.get_xaxis_transform()
            height = row["median"] if known else 0.97
            (cross,) = panel.plot([place], [height], marker="x", color=tint, linestyle="", transform=transform)
            note = panel.annotate(
                f"{row['unfinished']} of {row['n']} unfinished",
                (place, height),
                (3, -3),
                xycoords=transform,
                textcoords="offset points",
                fontsize=6,
                va="top",
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
        panel.plot(*zip(*curve, strict=True), linestyle="--", linewidth=1.0, color=own, label=note)
    if "receive_buffer" in roles.along.name:
        _rules_of_thumb(panel, roles.along, thumbs)


def _rules_of_thumb(panel: Axes, along: Axis, thumbs: Mapping[float, str]) -> None:
    """Vertical lines; a buffer far beyond the axis is named in the legend alone."""
    size, unit = _scale(along)
    reach = _REACH * max(along.numbers or (0,)) / size
    for number, (thumb, tint) in enumerate(thumbs.items()):
        own = _SHARED if len(thumbs) == 1 else tint
        name = f"rule of thumb, {thumb:.3g} {unit}" if len(thumbs) == 1 else "rule of thumb"
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
