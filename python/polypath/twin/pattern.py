"""The requests of an application to its connection, from its segments: turns of either side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import polars as pl

from polypath.results import Recording
from polypath.twin.observed import NS, Place, Way

#: A request is at most this part of what answers it.
_REQUEST: Final = 0.2
#: Requests that are as long as their answers are some, and each side waits for nearly all of its way.
_SEVERAL, _NEARLY = 3, 0.8
#: A sender pauses for so many round trips. A stream has so many blocks, and is busy for less than this part of it.
_PAUSE, _MANY_BLOCKS, _BUSY = 1.5, 5, 0.7
#: A shorter time before an answer is what its first packets take.
_THINKS_S: Final = 0.005


@dataclass(frozen=True)
class Turn:
    """New bytes of one side, up to the first of the other side's."""

    side: str
    start_s: float
    end_s: float
    bytes: int
    #: Of QUIC.
    stream: int = 0


@dataclass(frozen=True)
class Pattern:
    """An application of the scenario language."""

    #: Whether it goes on until the run ends.
    lasts: bool
    kind: str
    #: Keys of its table with their values, as they are written.
    settings: dict[str, str | int | bool]
    #: What is not so simple, for a reader.
    note: str


def turns(recording: Recording, connection: int) -> list[Turn]:
    """The turns of a connection, in the order in which the capture has them."""
    table = recording.tables["segments"].with_row_index("segment").join(recording.tables["headers"], on="segment")
    data = table.filter((pl.col("connection") == connection) & (pl.col("payload_bytes") > 0)).sort("time_ns")
    data = data.with_columns(last=pl.coalesce("dsn", "seq") + pl.col("payload_bytes"))
    data = data.with_columns(new=pl.col("last").cum_max().over("side").diff().over("side"))
    first = pl.col("last").cum_count().over("side") == 1
    data = data.with_columns(new=pl.when(first).then(pl.col("payload_bytes")).otherwise(pl.col("new")))
    # Streams of QUIC begin at 0, each.
    of_streams = pl.when(pl.col("kind") == "data").then(pl.col("payload_bytes")).otherwise(0)
    data = data.with_columns(new=pl.when(pl.col("flags") == "1-RTT").then(of_streams).otherwise(pl.col("new")))
    data = data.with_columns(turn=(pl.col("side") != pl.col("side").shift()).fill_null(value=False).cum_sum())
    found: list[Turn] = []
    grouped = data.group_by("turn", maintain_order=True).agg(
        pl.col("side").first(),
        # What is sent again before a turn is no part of it.
        pl.col("time_ns").filter(pl.col("new") > 0).min().fill_null(pl.col("time_ns").min()).alias("start"),
        pl.col("time_ns").max().alias("end"),
        pl.col("new").sum(),
    )
    for _, side, start, end, new in grouped.iter_rows():
        if new == 0 and found:  # repeats alone
            continue
        if found and found[-1].side == side:
            last = found.pop()
            found.append(Turn(side, last.start_s, end / NS, last.bytes + int(new)))
        else:
            found.append(Turn(side, start / NS, end / NS, int(new)))
    return found


def pattern(recording: Recording, connection: int, ways: Sequence[Way], trip_s: float) -> Pattern:
    """What the application did; `trip_s` is the least round trip."""
    found = turns(recording, connection)
    ends = recording.tables["connection_ends"].filter(pl.col("connection") == connection).row(0, named=True)
    asking = [each for each in found if each.side == "client"]
    answers = [each for each in found if each.side == "server"]
    asked, answered = sum(each.bytes for each in asking), sum(each.bytes for each in answers)
    if answers and asking and found[0].side == "client":
        few = asked <= _REQUEST * answered
        if few or (len(asking) >= _SEVERAL and _alternate(found, ways, trip_s)):
            return _requests(found, asking, answers, ways, trip_s)
    reverse = answered > asked
    started = ends["start_ns"] / NS
    note = ""
    if min(asked, answered) > 0.02 * max(asked, answered):
        note = f"{min(asked, answered):,} bytes that went the other way are left out"
    settings: dict[str, str | int | bool] = {"reverse": True} if reverse else {}
    blocks = _blocks([way for way in ways if way.side == ("server" if reverse else "client")], trip_s)
    if blocks is not None:
        seconds = max(0.001, ends["last_byte_ns"] / NS - started if ends["last_byte_ns"] is not None else trip_s)
        size, rate = blocks
        settings |= {
            "rate": f"{rate / 1e6:.6g} Mbps",
            "block": f"{size} B",
            "duration": f"{seconds + size * 8 / rate:.6g} s",
        }
        return Pattern(lasts=False, kind="stream", settings=settings, note=note)
    if ends["end_ns"] is not None:
        settings["size"] = f"{max(asked, answered)} B"
    else:
        settings["duration"] = f"{max(0.001, recording.metadata.end_ns / NS - started):.6g} s"
    return Pattern(lasts="duration" in settings, kind="bulk", settings=settings, note=note)


