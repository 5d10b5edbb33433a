"""How far each value of a setting is from the best, over many networks: a performance profile."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from polypath.measures import MEASURES
from polypath.plots.base import drawing, put_legend
from polypath.plots.curve import Swept
from polypath.plots.files import Picture
from polypath.plots.style import Look, colour, style
from polypath.results import MetricError
from polypath.results.axes import SEED
from polypath.statistics import across

_ALL = 1.0
#: Factors that an axis names, as many as leave room: the next is a fifth more at least.
_FACTORS = (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0)
_WIDTH, _HEIGHT = 7.0, 3.2


def draw_profiles(result: Swept, measure: str, look: Look | None = None) -> Figure | None:
    """A panel for each connection that has the measure, of a sweep over drawn networks and one other axis. None where
    the sweep is no such, or nothing has the measure."""
    look = look or Look()
    axes = [axis for axis in result.axes if axis.name != SEED and len(axis.labels) > 1]
    networks = [axis.name for axis in axes if axis.settings is not None]
    compared = [axis.name for axis in axes if axis.settings is None]
    if not networks or len(compared) != 1 or measure not in result.points.columns:
        return None
    known = result.points.filter(result.points[measure].is_not_null())["connection"].unique(maintain_order=True)
    if known.is_empty():
        return None
    with style(look):
        figure = Picture(figsize=look.size or (_WIDTH, _HEIGHT * len(known)), layout="constrained")
        if look.titles:
            figure.suptitle(result.name, x=0.01, ha="left")
        for panel, name in zip(figure.subplots(len(known), squeeze=False)[:, 0], known, strict=True):
            profile(result, compared[0], networks, measure, panel, connection=name, legend=panel is figure.axes[0])
            panel.set_title(name if len(known) > 1 else "")
        return figure


def profile(
    result: Swept,
    by: str,
    networks: Sequence[str],
    measure: str,
    ax: Axes | None = None,
    *,
    connection: str | None = None,
    legend: bool = True,
) -> Axes:
    """The share of networks in which each value of axis `by` is within a factor of the best (Dolan and More, 2002).

    The line at factor 1 is the share of networks in which the value is the best. It ends below 1 where runs of the
    value did not finish in the other networks. `measure` is a column of points.parquet. Raises MetricError where
    nothing has the measure, and where several connections have it and none is named.
    """
    named = result.points["connection"].unique(maintain_order=True).to_list()
    chosen = connection or (named[0] if len(named) == 1 else None)
    if chosen is None:
        raise MetricError(f"name the connection to draw: {', '.join(named)}")
    (axis,) = (each for each in result.axes if each.name == by)
    rows = result.points.filter(result.points["connection"] == chosen)
    found = across.blocks(rows, by, axis.labels[0], axis.labels, networks, measure, compared=False)
    if not found:
        raise MetricError(f"{result.name} has no network in which every value of {by} has a figure {measure}")
    factors = across.profile(found, axis.labels, measure)
    most = max((each for values in factors.values() for each in values if math.isfinite(each)), default=_ALL)
    with drawing(ax) as axes:
        for number, (label, values) in enumerate(factors.items()):
            finite = [each for each in values if math.isfinite(each)]
            shares = [(number + 1) / len(values) for number in range(len(finite))]
            reached = shares[-1] if shares else 0.0
            factor, part = [_ALL, *finite, most], [0.0, *shares, reached]
            axes.step(factor, part, where="post", label=label, color=colour(number))
        axes.set_xscale("log")
        axes.set_xlim(_ALL, max(most, 1.01))
        axes.set_ylim(0, 1.02)
        title = MEASURES[measure].title
        axes.set(xlabel=f"{title}: within this factor of the best", ylabel=f"part of {len(found)} networks")
        named_factors = [each for each in _FACTORS if each <= most]
        axes.xaxis.set_major_locator(FixedLocator(named_factors if len(named_factors) > 1 else [_ALL, most]))
        axes.xaxis.set_major_formatter("{x:.3g}")
        axes.xaxis.set_minor_locator(NullLocator())
        put_legend(axes, legend)
        return axes
