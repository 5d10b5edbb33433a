"""What an eavesdropper gets: against counting byte by byte, closed forms, and captures."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import gcd
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.handmade_plans import as_plan

import polypath
from polypath.results import Metadata, MetricError, Recording, exposure, schema
from polypath.results.ranges import Ranges, readable_blocks, readable_share_of_runs
from polypath.scenario import Scenario

from ..acceptance import wireshark

LENGTH = 200
SPANS = st.lists(st.tuples(st.integers(0, LENGTH), st.integers(0, 40)), max_size=20)


def ranges(spans: Sequence[tuple[int, int]]) -> Ranges:
    begins = np.array([begin for begin, _ in spans], dtype=np.int64)
    return Ranges.union(begins, begins + np.array([length for _, length in spans], dtype=np.int64))


def counted(spans: Sequence[tuple[int, int]]) -> list[bool]:
    seen = [False] * (LENGTH + 41)
    for begin, length in spans:
        seen[begin : begin + length] = [True] * length
    return seen


def runs_of(seen: Sequence[bool]) -> list[int]:
    """Lengths of what lies between gaps."""
    return [len(run) for run in "".join("x" if each else " " for each in seen).split()]


@given(SPANS)
def test_a_union_is_what_counting_byte_by_byte_gives(spans: list[tuple[int, int]]) -> None:
    seen, found = counted(spans), ranges(spans)
    assert found.bytes == sum(seen)
    assert found.lengths.tolist() == runs_of(seen)
    assert found.longest == max(runs_of(seen), default=0)


@given(SPANS, st.integers(1, 33))
def test_readable_blocks_are_those_seen_with_their_predecessor(spans: list[tuple[int, int]], block: int) -> None:
    seen = counted(spans)
    whole = [all(seen[at : at + block]) for at in range(0, len(seen) - block + 1, block)]
    readable = sum(one and (place == 0 or whole[place - 1]) for place, one in enumerate(whole))
    assert readable_blocks(ranges(spans), block) == readable


@given(SPANS, st.integers(0, LENGTH), st.integers(1, 40))
def test_a_range_is_whole_where_each_byte_was_seen(spans: list[tuple[int, int]], begin: int, length: int) -> None:
    begins = np.array([begin], dtype=np.int64)
    (whole,) = ranges(spans).contains(begins, begins + length)
    assert bool(whole) == all(counted(spans)[begin : begin + length])


@pytest.mark.parametrize(("run", "block"), [(1428, 16), (1448, 16), (1400, 8), (64, 16), (33, 16), (1500, 7)])
def test_the_closed_form_of_cbc_is_the_mean_over_every_alignment(run: int, block: int) -> None:
    steps = block // gcd(run, block)
    blocks = sum((at + run) // block - -(-at // block) - 1 for at in range(0, steps * run, run))
    assert readable_share_of_runs(run, block) == pytest.approx(blocks * block / (steps * run))


def in_turn(paths: int, count: int, size: int, subflow: Callable[[int], int] | None = None) -> Recording:
    """A Recording whose segments go over the subflows in turn."""
    turn = subflow or (lambda number: number % paths)
    segments: list[list[object]] = [
        [n, 0, "client", turn(n), n * size + 1, 0, n * size, size, "data"] for n in range(count)
    ]
    ends: list[list[object]] = [[0, 0, "get", "mptcp", "open", 0, 0, None, 0, 0, 0, count * size]]
    subflows: list[list[object]] = [
        [0, n, f"10.0.{n}.1", 1000 + n, "10.9.9.9", 80, f"eth{n}", False, 0, None, *([0] * 8)] for n in range(paths)
    ]
    rows: dict[str, list[list[object]]] = {"segments": segments, "connection_ends": ends, "subflow_ends": subflows}
    tables = {name: pl.DataFrame(own, schema=dict(schema.TABLES[name]), orient="row") for name, own in rows.items()}
    plan = {"nodes": [], "links": [], "applications": [{"client": 0, "server": 1, "work": {"kind": "bulk"}}]}
    return Recording(tables, as_plan(plan), Metadata("turn", 1, "sim", "", "", 1))


@pytest.mark.parametrize("paths", [2, 3, 4, 6])
@pytest.mark.parametrize("size", [1428, 1440])
def test_round_robin_over_equal_paths(paths: int, size: int) -> None:
    """Each path sees 1/n in runs of one segment, and of that what the closed form says is readable."""
    count = 16 * paths * 10
    found = exposure.exposure(in_turn(paths, count, size))
    assert [each.tap.kind for each in found] == ["path"] * paths
    form = readable_share_of_runs(size, 16) / paths
    total = found[0].stream.bytes
    for number, each in enumerate(found):
        assert each.share == pytest.approx(1 / paths)
        assert (each.longest_bytes, each.runs) == (size, count / paths)
        assert each.readable_share == pytest.approx(form, abs=16 * each.runs / total)
        # only the last segment's MAC has no other subflow to go on
        assert each.alterable_share == (size / total if number == paths - 1 else 0)
        assert each.keyed_share == 0
    # the first block has the initialization vector for its predecessor
    assert sum(each.readable_share for each in found) == pytest.approx(paths * form + 16 / total, rel=1e-9)


def test_several_paths_at_once() -> None:
    (stream,) = exposure.streams(in_turn(3, 300, 1000))
    two = exposure.of_subflows(stream, {0, 1})
    assert two.share == pytest.approx(2 / 3)
    assert (two.longest_bytes, two.runs) == (2000, 100)
    # a segment on path 0 has its MAC on path 1, which is held; one on path 1 has it on path 2
    assert two.alterable_share == pytest.approx(1 / 3)
    # the keys of path 0 were negotiated on path 1
    assert two.keyed_share == pytest.approx(1 / 3)
    everything = exposure.of_subflows(stream, {0, 1, 2})
    assert [everything.share, everything.readable_share, everything.alterable_share, everything.keyed_share] == [1] * 4
    assert everything.runs == 1


def test_one_path_sees_everything_and_is_its_own_neighbour() -> None:
    (each,) = exposure.exposure(in_turn(1, 10, 100))
    assert [each.share, each.alterable_share, each.keyed_share, each.runs] == [1, 1, 1, 1]


def test_bytes_seen_twice_count_once(recording: Recording) -> None:
    """By hand: bytes 0-1400 on subflow 0; 1400-2800 on subflow 1, and again as a reinjection on subflow 0."""
    first, second = (each for each in exposure.exposure(recording) if each.tap.kind == "path")
    assert (first.seen_bytes, first.share, first.runs) == (2800, 1.0, 1)
    assert (second.seen_bytes, second.share, second.runs) == (1400, 0.5, 1)


def test_without_segments_there_is_an_error(recording: Recording) -> None:
    bare = replace(recording, tables={key: rows for key, rows in recording.tables.items() if key != "segments"})
    with pytest.raises(MetricError, match="the result has no segments; record them with `run --plot`"):
        exposure.exposure(bare)
    with pytest.raises(MetricError, match="a block has one byte at least, not 0"):
        exposure.exposure(recording, block_bytes=0)


TWO_PATHS = """
duration = "3 s"
[defaults]
path_manager = "fullmesh"
scheduler = "roundrobin"
[host.client]
[host.server]
[router.r]
[router.s]
[link.path0]
ends = ["client:eth0", "r"]
rate = "20 Mbps"
delay = "10 ms"
queue = "1 MB"
[link.path1]
ends = ["client:eth1", "s"]
rate = "20 Mbps"
delay = "10 ms"
queue = "1 MB"
loss = "1 %"
[link.r]
ends = ["r", "server:eth0"]
[link.s]
ends = ["s", "r"]
[[application]]
name = "get"
kind = "stream"
rate = "8 Mbps"
block = "10 kB"
duration = "2 s"
"""


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recording, Path]:
    folder = tmp_path_factory.mktemp("captured")
    scenario = Scenario.parse(TWO_PATHS, "x")
    return polypath.run(scenario, captures="hosts", directory=folder, segments=True), folder


def test_the_captures_have_what_the_figures_say(captured: tuple[Recording, Path]) -> None:
    """Byte by byte from the client's capture, as tshark decodes it, retransmissions and reinjections included."""
    recording, folder = captured
    kinds = set(recording.table("segments").filter(side="client")["kind"])
    assert {"retransmission", "reinjection"} & kinds
    ports = dict(recording.table("subflow_ends").select("source_port", "subflow").iter_rows())
    frames = [
        frame for frame in wireshark.frames(folder / "client.pcapng") if frame.payload and frame.source_port in ports
    ]
    mapped = next(frame for frame in frames if frame.mptcp("rawdataseqno"))
    assert ports[mapped.source_port] == 0  # so far alone: its own sequence numbers are the stream's
    start = int(mapped.mptcp("rawdataseqno")[0]) - (mapped.seq - 1)
    sent = [
        # the first data goes with MP_CAPABLE instead of a mapping (RFC 8684 section 3.1)
        (ports[each.source_port], int((each.mptcp("rawdataseqno") or [str(start)])[0]) - start, len(each.payload))
        for each in frames
    ]
    found = [each for each in exposure.exposure(recording) if each.tap.kind == "path" and each.stream.side == "client"]
    assert len(found) == 2
    for subflow, each in enumerate(found):
        seen = [False] * each.stream.bytes
        for own, offset, length in sent:
            if own == subflow:
                seen[offset : offset + length] = [True] * length
        assert each.seen_bytes == sum(seen)
        assert (each.longest_bytes, each.runs) == (max(runs_of(seen)), len(runs_of(seen)))
        blocks = [all(seen[at : at + 10_000]) for at in range(0, len(seen) // 10_000 * 10_000, 10_000)]
        assert each.messages_share == sum(blocks) / len(blocks)
        whole = [all(seen[at : at + 16]) for at in range(0, len(seen) // 16 * 16, 16)]
        readable = sum(one and (place == 0 or whole[place - 1]) for place, one in enumerate(whole))
        assert each.readable_share == readable / len(whole)


def test_a_trace_of_the_captures_has_the_same_figures(captured: tuple[Recording, Path]) -> None:
    recording, folder = captured
    traced = polypath.from_pcap(folder / "client.pcapng", folder / "server.pcapng", segments=True)
    ours, theirs = (
        [
            (each.stream.bytes, each.seen_bytes, each.longest_bytes, each.runs, each.readable_share)
            for each in exposure.exposure(of)
            if each.tap.kind == "path"
        ]
        for of in (recording, traced)
    )
    assert ours == theirs
    # a link for each pair of addresses: nobody knows what lies between
    assert exposure.links_to_read(traced, 0) == 2
    links = [each.share for each in exposure.exposure(traced) if each.tap.kind == "link"]
    assert links == [each.share for each in exposure.exposure(traced) if each.tap.kind == "path"]


def test_links_and_nodes_see_the_flows_that_pass(captured: tuple[Recording, Path]) -> None:
    recording, _ = captured
    found = exposure.exposure(recording, links=2)
    share = {(each.tap.kind, each.tap.name): each.share for each in found if each.stream.side == "client"}
    first, second = (share["path", f"get, subflow {number} (eth{number})"] for number in (0, 1))
    assert share["link", "path0"] == first
    assert share["link", "path1"] == share["link", "s"] == share["node", "s"] == second
    assert share["link", "r"] == share["node", "r"] == share["links", "path0 + path1"] == 1
    assert share["links", "path1 + s"] == second
    assert {name for kind, name in share if kind == "node"} == {"r", "s"}
    # both subflows pass link r
    assert exposure.links_to_read(recording, 0) == 1
    with pytest.raises(MetricError, match="a set of 9 links was asked for, and packets pass 4 links"):
        exposure.exposure(recording, links=9)


QUIC = (
    TWO_PATHS.split("[[application]]")[0]
    + """
[[application]]
name = "get"
kind = "fetch"
transport = "mpquic"
size = "500 kB"
"""
)


def test_quic_against_its_qlog(tmp_path: Path) -> None:
    """A packet of several STREAM frames has one row, so that figures may differ by as much as no row has."""
    recording = polypath.run(Scenario.parse(QUIC, "x"), segments=True, qlogs=tmp_path / "qlog")
    seen = {0: [False] * 500_000, 1: [False] * 500_000}
    for line in (tmp_path / "qlog" / "connection0_server.sqlog").read_text().split("\x1e"):
        event = json.loads(line) if line.strip() else {}
        if not str(event.get("name", "")).endswith("packet_sent"):
            continue
        data = event["data"]
        for frame in data.get("frames", ()):
            if frame["frame_type"] == "stream":
                length = frame["raw"]["length"]
                path = data["header"].get("path_id", 0)
                seen[path][frame["offset"] : frame["offset"] + length] = [True] * length
    found = [each for each in exposure.exposure(recording) if each.tap.kind == "path" and each.stream.side == "server"]
    assert len(found) == 2
    assert found[0].stream.bytes == 500_000
    for path, each in enumerate(found):
        assert sum(seen[path]) > 100_000
        assert each.seen_bytes == pytest.approx(sum(seen[path]), abs=2 * each.stream.unlocated_bytes)


@pytest.mark.parametrize(
    "work",
    [
        'kind = "fetch"\nsize = "50 kB"\ncount = 4\nparallel = 4',
        'kind = "fetch"\nsize = "50 kB"\ncount = 4\nparallel = 4\nstreams = "ordered"',
        'kind = "page"\nobjects = [{ name = "one", size = "50 kB" }, { name = "two", size = "50 kB" }]',
        'kind = "messages"\nsize = "1000 B"\ninterval = "20 ms"\ndelivery = "datagrams"',
    ],
)
def test_streams_side_by_side_and_datagrams_are_left_out(work: str) -> None:
    text = QUIC.replace('kind = "fetch"', work).replace('size = "500 kB"\n', "")
    recording = polypath.run(Scenario.parse(text, "x"), segments=True)
    assert exposure.left_out(recording) == ["get"]
    assert exposure.exposure(recording) == []


MOVING = """
duration = "4 s"
host = { client = {}, server = {} }
router.r = {}
link.a = { ends = ["client", "r"], rate = "8 Mbps", delay = "10 ms" }
link.b = { ends = ["client", "r"], rate = "8 Mbps", delay = "10 ms" }
link.c = { ends = ["client", "r"], rate = "8 Mbps", delay = "10 ms" }
link.server = { ends = ["r", "server"], rate = "100 Mbps", delay = "1 ms" }
application = [{ name = "up", kind = "bulk", transport = "TRANSPORT" }]
event = [
    { at = "1 s", interface = "client:eth0", migrate_to = "eth1" },
    { at = "2500 ms", interface = "client:eth1", migrate_to = "eth2" },
]
"""


@pytest.mark.parametrize("transport", ["quic", "mpquic"])
def test_a_path_that_migrates_is_seen_where_it_was(transport: str) -> None:
    """A link sees what was sent while a path went over it; the second path moves once, the third stays."""
    recording = polypath.run(Scenario.parse(MOVING.replace("TRANSPORT", transport), "x"), segments=True)
    sent = recording.table("segments").filter(pl.col("payload_bytes") > 0, side="client")
    links = {each.tap.name: each for each in exposure.exposure(recording) if each.tap.kind == "link"}
    path, time = pl.col("subflow"), pl.col("time_ns") / 1e9
    for name, there in (
        ("a", (path == 0) & (time < 1)),
        ("b", ((path == 0) & (time >= 1) & (time < 2.5)) | ((path == 1) & (time < 2.5))),
        ("c", ((path < 2) & (time >= 2.5)) | (path == 2)),
    ):
        rows = sent.filter(there).select(
            begin=pl.col("dsn").cast(pl.Int64), end=pl.col("dsn") + pl.col("payload_bytes")
        )
        seen = Ranges.union(rows["begin"].to_numpy(), rows["end"].cast(pl.Int64).to_numpy())
        assert links[name].seen_bytes == seen.bytes > 0


def test_requests_seen_whole() -> None:
    lab = polypath.labs.get("backup")
    (run,) = [each for each in lab.runs if each.name == "normal"]
    made = polypath.run(run.of(lab.scenario()), segments=True)
    for each in exposure.exposure(made):
        if each.tap.kind == "path":
            rows = made.table("segments").filter(
                (pl.col("side") == each.stream.side)
                & (pl.col("payload_bytes") > 0)
                & (pl.col("subflow") == int(each.tap.name.split("subflow ")[1][0]))
            )
            seen = {
                byte for dsn, size in rows.select("dsn", "payload_bytes").iter_rows() for byte in range(dsn, dsn + size)
            }
            whole = sum(all(byte in seen for byte in range(at, at + 1000)) for at in range(0, 20_000, 1000))
            assert each.messages_share == whole / 20
    assert exposure.table(exposure.exposure(made)).height == len(exposure.exposure(made))