def _between(ways: Sequence[Way], trip_s: float) -> float:
    """What a capture has of a request's way there and of its answer's way back."""
    way = ways[0]
    at_client = Place.RECEIVER if way.side == "server" else Place.SENDER
    if way.place in (Place.BOTH, Place.BETWEEN):
        return trip_s / 2
    return trip_s if way.place is at_client else 0.0


def _alternate(found: Sequence[Turn], ways: Sequence[Way], trip_s: float) -> bool:
    """Whether each side waits for the other, as it does not where both send at once."""
    gaps: dict[str, list[float]] = {"client": [], "server": []}
    for before, after in pairwise(found):
        gaps[after.side].append(after.start_s - before.end_s)
    least = {"server": _between(ways, trip_s), "client": trip_s - _between(ways, trip_s)}
    return all(np.median(gaps[side]) >= _NEARLY * least[side] for side in gaps)


def _blocks(ways: Sequence[Way], trip_s: float) -> tuple[int, float] | None:
    """Bytes of a block and the rate in bits a second, of a sender that pauses between blocks; None if it does not."""
    if not ways:
        return None
    first = [np.diff(np.maximum.accumulate(way.end), prepend=0) > 0 for way in ways]
    sent = np.concatenate([way.sent_s[new] for way, new in zip(ways, first, strict=True)])
    size = np.concatenate([(way.end - way.begin)[new] for way, new in zip(ways, first, strict=True)])
    order = np.argsort(sent, kind="stable")
    sent, size = sent[order], size[order]
    starts = np.concatenate(([0], np.flatnonzero(np.diff(sent) > _PAUSE * trip_s) + 1))
    if starts.size < _MANY_BLOCKS:
        return None
    blocks = np.add.reduceat(size, starts)
    ends = np.concatenate((starts[1:], [sent.size])) - 1
    busy = float((sent[ends] - sent[starts] + trip_s).sum())
    lasted = float(sent[starts[-1]] - sent[0])
    if busy > _BUSY * lasted:
        return None
    return int(np.median(blocks)), float(blocks[:-1].sum()) * 8 / lasted


def _told_s(turn: Turn, ways: Sequence[Way]) -> float:
    """When all of a turn was told to have arrived."""
    told = [way.told_s[(way.sent_s >= turn.start_s) & (way.sent_s <= turn.end_s)] for way in ways]
    return float(np.nanmax(np.concatenate([*told, [turn.end_s]])))


def _requests(
    found: Sequence[Turn], asking: Sequence[Turn], answers: Sequence[Turn], ways: Sequence[Way], trip_s: float
) -> Pattern:
    answering = [way for way in ways if way.side == "server"]
    sizes = np.array([each.bytes for each in answers], dtype=np.float64)
    pairs = list(pairwise(found))
    slept = [after.start_s - _told_s(before, answering) for before, after in pairs if after.side == "client"]
    thought = [after.start_s - before.end_s for before, after in pairs if after.side == "server"]
    between = _between(ways, trip_s)
    settings: dict[str, str | int | bool] = {
        "count": len(asking),
        "request": f"{round(float(np.median([each.bytes for each in asking])))} B",
        "response": f"{round(float(sizes.mean()))} B",
    }
    if slept and (sleep := float(np.median(slept))) > 1e-4:
        settings["interval"] = f"{sleep * 1e3:.4g} ms"
    if thought and (think := float(np.quantile(thought, 0.1)) - between) > _THINKS_S:
        settings["think"] = f"{think * 1e3:.4g} ms"
    note = ""
    if sizes.std() > 0.1 * sizes.mean():
        note = f"responses are of {sizes.min():,.0f} to {sizes.max():,.0f} bytes; each has their mean here"
    return Pattern(lasts=False, kind="request-response", settings=settings, note=note)
