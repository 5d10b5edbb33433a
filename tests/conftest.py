"""A small Recording made by hand, whose every figure can be worked out on paper."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from tests.handmade_plans import as_plan

from polypath import registry
from polypath.cli import console
from polypath.formats import plan
from polypath.results import Metadata, Recording, schema

SECOND = 1_000_000_000
MS = 1_000_000


@pytest.fixture(scope="session", autouse=True)
def piped() -> None:
    """What is printed goes into a pipe, whatever the size of a terminal that pytest-xdist makes up for its workers."""
    os.environ.pop("COLUMNS", None)
    console.out.width = 120


@pytest.fixture(scope="session", autouse=True)
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What commands remember of others is not what they remember of tests."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture
def replace_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[registry.Kind], str]], None]]:
    """Gives the package other algorithms, by a function from a kind to its JSON; what is kept of others goes."""

    def forget() -> None:
        registry.entries.cache_clear()
        plan._usual.cache_clear()

    def replaced(read: Callable[[registry.Kind], str]) -> None:
        monkeypatch.setattr(registry, "read", read)
        forget()

    yield replaced
    forget()


def table(name: str, rows: Sequence[Sequence[Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict(schema.TABLES[name]), orient="row")


def _subflow_sample(second: int, side: str, subflow: int, srtt_us: int, received: int) -> list[Any]:
    return [
        second * SECOND,
        0,
        side,
        subflow,
        "established",
        10,
        20,
        srtt_us,
        5,
        4,
        received,
        0,
        received,
        0,
        0,
        65536,
        0,
    ]


def handmade() -> Recording:
    """Three applications in 4 s.

    `iperf` (MPTCP, client to server): from 1 s, 3,000,000 bytes, last byte at 3 s, 2 MB of them on subflow 0.
    `msg` (TCP): open until the end, three requests of which the last is unanswered. `cross` (UDP): 500,000 bytes.
    """
    tables = {
        "connection_ends": table(
            "connection_ends",
            [
                [0, 0, "iperf", "mptcp", "closed", SECOND, 1040 * MS, 3050 * MS, 1060 * MS, 3 * SECOND, 0, 3_000_000],
                [1, 1, "msg", "tcp", "open", 0, 20 * MS, None, 30 * MS, 2 * SECOND, 2000, 1000],
            ],
        ),
        "subflow_ends": table(
            "subflow_ends",
            [
                [
                    0,
                    0,
                    "10.0.0.1",
                    1000,
                    "10.1.0.1",
                    5001,
                    "eth0",
                    False,
                    1040 * MS,
                    3050 * MS,
                    *(2_100_000, 0, 0, 2_000_000, 50_000, 0, 7_000, 0),
                ],
                [
                    0,
                    1,
                    "fd00::1",
                    1001,
                    "fd01::1",
                    5001,
                    "eth1",
                    True,
                    1080 * MS,
                    None,
                    *(1_000_000, 0, 0, 1_000_000, 0, 0, 0, 0),
                ],
                [
                    1,
                    0,
                    "10.0.0.1",
                    1002,
                    "10.1.0.1",
                    80,
                    "eth0",
                    False,
                    20 * MS,
                    None,
                    1000,
                    2000,
                    2000,
                    1000,
                    *(0, 0, 0, 0),
                ],
            ],
        ),
        "blocking": table(
            "blocking",
            [
                [0, "server", "subflow", 0, "retransmitted", 200 * MS, 4000.0, 30_000],
                [0, "server", "connection", 0, "retransmitted", 100 * MS, 1000.0, 20_000],
                [0, "server", "connection", 1, "late", 400 * MS, 6000.0, 40_000],
                [0, "server", "connection", None, "missing", 50 * MS, 500.0, 10_000],
                [0, "client", "connection", 1, "late", 7 * MS, 7.0, 7],
            ],
        ),
        "connections": table(
            "connections",
            [
                [SECOND, 0, "server", 0, 0, 0, 0, 0],
                [2 * SECOND, 0, "server", 1_000_000, 0, 0, 0, 0],
                [2 * SECOND, 0, "client", 77, 0, 0, 0, 0],
                [3 * SECOND, 0, "server", 3_000_000, 0, 0, 0, 0],
            ],
        ),
        "subflows": table(
            "subflows",
            [
                _subflow_sample(1, "client", 0, 0, 0),
                _subflow_sample(2, "client", 0, 40_000, 0),
                _subflow_sample(3, "client", 0, 60_000, 0),
                _subflow_sample(2, "server", 0, 999_000, 500_000),
                _subflow_sample(3, "server", 0, 999_000, 2_000_000),
                _subflow_sample(2, "server", 1, 999_000, 500_000),
                _subflow_sample(3, "server", 1, 999_000, 1_000_000),
            ],
        ),
        "requests": table("requests", [[1, 1, SECOND, 45 * MS], [1, 0, 0, 55 * MS], [1, 2, 2 * SECOND, None]]),
        "link_ends": table(
            "link_ends",
            [
                [0, "path0", "forward", 2_000_000, 1400, 3, 1, 80, 2 * SECOND],
                [0, "path0", "backward", 50_000, 700, 0, 0, 1, 0],
            ],
        ),
        "datagrams": table("datagrams", [[2, 600, 500, 500_000, 21 * MS]]),
        "counters": table("counters", [["server", "TcpRetransSegs", 0], ["client", "TcpRetransSegs", 35]]),
        "events": table("events", [[1040 * MS, "connection-established", "client", 0, None, None, None, ""]]),
        "segments": table(
            "segments",
            [
                [1050 * MS, 0, "client", 0, 0, 0, 0, 1400, "data"],
                [1090 * MS, 0, "client", 1, 0, 0, 1400, 1400, "data"],
                [1200 * MS, 0, "client", 0, 1400, 0, 1400, 1400, "reinjection"],
                [1250 * MS, 0, "server", 0, 0, 1400, None, 0, "ack"],
            ],
        ),
    }
    plan = {
        "name": "handmade",
        "seed": 7,
        "nodes": [
            {"name": "client", "kind": "host", "interfaces": [{"name": "eth0"}, {"name": "eth1"}]},
            {"name": "router", "kind": "router", "interfaces": [{"name": "r0"}, {"name": "r1"}, {"name": "r2"}]},
            {"name": "server", "kind": "host", "interfaces": [{"name": "eth0"}]},
        ],
        "links": [
            _link("path0", (0, 0), (1, 0), 20_000_000, 20 * MS),
            _link("path1", (0, 1), (1, 1), 10_000_000, 40 * MS),
            _link("core", (1, 2), (2, 0), None, 0),
        ],
        "applications": [
            _application("iperf", "mptcp", SECOND, {"kind": "bulk", "size_bytes": 3_000_000}),
            _application("msg", "tcp", 0, {"kind": "request-response"}),
            _application("cross", "udp", SECOND, {"kind": "cbr", "duration_ns": 2 * SECOND}),
        ],
    }
    return Recording(tables, as_plan(plan), Metadata("handmade", 7, "sim", "ab" * 32, "cd" * 32, 4 * SECOND))


def _link(name: str, a: tuple[int, int], b: tuple[int, int], rate: int | None, delay: int) -> dict[str, Any]:
    channel = {"rate_bps": rate, "delay_ns": delay}
    ends = ({"node": node, "interface": interface} for node, interface in (a, b))
    return {"name": name, "a": next(ends), "b": next(ends), "forward": channel, "backward": channel}


def _application(name: str, transport: str, start: int, work: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "client": 0, "server": 2, "transport": transport, "start_ns": start, "work": work}


def sack_blocks() -> pl.DataFrame:
    """Of the ACK of the handmade run: one about data that arrived twice, and one beyond a gap."""
    common = [1250 * MS, 0, "server", 0, 1401]
    return table("sack_blocks", [[*common, 1, 701, True], [*common, 2101, 2801, False]])


@pytest.fixture
def recording() -> Recording:
    return handmade()


@pytest.fixture
def changed() -> Callable[[str, pl.DataFrame], Recording]:
    """The handmade Recording with one table replaced."""

    def change(name: str, rows: pl.DataFrame) -> Recording:
        original = handmade()
        return replace(original, tables={**original.tables, name: rows})

    return change
