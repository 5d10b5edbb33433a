"""How far each value of a setting is from the best, over many networks: a performance profile."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes

from polypath.plots.base import drawing, put_legend
from polypath.plots.curve import Swept
from polypath.results import MetricError, across
from polypath.results.points import MEASURES

_ALL = 1.0


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
    found = across.blocks(rows, by, axis.labels[0], axis.labels, networks, measure)
    if not found:
        raise MetricError(f"{result.name} has no network in which every value of {by} has a figure {measure}")
    factors = across.profile(found, axis.labels, measure)
    most = max((each for values in factors.values() for each in values if math.isfinite(each)), default=_ALL)
    with drawing(ax) as axes:
        for label, values in factors.items():
            finite = [each for each in values if math.isfinite(each)]
            shares = [(number + 1) / len(values) for number in range(len(finite))]
            axes.step([_ALL, *finite, most], [0.0, *shares, shares[-1] if shares else 0.0], where="post", label=label)
        axes.set_xscale("log")
        axes.set_xlim(_ALL, max(most, 1.01))
        axes.set_ylim(0, 1.02)
        title = MEASURES[measure].title
        axes.set(xlabel=f"{title}: within this factor of the best", ylabel=f"part of {len(found)} networks")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("{x:g}")
        put_legend(axes, legend)
        return axes
