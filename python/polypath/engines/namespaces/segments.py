"""The segments of a run with their headers, from the captures of its hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from polypath import capture
from polypath.engines.base import EngineError, Options

if TYPE_CHECKING:
    from polypath.plan.data import PlanData

_TABLES: Final = ("segments", "sack_blocks")
_ENDS: Final = ("source", "source_port", "destination", "destination_port")


def captures_for(data: PlanData, options: Options) -> Options:
    """The options with the captures that segments are read from, where they are to be recorded."""
    if _wanted(data, options) and options.captures == "none":
        return replace(options, captures="hosts")
    return options


def with_segments(
    data: PlanData, options: Options, files: Sequence[Path], frames: dict[str, pl.DataFrame], end_ns: int
) -> dict[str, pl.DataFrame]:
    """`frames`, with the run's segments where they are to be recorded. Raises EngineError."""
    return _from_captures(files, frames, end_ns) if _wanted(data, options) else frames


def _wanted(data: PlanData, options: Options) -> bool:
    return bool(options.segments or data["record"]["segments"])


def _from_captures(files: Sequence[Path], frames: Mapping[str, pl.DataFrame], end_ns: int) -> dict[str, pl.DataFrame]:
    """`frames` with segments, SACK blocks and headers; captures are stamped in nanoseconds since the run's origin.

    Connections and subflows are numbered as in `frames`, and other packets are left out. Without an established
    subflow, nothing is read. Packets sent after `end_ns`, when the programs were ended, are left out too. Raises
    EngineError.
    """
    if frames["subflow_ends"].is_empty():
        return dict(frames)
    try:
        told = capture.trace(files, segments=True).recording
    except capture.CaptureError as error:
        raise EngineError(f"the segments of the run cannot be read: {error}") from error
    origin = int(told.plan["capture"]["start_unix_ns"])
    numbers = told.table("subflow_ends").select(*_ENDS, "connection", "subflow")
    known = frames["subflow_ends"].select(*_ENDS, own=pl.col("connection"), own_subflow=pl.col("subflow"))
    numbers = numbers.join(known, on=_ENDS, how="inner").drop(_ENDS)

    def numbered(rows: pl.DataFrame) -> pl.DataFrame:
        columns = rows.columns
        rows = rows.join(numbers, on=["connection", "subflow"], how="inner", maintain_order="left")
        rows = rows.with_columns(pl.col("time_ns") + origin, connection=pl.col("own"), subflow=pl.col("own_subflow"))
        return rows.filter(pl.col("time_ns") <= end_ns).select(columns)

    found = dict(frames)
    for name in _TABLES:
        rows = told.table(name)
        if name == "segments":
            rows = numbered(rows.with_row_index("segment"))
            kept, rows = rows["segment"], rows.drop("segment")
            headers = told.table("headers")[kept]
            found["headers"] = headers.with_columns(segment=pl.int_range(len(kept), dtype=pl.UInt32))
        else:
            rows = numbered(rows)
        if rows.height or name in frames:
            found[name] = rows
    return found
