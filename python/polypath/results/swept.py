"""The runs of a sweep one by one, from its table of points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from polypath.results.axes import SEED, Axis
from polypath.results.errors import UnknownName
from polypath.results.files import OutputError
from polypath.results.recording import Recording


class Row(Mapping[str, Any]):
    """A connection's row of the table of points: by key or by attribute, `row["goodput_mbps"]`, `row.goodput_mbps`."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def __getitem__(self, column: str) -> Any:
        try:
            return self._values[column]
        except KeyError:
            raise UnknownName.of("column", column, self._values) from None

    def __getattr__(self, column: str) -> Any:
        values = self.__dict__.get("_values", {})
        if column in values:
            return values[column]
        raise AttributeError(str(UnknownName.of("column", column, values)))

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._values})

    def __repr__(self) -> str:
        return f"<{self._values.get('connection')}: {len(self)} columns>"


@dataclass(frozen=True)
class SweptRun:
    """One run of a sweep."""

    #: Its label on each axis, the seed among them.
    values: Mapping[str, str]
    #: A row for each connection, in the scenario's order.
    connections: Sequence[Row]
    #: Where it is stored; None: the sweep was not written to a folder.
    folder: Path | None = field(default=None, repr=False)

    @property
    def seed(self) -> int | None:
        """Its place on the axis of seeds; None without one."""
        return int(self.values[SEED]) if SEED in self.values else None

    def __getitem__(self, name: str) -> Row:
        """The connection of the application of that name. Raises UnknownName."""
        found = next((row for row in self.connections if row["connection"] == name), None)
        if found is None:
            raise UnknownName.of("connection", name, [row["connection"] for row in self.connections])
        return found

    def load(self) -> Recording:
        """Everything that was recorded. Raises OutputError where the sweep was not written to a folder."""
        if self.folder is None:
            raise OutputError("the sweep kept its figures alone; give it a folder with out=")
        return Recording.load(self.folder)


def runs(points: pl.DataFrame, axes: Sequence[Axis], folders: Mapping[tuple[str, ...], Path]) -> Iterator[SweptRun]:
    """In the order of the table. `folders` by the labels on all axes."""
    names = [axis.name for axis in axes]
    for key, group in points.group_by(names, maintain_order=True):
        labels = tuple(map(str, key))
        rows = [Row(row) for row in group.iter_rows(named=True)]
        yield SweptRun(dict(zip(names, labels, strict=True)), rows, folders.get(labels))
