"""Whether two Recordings say the same, and where they do not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import polars as pl

from polypath import Plan, Recording

from .relation import Broken

Change = Callable[[pl.DataFrame], pl.DataFrame]
"""What is made of a table before it is compared."""

#: Tables that only a run with segments has.
OF_SEGMENTS = frozenset({"segments", "sack_blocks", "headers"})
#: Rows at the sampling instants, some also where something happens.
SAMPLED = frozenset({"subflows", "connections", "links", "datagram_samples", "switches"})
#: What is of a time, by table.
TIMED: Mapping[str, str] = {
    "subflows": "time_ns",
    "connections": "time_ns",
    "links": "time_ns",
    "events": "time_ns",
    "datagram_samples": "time_ns",
    "switches": "time_ns",
    "flow_setups": "time_ns",
    "bridge_ports": "time_ns",
    "segments": "time_ns",
    "sack_blocks": "time_ns",
}
#: Columns of instants, as opposed to durations.
INSTANTS: Mapping[str, tuple[str, ...]] = {
    **{table: (column,) for table, column in TIMED.items()},
    "requests": ("sent_ns",),
    "chunks": ("asked_ns", "arrived_ns", "played_ns"),
    "objects": ("asked_ns", "arrived_ns"),
    "connection_ends": ("start_ns", "established_ns", "end_ns", "first_byte_ns", "last_byte_ns"),
    "subflow_ends": ("established_ns", "closed_ns"),
}


def same(one: Recording, other: Recording, *, without: Collection[str] = (), **changes: Change) -> None:
    """Raises Broken unless all tables are equal, but those `without`; `changes` are made to both sides' tables."""
    same_tables(one.tables, other.tables, without=without, **changes)


def same_tables(
    one: Mapping[str, pl.DataFrame],
    other: Mapping[str, pl.DataFrame],
    *,
    without: Collection[str] = (),
    **changes: Change,
) -> None:
    """As `same`, of tables."""
    for name in [*one, *(name for name in other if name not in one)]:
        if name in without:
            continue
        if name not in one or name not in other:
            raise Broken(f"only one of the runs has a table '{name}'")
        change = changes.get(name, _as_it_is)
        same_rows(change(one[name]), change(other[name]), name)


def same_rows(one: pl.DataFrame, other: pl.DataFrame, name: str) -> None:
    """Raises Broken with the first difference of two tables."""
    if one.equals(other):
        return
    if one.columns != other.columns:
        raise Broken(f"{name}: columns {one.columns} and {other.columns}")
    for number, (left, right) in enumerate(zip(one.iter_rows(), other.iter_rows(), strict=False)):
        if left != right:
            columns = [column for column, a, b in zip(one.columns, left, right, strict=True) if a != b]
            raise Broken(f"{name}, row {number}: {', '.join(columns)} of {left} and {right}")
    if one.height == other.height:
        raise Broken(f"{name}: types {one.dtypes} and {other.dtypes}")
    longer = one if one.height > other.height else other
    raise Broken(
        f"{name}: {one.height} and {other.height} rows; one more is {longer.row(min(one.height, other.height))}"
    )


def same_plans(one: Plan, other: Plan) -> None:
    """Raises Broken with the first difference of two plans."""
    if one != other:
        place, left, right = next(iter(differences(one.view, other.view, "plan")))
        raise Broken(f"{place} is {left!r} and {right!r}")


def differences(one: Any, other: Any, place: str) -> Iterable[tuple[str, Any, Any]]:
    """Where plain data differs, first to last."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one | other:
            yield from differences(one.get(key), other.get(key), f"{place}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, pair in enumerate(zip(one, other, strict=True)):
            yield from differences(*pair, f"{place}[{index}]")
    elif one != other or type(one) is not type(other):
        yield place, one, other


def _as_it_is(table: pl.DataFrame) -> pl.DataFrame:
    return table


def without_kinds(*kinds: str) -> Change:
    """The events but those of some kinds."""
    return lambda events: events.filter(~pl.col("kind").is_in(list(kinds)))


def renamed(**columns: Mapping[str, str]) -> Change:
    """Names in columns replaced by others."""

    def change(table: pl.DataFrame) -> pl.DataFrame:
        known = {name: names for name, names in columns.items() if name in table.columns}
        return table.with_columns(pl.col(name).replace(dict(names)) for name, names in known.items())

    return change
