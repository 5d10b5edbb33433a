"""The tables of results as CSV, in a form that is the same wherever it is made."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from polypath.results import folder, layout, reading
from polypath.results.axes import Axis
from polypath.results.files import write_csv
from polypath.statistics import points
from polypath.statistics.estimate import over_seeds

if TYPE_CHECKING:
    from polypath.plan.data import PlanData

#: What a sweep's folder may have besides, by the names of their tables.
_COMPARED = {"paired": layout.PAIRED, "networks": layout.ACROSS}


def of_run(summary: Mapping[str, Any], plan: PlanData) -> Iterator[tuple[str, bytes]]:
    """A row for each connection, and for each request where there are any."""
    rows = points.Rows()
    rows.put(0, points.rows(summary, plan))
    yield "connections.csv", csv(rows.table([], [{}], [0]))
    asked = [
        {"connection": each["name"], "request": number, "delay_s": delay}
        for each in summary["connections"]
        for number, delay in enumerate(each["requests"]["delay_s"])
    ]
    if asked:
        schema = {"connection": pl.String, "request": pl.UInt32, "delay_s": pl.Float64}
        yield "requests.csv", csv(pl.DataFrame(asked, schema=schema))


def of_sweep(table: pl.DataFrame, axes: list[Axis]) -> Iterator[tuple[str, bytes]]:
    """The table of the points, and the same over seeds."""
    yield "points.csv", csv(table)
    yield "statistics.csv", csv(over_seeds(table, axes))


def compared(directory: Path, listed: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """What a comparison added to a sweep's folder."""
    for name, file in _COMPARED.items():
        if file in listed:
            yield f"{name}.csv", csv(reading.table(folder.located(directory, file)))


def csv(table: pl.DataFrame) -> bytes:
    """Lists are in one cell, with semicolons between."""
    lists = [name for name, kind in table.schema.items() if isinstance(kind, pl.List)]
    flat = table.with_columns(pl.col(name).list.eval(pl.element().cast(pl.String)).list.join(";") for name in lists)
    with tempfile.TemporaryDirectory(prefix="polypath-") as place:
        path = Path(place) / "table.csv"
        write_csv(path, flat)
        return path.read_bytes()
