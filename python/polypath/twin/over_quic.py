"""What a capture shows of each direction of each path of a QUIC connection whose packets are open.

Acknowledgements carry their own delay, and packet numbers show what is missing. There are no timestamps. A capture
at the receiver shows time in queues only if its own frames are acknowledged, as frames that give credit are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import polars as pl

from polypath.results import Recording
from polypath.twin.observed import ETHERNET, IPV4, IPV6, NS, Flags, Floats, Ints, Place, Way, place

UDP: Final = 8
#: Packets of a handshake's flight follow one another within this part of the time to the answer.
_AT_ONCE: Final = 0.1
#: Between times in queues that are further apart nothing is known.
_NEAR_S: Final = 0.25
#: Behind the handshake.
_OPEN: Final = "1-RTT"


def ways(recording: Recording, connection: int, *, both_ends: bool) -> Iterator[Way]:
    """The directions with data; none of a connection whose packets are sealed."""
    table = recording.tables["segments"].with_row_index("segment").filter(pl.col("connection") == connection)
    table = table.join(recording.table("headers"), on="segment").join(recording.table("packets"), on="segment")
    told = pl.col("ack_delay_ns").max().over("side", "path", "acked_ns")
    table = table.sort("segment").with_columns(arrived_ns=pl.col("acked_ns") - told.fill_null(0))
    ends = recording.tables["subflow_ends"].filter(pl.col("connection") == connection)
    for row in ends.iter_rows(named=True):
        mine = table.filter(pl.col("subflow") == row["subflow"])
        handshake = _handshake(mine)
        for side, other in (("client", "server"), ("server", "client")):
            sent = mine.filter((pl.col("side") == side) & (pl.col("flags") == _OPEN))
            if sent["payload_bytes"].sum():
                where = place(None if handshake is None else handshake[:2], side, both_ends=both_ends)
                yield _way(row, side, where, handshake, sent, mine.filter(pl.col("side") == other))


def _handshake(mine: pl.DataFrame) -> tuple[float, float, float] | None:
    """Seconds from what the client sent last before the first answer to that, from there to what it sent then, and
    bytes of these packets. So a connection begins, and so a path is validated (RFC 9000 section 8.2)."""
    client, server = (mine.filter(pl.col("side") == side) for side in ("client", "server"))
    if client.is_empty() or server.is_empty():
        return None
    answer = server.row(0, named=True)
    # Hosts of the simulator answer within no time: the order in the capture counts.
    asked, then = (
        client.filter(of) for of in (pl.col("segment") < answer["segment"], pl.col("segment") > answer["segment"])
    )
    if asked.is_empty() or then.is_empty():
        return None
    first, last, answered = (each / NS for each in (asked["time_ns"][0], asked["time_ns"][-1], answer["time_ns"]))
    if last - first > _AT_ONCE * (answered - first):
        return None
    flights = asked.filter(pl.col("time_ns") == asked["time_ns"][-1]), server.filter(time_ns=answer["time_ns"])
    size = sum(int(flight["bytes"].sum()) for flight in flights) + 2 * (ETHERNET + IPV4 + UDP)
    return answered - last, then["time_ns"][0] / NS - answered, float(size)


def _way(
    row: dict[str, Any],
    side: str,
    where: Place,
    handshake: tuple[float, float, float] | None,
    sent: pl.DataFrame,
    answers: pl.DataFrame,
) -> Way:
    has_data = sent["payload_bytes"].to_numpy() > 0
    holes = _holes(sent["seq"].to_numpy().astype(np.int64), sent["path"].to_numpy().astype(np.int64), has_data)
    data = sent.filter(pl.col("payload_bytes") > 0)
    payload = data["payload_bytes"].to_numpy().astype(np.int64)
    end = np.cumsum(payload)
    sent_s = data["time_ns"].to_numpy() / NS
    enters_s, least_s = sent_s, 0.0
    if where is Place.RECEIVER:
        told_s, lost = sent_s, holes
        queued_s = _by_answers(answers, sent_s)
        enters_s = sent_s - np.nan_to_num(queued_s)
    else:
        told_s = data["arrived_ns"].cast(pl.Float64).fill_null(float("nan")).to_numpy() / NS
        exact = data["ack_delay_ns"].is_not_null().to_numpy()
        queued_s = np.where(exact, told_s - sent_s, np.nan)
        least_s = float(np.nanmin(queued_s)) if exact.any() else 0.0
        queued_s = queued_s - least_s
        lost = data["lost"].to_numpy() | holes
    nothing = np.zeros(end.size, dtype=bool)
    return Way(
        connection=row["connection"],
        subflow=row["subflow"],
        side=side,
        source=row["source"],
        destination=row["destination"],
        place=where,
        handshake_s=None if handshake is None else handshake[0] + handshake[1],
        handshake_bytes=0.0 if handshake is None else handshake[2],
        sent_s=sent_s,
        begin=end - payload,
        end=end,
        offset=data["dsn"].fill_null(0).to_numpy().astype(np.int64),
        wire=data["bytes"].to_numpy() + float(ETHERNET + (IPV6 if ":" in row["source"] else IPV4) + UDP),
        told_s=told_s,
        queued_s=queued_s,
        enters_s=enters_s,
        least_s=least_s,
        delayed=nothing,
        again=nothing,
        packets=np.ones(end.size),
        lost=lost,
        holes=holes,
        segment=int(payload.max()),
        stamped=where is not Place.RECEIVER,
    )


def _holes(numbers: Ints, spaces: Ints, has_data: Flags) -> Flags:
    """The packets with data that follow missing numbers.

    The packets with these numbers never come: they were lost before the place of capture.
    """
    found = np.zeros(numbers.size, dtype=bool)
    for space in np.unique(spaces):
        (at,) = np.nonzero(spaces == space)
        known = np.unique(numbers[at])
        missing = known[:-1][np.diff(known) > 1]
        highest = np.maximum.accumulate(numbers[at])
        found[at[np.searchsorted(highest, missing, side="right")]] = True
    # The next packet with data stands for one without.
    after = np.asarray(np.cumsum(has_data) - has_data, dtype=np.int64)
    marked = np.unique(after[found])
    kept = np.zeros(int(has_data.sum()), dtype=bool)
    kept[marked[marked < kept.size]] = True
    return kept


def _by_answers(own: pl.DataFrame, times: Floats) -> Floats:
    """Time in queues at these times, from the receiver's own packets: their acknowledgements come through the queue."""
    acked = own.filter(pl.col("ack_delay_ns").is_not_null() & (pl.col("flags") == _OPEN)).sort("acked_ns")
    if acked.height < 2:
        return np.full(times.size, np.nan)
    at = acked["acked_ns"].to_numpy() / NS
    trips = (acked["arrived_ns"] - acked["time_ns"]).to_numpy() / NS
    waited = np.interp(times, at, trips - trips.min())
    after: Ints = np.searchsorted(at, times).astype(np.int64)
    before, behind = at[np.maximum(after - 1, 0)], at[np.minimum(after, at.size - 1)]
    known = (times >= at[0]) & (times <= at[-1]) & (behind - before <= _NEAR_S)
    return np.where(known, waited, np.nan)
