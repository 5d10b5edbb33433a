"""Single segments of a connection, both directions, with their headers."""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from polypath.report.columns import differences
from polypath.results import Recording
from polypath.results.metrics import Connection

#: Segments on a page at most; of more, those that say something besides stay, and of the others every so many.
MOST: Final = 160_000
SIDES: Final = ("client", "server")
KINDS: Final = ("ack", "data", "retransmission", "reinjection")
#: Frames that most packets of QUIC have.
_USUAL: Final = r"^(?:(?:PATH_)?ACK[^,]*|STREAM \d+|PADDING)(?:, (?:(?:PATH_)?ACK[^,]*|STREAM \d+|PADDING))*$"


def of_connection(recording: Recording, of: Connection, most: int) -> dict[str, Any] | None:
    """Columns of `most` segments, by sender, subflow and time; None if there are none.

    `every` gives the step of the thinning, for two classes of segments. The second class has nothing but timestamps and
    DSS, or the usual frames.
    """
    if of.id is None:
        return None
    rows = recording.table("segments").with_row_index("segment").filter(connection=of.id)
    rows = rows.join(recording.table("headers"), on="segment", how="inner", maintain_order="left")
    if rows.is_empty():
        return None
    key = ["time_ns", "side", "subflow", "ack"]
    blocks = recording.table("sack_blocks").filter(connection=of.id)
    answers = blocks.select(*key, pl.lit(True).alias("answers")).unique()
    rows = rows.join(answers, on=key, how="left", maintain_order="left")
    kept, every = _kept(rows, of, most)
    kept = kept.sort("side", "subflow", "time_ns", "segment")
    texts = kept["options"].unique(maintain_order=True).to_list()
    flags = kept["flags"].unique(maintain_order=True).to_list()
    numbered = kept.with_row_index("row").filter("answers").unique(key, keep="first", maintain_order=True)
    sacks = numbered.select("row", *key).join(blocks, on=key, how="inner", maintain_order="left_right")
    return {
        "of": rows.height,
        "every": every,
        "t": differences(kept["time_ns"].to_list()),
        "side": _places(kept["side"], SIDES),
        "lane": kept["subflow"].to_list(),
        "seq": _differences(kept["seq"]),
        "ack": _differences(kept["ack"]),
        "length": kept["payload_bytes"].to_list(),
        "kind": _places(kept["kind"], KINDS),
        "flags": _places(kept["flags"], flags),
        "texts": [flags, texts],
        "options": _places(kept["options"], texts),
        "stamp": _differences(kept["timestamp"]),
        "echo": _differences(kept["timestamp_echo"]),
        "data_ack": _differences(kept["data_ack"]),
        "data_seq": _differences(kept["data_seq"]),
        "data_bytes": kept["data_bytes"].to_list(),
        "data_fin": kept.with_row_index("row").filter("data_fin")["row"].to_list(),
        "sacks": {
            "row": differences(sacks["row"].to_list()),
            "begin": _differences(sacks["begin"]),
            "length": (sacks["end"].cast(pl.Int64) - sacks["begin"].cast(pl.Int64)).to_list(),
            "twice": sacks["duplicate"].cast(pl.UInt8).to_list(),
        },
    }


def _kept(rows: pl.DataFrame, of: Connection, most: int) -> tuple[pl.DataFrame, tuple[int, int]]:
    if rows.height <= most:
        return rows, (1, 1)
    usual = pl.col("options").str.contains(_USUAL) if of.over_quic else pl.col("options") == ""
    plain = (
        usual
        & pl.col("flags").is_in(["ACK", "PSH, ACK", "1-RTT"])
        & pl.col("kind").is_in(["ack", "data"])
        & ~pl.col("data_fin")
        & pl.col("answers").is_null()
    )
    told, others = rows.filter(~plain), rows.filter(plain)
    special = max(1, -(-told.height // most))
    told = told.gather_every(special)
    every = max(1, -(-others.height // max(1, most - told.height)))
    return pl.concat([told, others.gather_every(every)]), (special, every)


def _differences(column: pl.Series) -> list[int | None]:
    return differences(column.cast(pl.Int64).to_list())


def _places(column: pl.Series, names: Any) -> list[int]:
    places = {name: place for place, name in enumerate(names)}
    return [places[name] for name in column.to_list()]
