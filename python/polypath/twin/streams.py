"""The streams of a QUIC connection in captures at both ends: what each side sent, and its turns on each stream.

A packet number names one transmission, so that its arrival is known whatever was sent again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import polars as pl

from polypath.results import Recording
from polypath.twin import over_quic
from polypath.twin.observed import NS, Floats, Way
from polypath.twin.pattern import Turn
from polypath.twin.sent import Ends, Pieces, Sent, ends_of, later

#: Behind the handshake.
_OPEN: Final = "1-RTT"


def side(both: Recording, alone: Recording, connection: int, name: str) -> Sent | None:
    """What a side sent; None without data. `alone` is the capture at the other end."""
    found = [way for way in over_quic.ways(both, connection, both_ends=True) if way.side == name]
    if not found:
        return None
    seen, ends = _arrivals(alone, name, both), ends_of(both)
    packets = _packets(both).filter((pl.col("connection") == connection) & (pl.col("side") == name))
    arrived, pieces = [], []
    for way in found:
        mine = packets.filter((pl.col("subflow") == way.subflow) & (pl.col("payload_bytes") > 0)).sort("segment")
        there = seen.get(ends[connection, way.subflow], {})
        times = np.array([there.get(key, np.nan) for key in mine.select("path", "seq").iter_rows()])
        arrived.append(times)
        pieces.append(_pieces(way, mine, times, both))
    return Sent.of(found, arrived, pieces, exact=True)


def _packets(recording: Recording) -> pl.DataFrame:
    table = recording.tables["segments"].with_row_index("segment")
    table = table.join(recording.table("headers").select("segment", "flags"), on="segment")
    return table.join(recording.table("packets"), on="segment").filter(pl.col("flags") == _OPEN)


def _arrivals(alone: Recording, name: str, both: Recording) -> Mapping[Ends, Mapping[tuple[int, int], float]]:
    """When each packet of a side was captured at the other end, by number space and number."""
    ends, later_ns = ends_of(alone), later(alone, both)
    found: dict[Ends, dict[tuple[int, int], float]] = {}
    data = _packets(alone).filter((pl.col("side") == name) & (pl.col("payload_bytes") > 0))
    for connection, subflow, path, seq, time_ns in data.select(
        "connection", "subflow", "path", "seq", "time_ns"
    ).iter_rows():
        found.setdefault(ends[connection, subflow], {})[path, seq] = (time_ns + later_ns) / NS
    return found


def _pieces(way: Way, packets: pl.DataFrame, arrived_s: Floats, recording: Recording) -> Pieces:
    numbered = packets.select("segment").with_row_index("packet")
    frames = recording.table("stream_frames").join(numbered, on="segment").sort("packet", maintain_order=True)
    of = frames["packet"].to_numpy().astype(np.int64)
    length = frames["bytes"].to_numpy().astype(np.int64)
    payload = np.bincount(of, weights=length, minlength=packets.height)
    return Pieces(
        stream=frames["stream"].to_numpy().astype(np.int64),
        offset=frames["offset"].to_numpy().astype(np.int64),
        length=length,
        sent_s=way.sent_s[of],
        arrived_s=arrived_s[of],
        wire=way.wire[of] * length / payload[of],
    )


def turns(recording: Recording, connection: int) -> Mapping[int, Sequence[Turn]]:
    """The turns of both sides on each stream, in the order in which they were sent; repeats alone begin none."""
    packets = _packets(recording).filter(pl.col("connection") == connection)
    frames = recording.table("stream_frames").join(packets.select("segment", "side", "time_ns"), on="segment")
    frames = frames.sort("segment", maintain_order=True).with_columns(end=pl.col("offset") + pl.col("bytes"))
    highest: dict[tuple[int, str], int] = {}
    found: dict[int, list[Turn]] = {}
    for stream, name, time_ns, end in frames.select("stream", "side", "time_ns", "end").iter_rows():
        new = max(0, end - highest.get((stream, name), 0))
        highest[stream, name] = max(end, highest.get((stream, name), 0))
        mine = found.setdefault(stream, [])
        at_s = time_ns / NS
        if mine and mine[-1].side == name:
            mine[-1] = Turn(name, mine[-1].start_s, at_s, mine[-1].bytes + new, stream)
        elif new:
            mine.append(Turn(name, at_s, at_s, new, stream))
    return found
