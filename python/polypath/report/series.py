"""The data of a run's charts, from its Recording."""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from polypath.report.columns import differences
from polypath.results import Recording, metrics
from polypath.results.metrics import Connection

#: Segments that are drawn one by one; of more, those that carry data for the first time are put together by time.
MOST_SEGMENTS: Final = 160_000
_SPANS: Final = 3000
#: ACKs and SACK blocks of a connection that are drawn; of more, the last of each subflow in a step of time.
_MOST_ANSWERS: Final = 20_000
_KINDS: Final = ("data", "retransmission", "reinjection")


def of_connection(recording: Recording, of: Connection, coarse: bool) -> dict[str, Any]:
    """A connection's charts by name; those without data are left out. `coarse`: a quarter of the resolution."""
    found = metrics.charts(recording, of, coarse=coarse)
    if of.id is not None and not coarse and (sent := sequence(recording, of)) is not None:
        found["sequence"] = sent
        if (back := answers(recording, of)) is not None:
            found["answers"] = back
    return found


def _samples(recording: Recording, of: Connection, side: str, name: str) -> pl.DataFrame:
    own = (pl.col("connection") == of.id) & (pl.col("side") == side)
    return recording.table(name).filter(own).sort("time_ns", maintain_order=True)


def sequence(recording: Recording, of: Connection) -> dict[str, Any] | None:
    """Every segment of the main direction that carries data, in the order of sending; None if none is recorded.

    Beyond MOST_SEGMENTS, first transmissions are combined. A row is then all data of a subflow in a step of time, from
    its first to its last byte. `length` is in the stream, `span` in the subflow's numbers.
    """
    sent = _samples(recording, of, of.sender, "segments").filter(
        pl.col("dsn").is_not_null() & (pl.col("payload_bytes") > 0)
    )
    if sent.is_empty():
        return None
    rows = sent.select(
        "time_ns",
        "subflow",
        pl.col("dsn").cast(pl.Int64),
        pl.col("seq").cast(pl.Int64),
        pl.col("payload_bytes").cast(pl.Int64).alias("length"),
        pl.col("kind").replace_strict({name: number for number, name in enumerate(_KINDS)}, default=0).alias("kind"),
        pl.lit(1).alias("count"),
    )
    of_all = rows.height
    if rows.height > MOST_SEGMENTS:
        rows = _together(rows)
    return {
        "of": of_all,
        "t": differences(rows["time_ns"].to_list()),
        "lane": rows["subflow"].to_list(),
        "dsn": differences(rows["dsn"].to_list()),
        "seq": differences(rows["seq"].to_list()),
        "length": differences(rows["length"].to_list()),
        "kind": rows["kind"].to_list(),
        "count": rows["count"].to_list() if rows.height < of_all else None,
        "span": differences(rows["span"].to_list()) if rows.height < of_all else None,
    }


def _together(rows: pl.DataFrame) -> pl.DataFrame:
    first, last = rows["time_ns"].item(0), rows["time_ns"].item(-1)
    step = max(1, (last - first) // _SPANS)
    piece = ((pl.col("time_ns") - first) // step).alias("piece")
    put = (
        rows.with_columns(piece, (pl.col("dsn") + pl.col("length")).alias("beyond"))
        .group_by("piece", "subflow", "kind", maintain_order=True)
        .agg(
            pl.col("time_ns").first(),
            pl.col("dsn").min(),
            pl.col("seq").min(),
            pl.col("beyond").max(),
            ((pl.col("seq") + pl.col("length")).max() - pl.col("seq").min()).alias("span"),
            pl.col("count").sum(),
        )
    )
    return put.select(
        "time_ns", "subflow", "dsn", "seq", (pl.col("beyond") - pl.col("dsn")).alias("length"), "kind", "count", "span"
    ).sort("time_ns", maintain_order=True)


def answers(recording: Recording, of: Connection) -> dict[str, Any] | None:
    """What the receiver acknowledged of each subflow in the subflow's numbers, and its SACK blocks.

    None for paths of QUIC, whose packets are not numbered by byte, and where no segment is recorded.
    """
    acks = _samples(recording, of, of.receiver, "segments").filter(pl.col("ack") > 0)
    if of.over_quic or acks.is_empty():
        return None
    blocks = _samples(recording, of, of.receiver, "sack_blocks")
    beyond, twice = blocks.filter(~pl.col("duplicate")), blocks.filter("duplicate")
    acks, sacks = _last(acks), pl.concat([_last(beyond), _last(twice)]).sort("time_ns", maintain_order=True)
    return {
        "t": differences(acks["time_ns"].to_list()),
        "lane": acks["subflow"].to_list(),
        "ack": differences(acks["ack"].cast(pl.Int64).to_list()),
        "sacks": {
            "t": differences(sacks["time_ns"].to_list()),
            "lane": sacks["subflow"].to_list(),
            "begin": differences(sacks["begin"].cast(pl.Int64).to_list()),
            "length": (sacks["end"].cast(pl.Int64) - sacks["begin"].cast(pl.Int64)).to_list(),
            "twice": sacks["duplicate"].cast(pl.UInt8).to_list(),
        },
    }


def _last(rows: pl.DataFrame) -> pl.DataFrame:
    if rows.height <= _MOST_ANSWERS:
        return rows
    first, last = rows["time_ns"].item(0), rows["time_ns"].item(-1)
    step = max(1, (last - first) // _SPANS)
    latest = pl.col("time_ns").max().over((pl.col("time_ns") - first) // step, "subflow")
    return rows.filter(pl.col("time_ns") == latest)
