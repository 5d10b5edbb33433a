"""The rows of a table by some of its columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl


class Groups:
    """A table's rows by key, in each group sorted: one pass over the table, whatever the number of groups.

    Rows that are equal in all of the columns `by` and `then` keep their order.
    """

    def __init__(self, table: pl.DataFrame, by: Sequence[str], then: Sequence[str] = ()) -> None:
        self._rows = table.sort(*by, *then, maintain_order=True)
        self._columns: dict[str, list[Any]] = {}
        self._places: dict[tuple[Any, ...], slice] = {}
        start = 0
        for *key, length in self._rows.group_by(by, maintain_order=True).len().iter_rows():
            self._places[tuple(key)] = slice(start, start + length)
            start += length

    def __contains__(self, key: tuple[Any, ...]) -> bool:
        return key in self._places

    def column(self, name: str, *key: Any) -> list[Any]:
        """A column of the rows with that key; empty where there are none."""
        place = self._places.get(key)
        return [] if place is None else self._column(name)[place]

    def rows(self, names: Sequence[str], *key: Any) -> Iterator[tuple[Any, ...]]:
        """Some columns of the rows with that key."""
        return zip(*(self.column(name, *key) for name in names), strict=True)

    def _column(self, name: str) -> list[Any]:
        if name not in self._columns:
            self._columns[name] = self._rows[name].to_list()
        return self._columns[name]
