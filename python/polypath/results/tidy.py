"""A sweep as one tidy table: a row for each point, seed and connection, and units in the names of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl

#: Figures of subflows, by the lists of `polypath.statistics.points`, and what their columns begin with.
_OF_SUBFLOWS: Final[Mapping[str, str]] = {"subflow_share": "share", "subflow_goodput_mbps": "goodput_mbps"}
_INTERFACE: Final = "interface"


def tidy(points: pl.DataFrame) -> pl.DataFrame:
    """The table of points without lists and without columns that have no value.

    A figure of subflows is a column for each interface, "share[wifi]": the sum of the subflows there, null if one has
    no figure.
    """
    lists = [name for name, kind in points.schema.items() if isinstance(kind, pl.List)]
    interfaces = sorted({each for own in points[_INTERFACE].to_list() for each in own or ()})
    rows = points.select(_INTERFACE, *_OF_SUBFLOWS).to_dicts()
    added = [
        pl.Series(f"{word}[{interface}]", [_sum(row, name, interface) for row in rows], dtype=pl.Float64)
        for name, word in _OF_SUBFLOWS.items()
        for interface in interfaces
    ]
    flat = points.drop(lists).with_columns(added)
    return flat.select(name for name in flat.columns if flat[name].is_not_null().any())


def _sum(row: Mapping[str, Any], name: str, interface: str) -> float | None:
    found = [value for own, value in zip(row[_INTERFACE] or (), row[name] or (), strict=False) if own == interface]
    return sum(found) if found and None not in found else None
