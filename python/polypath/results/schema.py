"""The tables of a Recording and their columns' types, which crates/trace/src/recording.rs declares."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import polars as pl

from polypath import _core

_TYPES: Final[Mapping[str, type[pl.DataType]]] = {
    "i64": pl.Int64,
    "u32": pl.UInt32,
    "u64": pl.UInt64,
    "f64": pl.Float64,
    "bool": pl.Boolean,
    "str": pl.String,
}

_DECLARED: Final = json.loads(_core.tables())

TABLES: Final[Mapping[str, Mapping[str, type[pl.DataType]]]] = {
    table["name"]: {column["name"]: _TYPES[column["type"]] for column in table["columns"]} for table in _DECLARED
}

OPTIONAL: Final = frozenset(table["name"] for table in _DECLARED if table["optional"])
"""Tables that a recording has only where there is something in them."""


def empty(name: str) -> pl.DataFrame:
    """A table without rows."""
    return pl.DataFrame(schema=dict(TABLES[name]))
