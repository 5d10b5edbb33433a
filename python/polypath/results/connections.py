"""The connections of a run as a person asks for them: figures by attribute, tables as data frames.

The attributes are the keys of summary.json, with the same units (docs/summary.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, Self, TypeVar, overload

import polars as pl

from polypath.results import account, metrics
from polypath.results.recording import Recording

R = TypeVar("R")


class Rows(Sequence[R], Generic[R]):
    """Rows of one kind: a sequence that becomes a data frame."""

    def __init__(self, rows: Sequence[R], schema: Mapping[str, Any]) -> None:
        self._rows = tuple(rows)
        self._schema = schema

    @overload
    def __getitem__(self, place: int) -> R: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[R]: ...
    def __getitem__(self, place: int | slice) -> R | Sequence[R]:
        return self._rows[place]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[R]:
        return iter(self._rows)

    def __repr__(self) -> str:
        return f"<{len(self)} rows: {', '.join(self._schema)}>"

    def to_polars(self) -> pl.DataFrame:
        """One row each, with the attributes that are numbers or text as columns."""
        return pl.DataFrame(
            [{name: getattr(row, name) for name in self._schema} for row in self._rows], schema=dict(self._schema)
        )


@dataclass(frozen=True)
class Spread:
    """Mean, median, 95th percentile and maximum of samples; None without samples."""

    mean: float | None
    p50: float | None
    p95: float | None
    max: float | None


@dataclass(frozen=True)
class SubflowFigures:
    """A subflow of Multipath TCP, or a path of QUIC."""

    id: int
    #: Address and port of either end.
    source: str
    destination: str
    #: The interface at the client.
    interface: str
    backup: bool
    #: Seconds since the start of the run; None: never.
    established_s: float | None
    closed_s: float | None
    #: What arrived on it; this and the next two are None where bytes are not counted by path.
    bytes: int | None
    #: Part of all subflows' bytes.
    share: float | None
    goodput_mbps: float | None
    retransmitted_bytes: int | None
    #: Retransmitted bytes, as a part of all that it sent.
    resent: float | None
    reinjected_bytes: int | None
    #: The sender's samples of SRTT; None without any.
    srtt_ms: Spread | None

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        rtt = data["srtt_ms"]
        return cls(**{**data, "srtt_ms": None if rtt is None else Spread(**rtt)})


_SUBFLOW = {
    "id": pl.Int64,
    "source": pl.String,
    "destination": pl.String,
    "interface": pl.String,
    "backup": pl.Boolean,
    "established_s": pl.Float64,
    "closed_s": pl.Float64,
    "bytes": pl.Int64,
    "share": pl.Float64,
    "goodput_mbps": pl.Float64,
    "retransmitted_bytes": pl.Int64,
    "resent": pl.Float64,
    "reinjected_bytes": pl.Int64,
}


@dataclass(frozen=True)
class RequestFigures:
    """The delays of an application's requests. One without an answer is longer than any with one."""

    count: int
    unanswered: int
    #: Messages for which no packet had room; they are among the unanswered.
    refused: int
    #: None where a request without an answer decides, or there is none.
    median_s: float | None
    p95_s: float | None
    p99_s: float | None


@dataclass(frozen=True)
class ConnectionFigures:
    """What came of one application's connection.

    Times are in seconds, `start_s` and `end_s` since the start of the run. `goodput_mbps` is what iperf would print.
    """

    name: str
    #: tcp, mptcp, fallback (MPTCP that fell back to TCP), quic, mpquic, udp or icmp.
    transport: str
    goodput_mbps: float | None
    #: Delivered in order to the application that receives.
    bytes: int
    start_s: float
    end_s: float
    #: Whether the application did all that it was to do; None where it has no end of its own.
    finished: bool | None
    #: From the start to the last byte; None where it did not finish.
    completion_s: float | None
    #: The most that waited at the receiver for its turn.
    reassembly_max_bytes: int | None
    requests: RequestFigures
    subflows: Rows[SubflowFigures]
    _recording: Recording
    _of: metrics.Connection

    @property
    def delays_s(self) -> pl.Series:
        """The delay of each request in seconds, in the order of sending; null: unanswered."""
        found = [None if ns is None else ns / metrics.SECOND for ns in metrics.delays(self._recording, self._of)]
        return pl.Series("delay_s", found, dtype=pl.Float64)

    @property
    def rate(self) -> pl.DataFrame:
        """Goodput over time: `t_s`, the end of each sampling interval, and `mbps`."""
        times, rates = metrics.goodput_series(self._recording, self._of)
        return pl.DataFrame({"t_s": times, "mbps": rates}, schema={"t_s": pl.Float64, "mbps": pl.Float64})

    @property
    def samples(self) -> pl.DataFrame:
        """The samples of its subflows at both ends, as table `subflows` has them (docs/recording.md)."""
        return self._recording.table("subflows").filter(pl.col("connection") == self._of.id)

    @property
    def account(self) -> pl.DataFrame | None:
        """Why it was not faster: a row for each `cause` and `path` with `bytes` and a `sentence`, the largest first.

        The bytes and those delivered add up to what its links could have carried (docs/explain.md). None where no
        account was kept: `polypath.run(.., account=True)` keeps one.
        """
        kept = account.of_connection(self._recording, self._of)
        if kept is None:
            return None
        from polypath.results import reasons

        rows = [
            {"cause": each.cause, "path": each.path, "bytes": each.bytes, "sentence": reasons.sentence(each)}
            for each in kept.charges
        ]
        schema = {"cause": pl.String, "path": pl.String, "bytes": pl.Int64, "sentence": pl.String}
        return pl.DataFrame(rows, schema=schema).sort("bytes", descending=True, maintain_order=True)

    def __repr__(self) -> str:
        told = "no goodput" if self.goodput_mbps is None else f"{self.goodput_mbps:.2f} Mbps"
        return f"<{self.name}: {self.transport}, {told}, {len(self.subflows)} subflows>"


_CONNECTION = {
    "name": pl.String,
    "transport": pl.String,
    "goodput_mbps": pl.Float64,
    "bytes": pl.Int64,
    "start_s": pl.Float64,
    "end_s": pl.Float64,
    "finished": pl.Boolean,
    "completion_s": pl.Float64,
    "reassembly_max_bytes": pl.Int64,
}


def connections(recording: Recording) -> Rows[ConnectionFigures]:
    """Every application's connection, in the order of the scenario."""
    return recording.once("connection figures", lambda: Rows(_all(recording), _CONNECTION))


def _all(recording: Recording) -> list[ConnectionFigures]:
    found = []
    for of in metrics.connections(recording):
        data = metrics.summary(recording, of)
        requests = {each.name: data["requests"][each.name] for each in fields(RequestFigures)}
        found.append(
            ConnectionFigures(
                **{name: data[name] for name in _CONNECTION},
                requests=RequestFigures(**requests),
                subflows=Rows([SubflowFigures.of(each) for each in data["subflows"]], _SUBFLOW),
                _recording=recording,
                _of=of,
            )
        )
    return found


def named(recording: Recording, name: str) -> ConnectionFigures:
    """The connection of an application. Raises UnknownName, or MetricError where several have the name."""
    found = [each for each in connections(recording) if each.name == name]
    if not found:
        from polypath.results.errors import UnknownName

        raise UnknownName.of("connection", name, [each.name for each in connections(recording)])
    if len(found) > 1:
        raise metrics.MetricError(f"{len(found)} connections are called '{name}'; take one of `run.connections`")
    return found[0]


__all__ = ["ConnectionFigures", "RequestFigures", "Rows", "Spread", "SubflowFigures", "connections", "named"]
