"""A run in the shape of `iperf3 -J`: start, intervals of a second, end (iperf 3.12, src/iperf_api.c).

A connection is a stream, as iperf3 sees a socket, whatever the number of its subflows. What the Recording does not
know is left out: cookie, system_info, cpu_utilization_percent, sizes of segments and windows in bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import polars as pl

from polypath.errors import PolypathError
from polypath.results import Recording, metrics
from polypath.results.metrics import SECOND, Connection, Subflow

#: Applications that iperf3 knows, and what captures hold.
KINDS: Final = frozenset({"bulk", "stream", "captured"})
_PROTOCOLS: Final = {"tcp": "TCP", "mptcp": "TCP", "fallback": "TCP", "quic": "QUIC", "mpquic": "QUIC"}
#: Names that a message lists.
_MOST_NAMES: Final = 10


class ShapeError(PolypathError, ValueError):
    """The run has nothing that iperf3 measures, or several tests; the message is one line."""


def write(recording: Recording, out: Path, application: str | None = None) -> int:
    """Writes the file; returns how many streams it has. Raises ShapeError."""
    found = document(recording, application)
    out.write_text(to_json(found), encoding="utf-8")
    return len(found["start"]["connected"])


def to_json(found: Mapping[str, Any]) -> str:
    return json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def document(recording: Recording, application: str | None = None) -> dict[str, Any]:
    """The output of `iperf3 -J` at the client. If there are several applications, `application` names one.

    Parallel connections (`count`) are streams of one test, under the name of their application. Raises ShapeError.
    """
    streams = [_Stream(recording, each) for each in _chosen(recording, application)]
    start, end = min(each.of.start_ns for each in streams), max(each.of.until_ns for each in streams)
    edges = [*range(start, end, SECOND), end]
    made = recording.metadata
    return {
        "start": _start(recording, streams),
        "intervals": [_interval(streams, start, *edge) for edge in pairwise(edges)],
        "end": _end(streams),
        "title": made.scenario,
        "extra_data": f"polypath, engine {made.engine}, seed {made.seed}: intervals count what the receiver was given",
    }


def _chosen(recording: Recording, name: str | None) -> list[Connection]:
    applications = recording.plan.get("applications", [])
    known = [
        each
        for each in metrics.connections(recording)
        if each.id is not None and applications[each.application]["work"]["kind"] in KINDS
    ]
    if not known:
        raise ShapeError("no application of the run is a transfer that iperf3 would measure (bulk, stream)")
    names = list(dict.fromkeys(_test(each, known) for each in known))
    if name is None and len(names) > 1:
        raise ShapeError(f"the run has several transfers; name one with --application: {_listed(names)}")
    chosen = [each for each in known if name in (None, each.name, _test(each, known))]
    if not chosen:
        raise ShapeError(f"no transfer is called '{name}'; there is {_listed(names)}")
    return chosen


def _test(of: Connection, known: Sequence[Connection]) -> str:
    """The test that a connection is a stream of: `bulk` of `bulk-1`, `bulk-2` and so on."""
    base, number = re.fullmatch(r"(.*?)(?:-(\d+))?", of.name, re.DOTALL).groups()  # type: ignore[union-attr]
    names = {each.name for each in known}
    return base if number and {f"{base}-1", f"{base}-2"} <= names else of.name


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_NAMES]) + (f" and {len(names) - _MOST_NAMES} more" if names[_MOST_NAMES:] else "")


@dataclass(frozen=True)
class _Stream:
    """A connection, and what is known of it between two times."""

    recording: Recording
    of: Connection

    @property
    def settings(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.recording.plan["applications"][self.of.application]
        return found

    @property
    def is_sent_by_client(self) -> bool:
        """What `sender` says in each part of the client's output: whether the client sends."""
        return self.of.sender == "client"

    @cached_property
    def subflows(self) -> list[Subflow]:
        return metrics.subflows(self.recording, self.of)

    @property
    def sent_bytes(self) -> int | None:
        """Bytes sent for the first time. None: the engine cannot tell them from reinjections."""
        ends = self.recording.groups("subflow_ends", ("connection",), ("subflow",))
        sent = sum(ends.column(f"{self.of.sender}_sent_bytes", self.of.id))
        again = metrics.reinjected_bytes(self.subflows)
        if again is None:
            return int(sent) if len(self.subflows) == 1 else None
        return int(sent - again)

    def received_bytes(self, until_ns: int) -> int:
        """Bytes delivered in order up to a time."""
        if until_ns >= self.of.until_ns:
            return self.of.bytes
        rate = metrics.goodput(self.recording, self.of, self.of.start_ns, until_ns)
        return 0 if rate is None else round(rate * (until_ns - self.of.start_ns) / (8 * SECOND))

    def retransmits(self, from_ns: int, to_ns: int) -> int | None:
        """Segments retransmitted after `from_ns`, up to `to_ns`; None where segments were not recorded."""
        if not self.recording.table("segments").height:
            return None
        return sum(from_ns < time <= to_ns for time in self._retransmitted)

    @cached_property
    def _retransmitted(self) -> list[int]:
        rows = self.recording.table("segments").filter(
            pl.col("connection") == self.of.id,
            pl.col("side") == self.of.sender,
            pl.col("kind") == "retransmission",
        )
        return rows["time_ns"].to_list()

    def round_trip(self, until_ns: int) -> dict[str, int]:
        """The last sample up to a time, in µs, of a connection with one subflow: of several there is no one."""
        if len(self.subflows) != 1:
            return {}
        key = (self.of.id, self.subflows[0].id, self.of.sender)
        samples = metrics.subflow_samples(self.recording).rows(("time_ns", "srtt_us", "rttvar_us"), *key)
        known = [(srtt, variation) for time, srtt, variation in samples if srtt and time <= until_ns]
        return {"rtt": known[-1][0], "rttvar": known[-1][1]} if known else {}

    def round_trips(self) -> dict[str, int]:
        """Extremes and mean of the samples, in µs."""
        found = metrics.srtt_us(self.recording, self.of, self.subflows[0]) if len(self.subflows) == 1 else []
        return {"max_rtt": max(found), "min_rtt": min(found), "mean_rtt": sum(found) // len(found)} if found else {}


def _start(recording: Recording, streams: Sequence[_Stream]) -> dict[str, Any]:
    first = streams[0]
    settings, work = first.settings, first.settings["work"]
    version = recording.metadata.versions.get("polypath")
    rate = work.get("rate_bps") or 0
    duration = work.get("duration_ns")
    block = work.get("block_bytes")
    back = None if first.is_sent_by_client else work.get("reverse_bytes")
    size = work.get("size_bytes") if back is None else back
    seen = recording.plan.get("capture", {}).get("start_unix_ns")
    return {
        "connected": [_connected(each) for each in streams],
        "version": f"polypath {version}" if version else "polypath",
        **(
            {}
            if not seen
            else {"timestamp": {"time": formatdate(seen // SECOND, usegmt=True), "timesecs": seen // SECOND}}
        ),
        "connecting_to": {"host": settings["destination"], "port": settings["port"]},
        "target_bitrate": rate,
        "test_start": {
            "protocol": _PROTOCOLS[first.of.transport],
            "num_streams": len(streams),
            **({} if block is None else {"blksize": block}),
            "omit": 0,
            "duration": 0 if duration is None else _whole(duration / SECOND),
            "bytes": size or 0,
            "blocks": 0,
            "reverse": int(not first.is_sent_by_client),
            "tos": 0,
            "target_bitrate": rate,
        },
    }


def _whole(value: float) -> float:
    return int(value) if value == int(value) else value


def _connected(stream: _Stream) -> dict[str, Any]:
    """The addresses of the first subflow."""
    ends = stream.recording.groups("subflow_ends", ("connection",), ("subflow",))
    rows = ends.rows(("source", "source_port", "destination", "destination_port"), stream.of.id)
    names = ("local_host", "local_port", "remote_host", "remote_port")
    return {"socket": stream.of.id, **dict(zip(names, next(iter(rows), ()), strict=False))}


def _interval(streams: Sequence[_Stream], start_ns: int, from_ns: int, to_ns: int) -> dict[str, Any]:
    parts = []
    for each in streams:
        since, until = max(from_ns, each.of.start_ns), min(to_ns, each.of.until_ns)
        if until <= since:
            continue
        figures = _figures(
            start_ns,
            since,
            until,
            each.received_bytes(until) - each.received_bytes(since),
            each.retransmits(since, until),
        )
        parts.append(
            {
                "socket": each.of.id,
                **figures,
                **each.round_trip(until),
                "omitted": False,
                "sender": each.is_sent_by_client,
            }
        )
    total = _figures(start_ns, from_ns, to_ns, sum(each["bytes"] for each in parts), _total(parts, "retransmits"))
    return {"streams": parts, "sum": {**total, "omitted": False, "sender": streams[0].is_sent_by_client}}


def _end(streams: Sequence[_Stream]) -> dict[str, Any]:
    start, end = min(each.of.start_ns for each in streams), max(each.of.until_ns for each in streams)
    parts = []
    for each in streams:
        of = each.of
        role = {"sender": each.is_sent_by_client}
        sent = _figures(start, of.start_ns, of.until_ns, each.sent_bytes, each.retransmits(-1, of.until_ns))
        received = _figures(start, of.start_ns, of.until_ns, of.bytes)
        parts.append(
            {
                "sender": {"socket": of.id, **sent, **each.round_trips(), **role},
                "receiver": {"socket": of.id, **received, **role},
            }
        )
    role = {"sender": streams[0].is_sent_by_client}
    senders, receivers = ([part[side] for part in parts] for side in ("sender", "receiver"))
    sums = {
        "sum_sent": _figures(start, start, end, _total(senders, "bytes"), _total(senders, "retransmits")) | role,
        "sum_received": _figures(start, start, end, _total(receivers, "bytes")) | role,
    }
    return {"streams": parts, **sums, **_congestion(streams[0])}


def _figures(
    start_ns: int, from_ns: int, to_ns: int, count: int | None, retransmits: int | None = None
) -> dict[str, Any]:
    """Times since the test's start in s, bytes, and their rate. What is None is left out."""
    passed = to_ns - from_ns
    return {
        "start": _whole((from_ns - start_ns) / SECOND),
        "end": _whole((to_ns - start_ns) / SECOND),
        "seconds": _whole(passed / SECOND),
        **(
            {}
            if count is None
            else {"bytes": count, "bits_per_second": _whole(count * 8 * SECOND / passed if passed else 0)}
        ),
        **({} if retransmits is None else {"retransmits": retransmits}),
    }


def _total(parts: Sequence[Mapping[str, Any]], name: str) -> int | None:
    """The sum over streams; None where one does not have it."""
    known = [part[name] for part in parts if name in part]
    return sum(known) if known and len(known) == len(parts) else None


def _congestion(stream: _Stream) -> dict[str, str]:
    """The congestion controls that the plan names; a capture does not tell them."""
    if _PROTOCOLS[stream.of.transport] != "TCP" or "capture" in stream.recording.plan:
        return {}
    settings, nodes = stream.settings, stream.recording.plan["nodes"]
    found = {}
    for role, side in (("sender", stream.of.sender), ("receiver", stream.of.receiver)):
        stack = settings.get(f"{side}_stack") or nodes[settings[side]]["stack"]
        found[f"{role}_tcp_congestion"] = stack["congestion"]["name"]
    return found
