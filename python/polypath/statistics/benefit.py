"""The experimental aggregation benefit: the gain of several paths over the best of them alone.

Paasch, Khalili and Bonaventure, "On the Benefits of Applying Experimental Design to Improve Multipath TCP", CoNEXT
2013, section 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from polypath.results.axes import SEED, Axis
from polypath.results.metrics import MetricError

#: Of each transport over several paths that over one.
SINGLE: Final[Mapping[str, str]] = {"mpquic": "quic", "mptcp": "tcp"}

_GOODPUT: Final = "goodput_mbps"


def benefit(goodput: float, singles: Sequence[float]) -> float:
    """From -1, nothing arrives, over 0, as much as on the best path alone, to 1, the sum of all paths.

    Raises MetricError where fewer than two of the single paths carry anything.
    """
    best, total = max(singles, default=0.0), sum(singles)
    if total == best:
        raise MetricError("no benefit without two single paths that carry something")
    return (goodput - best) / (total - best if goodput >= best else best)


@dataclass(frozen=True)
class Benefit:
    """That of one connection over several paths at a place of a sweep."""

    transport: str
    #: Whether the connection began on the path that alone is the best one.
    best_first: bool
    value: float


def of_sweep(points: pl.DataFrame, axes: Sequence[Axis]) -> list[Benefit]:
    """The benefit at each place with a transport over several paths and its single-path counterpart over each path.

    One axis must have a label for each path on which single-path connections begin, and another one the transports.
    `points` is the sweep's table (`polypath.statistics.points`). Seeds are separate places.
    """
    names = [axis.name for axis in axes]
    rows = points.filter(pl.col(_GOODPUT).is_not_null()).select(
        *names, "connection", "transport", _GOODPUT, "interface"
    )
    single = rows.filter(pl.col("transport").is_in(list(SINGLE.values())))
    telling = [name for name in names if rows["transport"].n_unique() > 1 and _tells(rows, name)]
    over = next((name for name in names if name not in (*telling, SEED) and _is_of_paths(single, name)), None)
    if over is None or not telling:
        return []
    place = [name for name in (*names, "connection") if name not in (*telling, over)]
    alone: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in single.iter_rows(named=True):
        key = (row["transport"], *(row[name] for name in place))
        alone.setdefault(key, {})[row[over]] = row[_GOODPUT]
    paths = single[over].n_unique()
    found = []
    for row in rows.filter(pl.col("transport").is_in(list(SINGLE))).iter_rows(named=True):
        singles = alone.get((SINGLE[row["transport"]], *(row[name] for name in place)), {})
        if len(singles) == paths and row[over] in singles and sum(singles.values()) > max(singles.values()):
            best_first = singles[row[over]] == max(singles.values())
            found.append(Benefit(row["transport"], best_first, benefit(row[_GOODPUT], list(singles.values()))))
    return found


def _tells(rows: pl.DataFrame, axis: str) -> bool:
    """Whether the label on an axis says which transport it is."""
    return bool((rows.group_by(axis).agg(pl.col("transport").n_unique())["transport"] == 1).all())


def _is_of_paths(single: pl.DataFrame, axis: str) -> bool:
    """Whether connections over one path have another interface at each label of an axis."""
    ways = single.filter(pl.col("interface").list.len() == 1).select(axis, pl.col("interface").list.first())
    found = ways.unique()
    return found.height == found[axis].n_unique() == found["interface"].n_unique() > 1
