"""What a capture of a simulated run tells is what the run knows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.capture.conftest import captured

from polypath.capture import trace
from polypath.results import Recording, metrics

LABS: list[tuple[str, str, list[str]]] = [
    ("aggregation", "mptcp", ["duration=3 s"]),
    ("aggregation", "tcp", ["duration=3 s"]),
    ("backup", "backup", []),
    ("delay-classes", "", ["duration=3 s"]),
    ("failover", "busy-5", ["duration=3 s", "event.1.at=1 s"]),
    ("path-manager-mesh", "fullmesh", ["duration=2 s"]),
    ("scheduler-reqres", "rr", ["duration=5 s"]),
    ("scheduler-http", "rtt-1MB", ["duration=2 s"]),
    ("shared-bottleneck", "shared", ["duration=3 s"]),
    ("path-mtu", "tcp-told", ["duration=2 s"]),
    ("python-scheduler", "rust", ["duration=2 s"]),
    ("middleboxes", "strip-syn", ["duration=2 s"]),
    ("middleboxes", "strip-data", ["duration=2 s"]),
    ("middleboxes", "strip-joined-data", ["duration=2 s"]),
]

Ends = tuple[str, int, str, int]


def _subflows(recording: Recording) -> dict[Ends, dict[str, Any]]:
    """By addresses and ports, those that sent anything."""
    rows = recording.table("subflow_ends").iter_rows(named=True)
    return {
        (row["source"], row["source_port"], row["destination"], row["destination_port"]): row
        for row in rows
        if row["established_ns"] is not None
    }


def _visible(run: Recording, capture: Recording) -> dict[tuple[int, int, str], Counter[str]]:
    """What the segments that were captured tell, by the run's own account of each.

    A capture lacks what the sender's own queue, or a link that is down, drops there. It takes what was sent again for
    new if neither it nor anything behind it was captured before.
    """
    there = set(
        capture.table("segments").select("time_ns", "connection", "subflow", "side", "seq", "payload_bytes").iter_rows()
    )
    found: dict[tuple[int, int, str], Counter[str]] = {}
    highest: Counter[tuple[int, int, str]] = Counter()
    carried: dict[tuple[int, str], list[tuple[int, int, int]]] = {}
    data = run.table("segments").filter(pl.col("payload_bytes") > 0)
    columns = ("time_ns", "connection", "subflow", "side", "seq", "payload_bytes", "kind", "dsn")
    for time, connection, subflow, side, seq, size, kind, dsn in data.select(columns).iter_rows():
        if (time, connection, subflow, side, seq, size) not in there:
            continue
        key = (connection, subflow, side)
        counts = found.setdefault(key, Counter())
        if kind == "retransmission" and seq < highest[key]:
            counts["retransmitted"] += size
        others = carried.setdefault((connection, side), [])
        if kind == "reinjection":
            counts["reinjected"] += sum(
                max(0, min(end, dsn + size) - max(start, dsn)) for start, end, by in others if by != subflow
            )
        elif kind == "data":
            others.append((dsn, dsn + size, subflow))
        highest[key] = max(highest[key], seq + size)
        counts["sent"] = highest[key] - 1
    return found


@pytest.mark.parametrize(("lab", "run", "settings"), LABS)
def test_a_capture_tells_what_the_run_knows(lab: str, run: str, settings: list[str], tmp_path: Path) -> None:
    known, files = captured(lab, run, settings, tmp_path)
    told = trace(files, segments=True).recording
    expected, found = _subflows(known), _subflows(told)
    assert found.keys() == expected.keys()
    visible = _visible(known, told)
    for ends, row in expected.items():
        other = found[ends]
        for side in ("client", "server"):
            counts = visible.get((row["connection"], row["subflow"], side), Counter())
            assert other[f"{side}_received_bytes"] == row[f"{side}_received_bytes"]
            assert other[f"{side}_sent_bytes"] == counts["sent"]
            assert other[f"{side}_retransmitted_bytes"] == counts["retransmitted"]
            assert other[f"{side}_reinjected_bytes"] == counts["reinjected"]
        assert other["established_ns"] == row["established_ns"]
        assert other["backup"] == row["backup"]
        assert other["interface"] == row["interface"]
    for one, two in zip(metrics.connections(known), metrics.connections(told), strict=True):
        assert two.transport == one.transport
        assert two.bytes == one.bytes
        assert metrics.goodput(told, two) == pytest.approx(metrics.goodput(known, one), rel=0.01)
        assert metrics.reassembly_max(told, two) == metrics.reassembly_max(known, one)
    fallbacks = ("time_ns", "host", "connection", "detail")
    assert (
        told.table("events").filter(kind="fallback").select(fallbacks).rows()
        == known.table("events").filter(kind="fallback").select(fallbacks).rows()
    )


def _headers(recording: Recording) -> list[tuple[Any, ...]]:
    """Each segment with what its header says, in an order of their own."""
    segments = recording.table("segments").with_row_index("segment")
    rows = segments.join(recording.table("headers"), on="segment", how="inner", validate="1:1").drop("segment")
    assert rows.height == segments.height > 0
    return sorted(rows.fill_null(-1).rows())


def test_headers_are_those_of_the_run(small: tuple[Recording, list[Path]]) -> None:
    known, files = small
    told = trace(files, segments=True).recording
    there = set(told.table("segments").select("time_ns", "side", "subflow", "seq").iter_rows())
    assert _headers(told) == [row for row in _headers(known) if (row[0], row[2], row[3], row[4]) in there]


def test_waits_are_those_of_the_run(small: tuple[Recording, list[Path]]) -> None:
    known, files = small
    ended = pl.col("cause") != "missing"
    key = ["connection", "side", "level", "subflow", "cause"]
    told = trace(files).recording.table("blocking").filter(ended).sort(key)
    expected = known.table("blocking").filter(ended).sort(key)
    assert told.height > 0
    assert told.select(*key, "time_ns", "max_bytes").rows() == expected.select(*key, "time_ns", "max_bytes").rows()


def test_retransmissions_are_all_seen_where_no_sender_drops(tmp_path: Path) -> None:
    """Losses on the way and not in the sender's queue: the run's own totals."""
    lossy = [
        "duration=2 s",
        "link.path0.loss=1 %",
        "link.path1.loss=1 %",
        "link.path0.queue=1 MB",
        "link.path1.queue=1 MB",
    ]
    known, files = captured("aggregation", "mptcp", lossy, tmp_path)
    assert known.table("link_ends")["dropped_packets"].sum() == 0
    columns = [
        f"{side}_{what}_bytes" for side in ("client", "server") for what in ("sent", "retransmitted", "reinjected")
    ]
    told = trace(files, segments=True).recording
    assert told.table("subflow_ends").select(columns).rows() == known.table("subflow_ends").select(columns).rows()
    assert 0 not in told.table("subflow_ends")["client_retransmitted_bytes"]
    blocks = told.table("sack_blocks")
    assert blocks["begin"].len() > 0
    assert sorted(blocks.rows()) == sorted(known.table("sack_blocks").rows())
    there = set(told.table("segments").select("time_ns", "side", "subflow", "seq").iter_rows())
    assert _headers(told) == [row for row in _headers(known) if (row[0], row[2], row[3], row[4]) in there]
