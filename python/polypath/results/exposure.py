"""An eavesdropper's view of a connection, by place, from a Recording with segments.

A place sees what is sent on every subflow that passes it, retransmissions and reinjections included; a byte that is
seen twice counts once. A segment that is lost counts as seen on its whole path: the tables do not tell where it was
lost. Streams are looked at by direction, in the stream's own order of bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from polypath.results import eavesdroppers, metrics
from polypath.results.eavesdroppers import Flow, Tap
from polypath.results.errors import MetricError
from polypath.results.metrics import Side
from polypath.results.ranges import Numbers, Ranges, readable_blocks
from polypath.results.recording import Recording

if TYPE_CHECKING:
    from polypath.plan.types import Work

AES_BLOCK_BYTES: Final = 16
"""The block of AES (FIPS 197)."""


@dataclass(frozen=True)
class Stream:
    """The bytes that one side of a connection sent, each transmission with the subflow that carried it, in order."""

    connection: int
    name: str
    side: Side
    #: Length of the stream, up to the last byte that was sent.
    bytes: int
    subflows: Numbers
    #: On which leg of its subflow each transmission went; 0 unless that migrated.
    legs: Numbers
    begins: Numbers
    ends: Numbers
    #: Bytes of each of the application's messages, and how many; None: it has none, or the plan does not tell.
    messages: tuple[int, int] | None

    @cached_property
    def carriers(self) -> Numbers:
        """Which transmission is the next on another subflow than each one's own; -1 where none follows."""
        turns = np.flatnonzero(np.diff(self.subflows)) + 1
        after = np.searchsorted(turns, np.arange(len(self.subflows)), side="right")
        return np.append(turns, -1)[after]

    def carried(self, flows: Iterable[Flow]) -> Any:
        """A mask of the transmissions that went by some of these flows."""
        found = np.zeros(len(self.subflows), dtype=bool)
        for flow in flows:
            found |= (self.subflows == flow.subflow) & (self.legs == flow.leg)
        return found

    @cached_property
    def neighbours(self) -> Mapping[int, int]:
        """The subflow after each one that carried data, the first after the last; of a single one itself."""
        own = [int(number) for number in np.unique(self.subflows)]
        return dict(zip(own, [*own[1:], *own[:1]], strict=True))

    @property
    def unlocated_bytes(self) -> int:
        """Bytes of the stream that no transmission in the table has."""
        return self.bytes - Ranges.union(self.begins, self.ends).bytes

    def only(self, chosen: Any) -> Ranges:
        """The bytes of the transmissions that a mask picks."""
        return Ranges.union(self.begins[chosen], self.ends[chosen])


