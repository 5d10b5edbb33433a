"""The behaviour of the two hosts' stacks, from a connection's packets: TCP options and acknowledgements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from polypath.results import Recording
from polypath.twin.observed import NS, Floats, Ints, Place, Way

#: Linux's longest delay of an acknowledgement, which the profile has (TCP_DELACK_MIN).
_USUAL_S: Final = 0.040
#: A delay is another one if it is this much longer or shorter, in at least so many acknowledgements.
_OTHER, _FEW = 0.25, 5
#: What a host takes to acknowledge at once.
_AT_ONCE_S: Final = 0.002


@dataclass(frozen=True)
class Habits:
    """The habits of one host."""

    #: Options that it does not offer, by the keys of a scenario.
    lacking: Sequence[str]
    #: Full segments that one of its acknowledgements is about, on average; None where it acknowledges little.
    segments_per_ack: float | None
    #: How long it delays the acknowledgement of a single segment; None where nothing tells.
    delay_s: float | None

    def lines(self) -> Iterator[str]:
        """As they are written below the host."""
        for key in self.lacking:
            yield f"{key} = false  # not in its SYN"
        if self.delay_s is not None and abs(self.delay_s / _USUAL_S - 1) > _OTHER:
            yield f'delayed_ack = "{self.delay_s * 1e3:.4g} ms"  # the longest, of acknowledgements of one segment'
        if self.segments_per_ack is not None:
            yield f"# acknowledges {self.segments_per_ack:.2g} segments at a time"


def habits(recording: Recording, connection: int, ways: Sequence[Way]) -> Mapping[str, Habits]:
    """By side, "client" and "server"."""
    segments = recording.tables["segments"].with_row_index("segment").join(recording.tables["headers"], on="segment")
    mine = segments.filter(pl.col("connection") == connection)
    return {side: _of(mine, side, [way for way in ways if way.side != side]) for side in ("client", "server")}


def _of(mine: pl.DataFrame, side: str, towards: Sequence[Way]) -> Habits:
    flags = "SYN" if side == "client" else "SYN, ACK"
    acks = mine.filter((pl.col("side") == side) & (pl.col("payload_bytes") == 0) & (pl.col("flags") == "ACK"))
    counts, waits = [], []
    for way in towards:
        own = acks.filter(pl.col("subflow") == way.subflow)
        times, numbers = own["time_ns"].to_numpy() / NS, own["ack"].to_numpy().astype(np.int64)
        counts.append(_segments(numbers, way.segment))
        if way.place is Place.RECEIVER:
            waits.append(delays(times, numbers, way.end, way.told_s, way.segment))
    count, delay = (np.concatenate([np.zeros(0), *found]) for found in (counts, waits))
    return Habits(
        tuple(_lacking(mine.filter((pl.col("side") == side) & (pl.col("flags") == flags)), mine, side)),
        float(count.mean()) if count.size >= _FEW else None,
        float(np.quantile(delay, 0.9)) if delay.size >= _FEW else None,
    )


def _lacking(opening: pl.DataFrame, mine: pl.DataFrame, side: str) -> Iterator[str]:
    """Options that the host's first SYN does not offer. A server answers only those that it was asked for."""
    if opening.is_empty():
        return
    first = opening.row(0, named=True)
    asked = mine.filter((pl.col("side") == "client") & (pl.col("flags") == "SYN"))
    for key, is_there in _OFFERED.items():
        was_asked = side == "client" or (not asked.is_empty() and is_there(asked.row(0, named=True)))
        if was_asked and not is_there(first):
            yield key


#: RFC 2018 section 2, RFC 7323 sections 3.2 and 2.2.
_OFFERED: Final[Mapping[str, Callable[[dict[str, Any]], bool]]] = {
    "sack": lambda row: "SACK_PERM" in row["options"],
    "timestamps": lambda row: row["timestamp"] is not None,
    "window_scaling": lambda row: "WS=" in row["options"],
}


def _segments(numbers: Ints, segment: int) -> Floats:
    """How many full segments each acknowledgement is about that is about any."""
    advanced = np.diff(np.maximum.accumulate(numbers)) / segment if numbers.size > 1 else np.zeros(0)
    return np.asarray(advanced[advanced > 0], dtype=np.float64)


def delays(times: Floats, numbers: Ints, end: Ints, arrived: Floats, segment: int) -> Floats:
    """From a segment's arrival to the acknowledgement that ends with it and is about it alone, where that was not at
    once. `times` and `numbers` are the acknowledgements'."""
    at = dict(zip(end.tolist(), arrived.tolist(), strict=True))
    found = []
    for before, number, time in zip(numbers, numbers[1:], times[1:], strict=False):
        since = at.get(int(number))
        if since is not None and 0 < number - before <= segment and time - since > _AT_ONCE_S:
            found.append(time - since)
    return np.array(found, dtype=np.float64)
