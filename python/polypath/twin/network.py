"""The network of one captured connection: its paths, each with the data of the capture."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import polars as pl

from polypath.results import Recording
from polypath.twin import over_quic
from polypath.twin.estimate import Estimate, estimate
from polypath.twin.habits import Habits, habits
from polypath.twin.observed import Way, ways

#: A window that stays within this part of its largest stays the same; arrivals of this part of it are near it.
_SAME, _NEAR = 0.75, 0.7


#: Of which a twin can be made.
TRANSPORTS: Final = ("tcp", "mptcp", "fallback", "quic", "mpquic")
#: Of which packets have to be open.
SEALED: Final = ("quic", "mpquic")


@dataclass(frozen=True)
class Path:
    """A way between two addresses."""

    name: str
    source: str
    destination: str
    #: "client" or "server": who sends most of its bytes, whose direction is estimated.
    sender: str
    ways: tuple[Way, ...]
    estimate: Estimate
    #: Of a full packet's frame.
    packet_bytes: float

    def flight_bytes(self, trip_s: float) -> float:
        """Bytes that arrived within a round trip, by the 90th percentile of all segments' round trips."""
        told = np.concatenate([way.told_s for way in self.ways])
        size = np.concatenate([way.end - way.begin for way in self.ways])
        queued = np.nan_to_num(np.concatenate([way.queued_s for way in self.ways]))
        order = np.argsort(told[np.isfinite(told)], kind="stable")
        times, sizes = told[np.isfinite(told)][order], size[np.isfinite(told)][order]
        if not times.size:
            return 0.0
        total = np.concatenate(([0], np.cumsum(sizes)))
        since = np.searchsorted(times, times - trip_s - queued[np.isfinite(told)][order])
        return float(np.quantile(total[1:] - total[since], 0.9))


@dataclass(frozen=True)
class Network:
    """A connection and its paths."""

    connection: Mapping[str, Any]
    name: str
    paths: tuple[Path, ...]
    #: The bytes of others, which are left out.
    other_bytes: int
    #: Of the window that the receiver of most bytes offered: the least and the most of nearly all samples.
    window_bytes: tuple[int, int] | None
    #: By side; empty where packets were not seen.
    habits: Mapping[str, Habits] = field(default_factory=dict)
    #: Connections among which this one was taken, by name and bytes.
    chosen_of: Sequence[tuple[str, int]] = ()

    @property
    def fixed_window(self) -> int | None:
        """The receive window if it stayed the same and what arrived in a round trip came near it."""
        if self.window_bytes is None or self.window_bytes[0] < _SAME * self.window_bytes[1]:
            return None
        return self.window_bytes[1] if self._flight_bytes >= _NEAR * self.window_bytes[1] else None

    @property
    def _flight_bytes(self) -> float:
        """What arrived within a round trip at most times at best."""
        total = 0.0
        for path in self.paths:
            if path.estimate.delay_s is not None:
                total += path.flight_bytes(2 * path.estimate.delay_s.value)
        return total

    @property
    def trip_s(self) -> float | None:
        """The least round trip of all paths."""
        known = [2 * path.estimate.delay_s.value for path in self.paths if path.estimate.delay_s is not None]
        return min(known, default=None)


def network(recording: Recording, connection: str | None, *, both_ends: bool) -> Network | None:
    """The network of the connection of this name or number, or of that with most bytes.

    None without a connection whose data can be read.
    """
    ends = recording.tables["connection_ends"].with_columns(
        bytes=pl.col("client_received_bytes") + pl.col("server_received_bytes")
    )
    chosen = ends if connection is None else named(ends, connection)
    chosen = chosen.filter((pl.col("bytes") > 0) & pl.col("transport").is_in(TRANSPORTS))
    chosen = chosen.sort("bytes", descending=True)
    if chosen.is_empty():
        return None
    row = chosen.row(0, named=True)
    number = row["connection"]
    if row["transport"] in SEALED:
        mine = list(over_quic.ways(recording, number, both_ends=both_ends))
        if not mine:
            return None
    else:
        mine = [way for way in ways(recording, both_ends=both_ends) if way.connection == number]
    paths = tuple(_paths(recording, mine))
    return Network(
        row,
        row["name"],
        paths,
        int(ends["bytes"].sum() - row["bytes"]),
        _window(recording, row),
        {} if row["transport"] in SEALED else habits(recording, number, mine),
        ends.filter(pl.col("bytes") > 0).select("name", "bytes").rows(),
    )


def named(ends: pl.DataFrame, connection: str) -> pl.DataFrame:
    """By its name, or by its number in the order in which connections began, from 1."""
    if connection.isdecimal() and connection not in ends["name"].to_list():
        return ends.filter(pl.col("connection") == int(connection) - 1)
    return ends.filter(pl.col("name") == connection)


def _window(recording: Recording, row: Mapping[str, Any]) -> tuple[int, int] | None:
    receiver = "client" if row["client_received_bytes"] >= row["server_received_bytes"] else "server"
    of = (pl.col("connection") == row["connection"]) & (pl.col("side") == receiver)
    offered = recording.table("subflows").filter(of)["receive_window_bytes"].drop_nulls()
    offered = offered.filter(offered > 0)
    if offered.is_empty():
        return None
    return int(offered.quantile(0.2) or 0), int(offered.max())  # type: ignore[arg-type]


def _paths(recording: Recording, mine: Sequence[Way]) -> list[Path]:
    pairs = dict.fromkeys((way.source, way.destination) for way in mine)
    names = _names(recording, list(pairs))
    found = []
    for source, destination in pairs:
        both = [way for way in mine if (way.source, way.destination) == (source, destination)]
        sender = max(("client", "server"), key=lambda side: sum(way.wire.sum() for way in both if way.side == side))
        sent = tuple(way for way in both if way.side == sender)
        longest = max((float(way.wire.max()) for way in sent), default=0.0)
        settled, told = estimate(sent)
        found.append(Path(names[source, destination], source, destination, sender, tuple(settled), told, longest))
    return found


def _names(recording: Recording, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """The client's interface where each path has one of its own, which a capture may tell; else a number."""
    known = {
        address: interface["name"]
        for node in recording.plan["nodes"]
        for interface in node["interfaces"]
        for address in interface["addresses"]
    }
    names = [known.get(source, "") for source, _ in pairs]
    if len(set(names)) == len(names) and all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name) for name in names):
        return dict(zip(pairs, names, strict=True))
    return {pair: f"path{number}" for number, pair in enumerate(pairs)}