@dataclass(frozen=True)
class Exposure:
    """What one place sees of one stream. Shares are of the stream's bytes, blocks or messages, from 0 to 1."""

    tap: Tap
    stream: Stream
    seen_bytes: int
    share: float
    #: Bytes of the longest run without a gap, and how many runs there are.
    longest_bytes: int
    runs: int
    #: Messages of the application seen whole; None where the stream has none that are known.
    messages_share: float | None
    #: Blocks that the key opens where they are chained (CBC).
    readable_share: float
    #: What can be changed on the way without a trace, where the MAC of a segment is in the next one of another subflow.
    alterable_share: float
    #: Bytes on subflows whose keys were negotiated on a subflow that passes here, too.
    keyed_share: float

    def figures(self) -> dict[str, int | float | None]:
        """What it sees, by name."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("tap", "stream")}


def streams(recording: Recording) -> list[Stream]:
    """Each direction of each connection that carried data. Raises MetricError where no segments were recorded."""
    table = recording.table("segments")
    if not table.height:
        raise MetricError("the result has no segments; record them with `run --plot` or `segments = true` in [record]")
    return list(recording.once("exposure-streams", lambda: list(_streams(recording, table))))


def _streams(recording: Recording, table: pl.DataFrame) -> Iterator[Stream]:
    known = eavesdroppers.ways(recording)
    sent = table.filter(pl.col("payload_bytes") > 0)
    for connection in metrics.connections(recording):
        if connection.id is None or _overlaps(recording, connection):
            continue
        for side in eavesdroppers.SIDES:
            rows = sent.filter(connection=connection.id, side=side)
            if connection.transport in ("tcp", "fallback"):  # captures have no data sequence numbers of TCP
                rows = rows.with_columns(pl.col("dsn").fill_null(pl.col("seq").cast(pl.Int64) - 1))
            rows = rows.drop_nulls("dsn")
            if not rows.height:
                continue
            begins = rows["dsn"].cast(pl.Int64).to_numpy()
            ends = begins + rows["payload_bytes"].cast(pl.Int64).to_numpy()
            subflows = rows["subflow"].cast(pl.Int64).to_numpy()
            yield Stream(
                connection=connection.id,
                name=connection.name,
                side=side,
                bytes=int(ends.max()),
                subflows=subflows,
                legs=known.legs(connection.id, side, subflows, rows["time_ns"].to_numpy()),
                begins=begins,
                ends=ends,
                messages=_messages(recording, connection, side, int(ends.max())),
            )


def _overlaps(recording: Recording, connection: metrics.Connection) -> bool:
    """Whether it has several streams of QUIC: the table has their offsets, but not which stream they are of."""
    work = _work(recording, connection)
    several = len(work.get("objects", ())) > 1 or ((work.get("count") or 1) > 1 and work.get("streams", "one") != "one")
    return connection.over_quic and (several or work.get("delivery") == "datagrams")


def left_out(recording: Recording) -> list[str]:
    """Names of connections of which nothing can be said: those with several streams of QUIC, or datagrams."""
    return [
        connection.name
        for connection in metrics.connections(recording)
        if connection.id is None or _overlaps(recording, connection)
    ]


def _work(recording: Recording, connection: metrics.Connection) -> Mapping[str, Any]:
    work: Work = recording.plan["applications"][connection.application].get("work", {})
    return work


def _messages(recording: Recording, connection: metrics.Connection, side: str, total: int) -> tuple[int, int] | None:
    """The length and number of messages, if all have the same length."""
    work = _work(recording, connection)
    match work.get("kind"):
        case "request-response":
            size = work["request_bytes" if side == "client" else "response_bytes"]
        case "ping-pong" | "messages":
            size = work["bytes"]
        case "stream":
            size = work["block_bytes"]
        case "fetch" if work.get("tls") is None:
            delays = metrics.delays(recording, connection)
            if not delays or None in delays or total % len(delays):
                return None
            size = total // len(delays)
        case _:
            return None
    return (int(size), total // int(size)) if size else None


def exposure(recording: Recording, *, links: int = 1, block_bytes: int = AES_BLOCK_BYTES) -> list[Exposure]:
    """What each place sees of each stream: every path, link and node, and with `links` above 1 every set of so many.

    Where routing chooses among several paths in the run, there are paths alone. Raises MetricError where no segments
    were recorded, for blocks of no length, and for more than 20,000 sets.
    """
    if block_bytes < 1:
        raise MetricError(f"a block has one byte at least, not {block_bytes}")
    if links < 1:
        raise MetricError(f"a set has one link at least, not {links}")
    known = eavesdroppers.ways(recording)
    places = [*eavesdroppers.of_paths(recording, known), *eavesdroppers.of_links(known), *eavesdroppers.of_nodes(known)]
    if links > 1:
        places += eavesdroppers.of_sets(known, links)
    found = []
    for stream in streams(recording):
        seen: dict[frozenset[Flow], Callable[[Tap], Exposure]] = {}
        for tap in places:
            own = frozenset(
                flow for flow in tap.covers if (flow.connection, flow.side) == (stream.connection, stream.side)
            )
            if not own:
                continue
            if own not in seen:
                seen[own] = _seen(stream, own, block_bytes)
            found.append(seen[own](tap))
    return found


def of_subflows(stream: Stream, subflows: set[int], block_bytes: int = AES_BLOCK_BYTES) -> Exposure:
    """What one place sees that these subflows pass, with all of their legs."""
    legs = range(int(stream.legs.max()) + 1)
    covers = frozenset(Flow(stream.connection, subflow, stream.side, leg) for subflow in subflows for leg in legs)
    return _seen(stream, covers, block_bytes)(Tap("path", "", covers))


def _seen(stream: Stream, flows: frozenset[Flow], block_bytes: int) -> Callable[[Tap], Exposure]:
    subflows = {flow.subflow for flow in flows}
    covered = stream.carried(flows)
    seen = stream.only(covered)
    unguarded = covered & (covered[stream.carriers] | (stream.carriers < 0))
    keyed = covered & np.isin(stream.subflows, [own for own in subflows if stream.neighbours.get(own) in subflows])
    blocks = stream.bytes // block_bytes
    figures = {
        "seen_bytes": seen.bytes,
        "share": seen.bytes / stream.bytes,
        "longest_bytes": seen.longest,
        "runs": len(seen),
        "messages_share": _whole(stream, seen),
        "readable_share": readable_blocks(seen, block_bytes) / blocks if blocks else 0.0,
        "alterable_share": stream.only(unguarded).bytes / stream.bytes,
        "keyed_share": stream.only(keyed).bytes / stream.bytes,
    }
    return lambda tap: Exposure(tap, stream, **figures)  # type: ignore[arg-type]


def _whole(stream: Stream, seen: Ranges) -> float | None:
    if stream.messages is None or not stream.messages[1]:
        return None
    size, count = stream.messages
    begins = np.arange(count, dtype=np.int64) * size
    return float(seen.contains(begins, begins + size).mean())


def links_to_read(recording: Recording, connection: int) -> int | None:
    """How many links must be tapped to read anything, if each subflow's keys are negotiated on the one after it.

    1 where a subflow and the next share a link, or there is one subflow only; otherwise 2. None where the ways of some
    are chosen in the run.
    """
    known = eavesdroppers.ways(recording)
    own = sorted(
        {int(number) for each in streams(recording) if each.connection == connection for number in each.subflows}
    )
    used = [known.links(connection, number) for number in own]
    if not used or None in used:
        return None
    pairs: Sequence[tuple[Any, Any]] = list(zip(used, [*used[1:], *used[:1]], strict=True))
    return 1 if any(one & other for one, other in pairs) else 2


def table(found: Sequence[Exposure]) -> pl.DataFrame:
    """A row for each place and stream, in the order given."""
    return pl.DataFrame(
        [
            {
                "connection": each.stream.name,
                "side": each.stream.side,
                "kind": each.tap.kind,
                "name": each.tap.name,
                "bytes": each.stream.bytes,
                **each.figures(),
            }
            for each in found
        ],
        infer_schema_length=None,
    )
