import json
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.handmade_plans import as_plan

import polypath
from polypath import Scenario
from polypath.measures.summary import summary, to_json
from polypath.results import Recording

PAGE = Path(__file__).parents[2] / "docs" / "summary.md"


def test_a_connection_in_full(recording: Recording) -> None:
    assert summary(recording)["connections"][0] == {
        "name": "iperf",
        "transport": "mptcp",
        "goodput_mbps": 12.0,
        "bytes": 3_000_000,
        "start_s": 1.0,
        "end_s": 3.0,
        "finished": True,
        "completion_s": 2.0,
        "reassembly_max_bytes": 0,
        "blocking": [
            {"level": level, "subflow": subflow, "cause": cause, "time_s": time, "byte_s": area, "max_bytes": most}
            for level, subflow, cause, time, area, most in (
                ("subflow", 0, "retransmitted", 0.2, 4000.0, 30_000),
                ("connection", 0, "retransmitted", 0.1, 1000.0, 20_000),
                ("connection", 1, "late", 0.4, 6000.0, 40_000),
                ("connection", None, "missing", 0.05, 500.0, 10_000),
            )
        ],
        "requests": {
            "count": 0,
            "unanswered": 0,
            "refused": 0,
            "median_s": None,
            "p95_s": None,
            "p99_s": None,
            "delay_s": [],
        },
        "subflows": [
            {
                "id": 0,
                "source": "10.0.0.1:1000",
                "destination": "10.1.0.1:5001",
                "interface": "eth0",
                "backup": False,
                "established_s": 1.04,
                "closed_s": 3.05,
                "bytes": 2_000_000,
                "share": 0.666667,
                "goodput_mbps": 8.0,
                "retransmitted_bytes": 50_000,
                "resent": 0.023256,
                "reinjected_bytes": 7_000,
                "srtt_ms": {"mean": 50.0, "p50": 50.0, "p95": 59.0, "max": 60.0},
            },
            {
                "id": 1,
                "source": "[fd00::1]:1001",
                "destination": "[fd01::1]:5001",
                "interface": "eth1",
                "backup": True,
                "established_s": 1.08,
                "closed_s": None,
                "bytes": 1_000_000,
                "share": 0.333333,
                "goodput_mbps": 4.0,
                "retransmitted_bytes": 0,
                "resent": 0.0,
                "reinjected_bytes": 0,
                "srtt_ms": None,
            },
        ],
        "goodput_series": {"t_s": [2.0, 3.0], "mbps": [8.0, 16.0]},
    }


def test_requests_links_and_counters(recording: Recording) -> None:
    data = summary(recording)
    assert data["connections"][1]["requests"] == {
        "count": 3,
        "unanswered": 1,
        "refused": 0,
        "median_s": 0.055,
        "p95_s": None,
        "p99_s": None,
        "delay_s": [0.055, 0.045, None],
    }
    assert data["links"] == [
        {"name": "path0", "direction": "forward", "utilisation": 0.5, "dropped_packets": 3, "max_queue_packets": 80},
        {"name": "path0", "direction": "backward", "utilisation": 0.0, "dropped_packets": 0, "max_queue_packets": 1},
    ]
    assert data["counters"] == {"client": {"TcpRetransSegs": 35}, "server": {"TcpRetransSegs": 0}}


def test_keys_keep_their_order(recording: Recording) -> None:
    data = json.loads(to_json(summary(recording)))
    assert list(data) == ["interrupted", "connections", "links", "counters"]
    assert list(data["connections"][0]) == [
        "name",
        "transport",
        "goodput_mbps",
        "bytes",
        "start_s",
        "end_s",
        "finished",
        "completion_s",
        "reassembly_max_bytes",
        "blocking",
        "requests",
        "subflows",
        "goodput_series",
    ]
    assert list(data["counters"]) == ["client", "server"]


def _keys(data: Any) -> Iterator[str]:
    for value in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from _keys(value)
    if isinstance(data, dict):
        yield from data


@pytest.mark.parametrize(
    ("switches", "part"),
    [("[bridging]", "bridging"), ('[controller]\nrouting = "shortest-path"', "controller")],
)
def test_the_page_and_the_module_tell_of_every_key(switches: str, part: str) -> None:
    text = f"""
duration = "2 s"
[host.client]
[host.server]
[switch.s]
{switches}
[link.a]
ends = ["client", "s"]
rate = "10 Mbps"
[link.b]
ends = ["s", "server"]
rate = "10 Mbps"
[[application]]
kind = "bulk"
size = "10 kB"
reverse_size = "10 kB"
group = "short"
"""
    data = summary(polypath.run(Scenario.parse(text, "x")))
    assert {"groups", part} < data.keys()
    del data["counters"]
    keys = set(_keys(data))
    page = PAGE.read_text(encoding="utf-8")
    assert keys <= {*re.findall(r"`(\w+)(?:\[\])?`", page), *re.findall(r"^## .*?(\w+)\[\]$", page, re.MULTILINE)}
    assert keys <= set(re.findall(r"\w+", sys.modules[summary.__module__].__doc__ or ""))


def test_a_recording_without_rows_has_a_summary(recording: Recording) -> None:
    bare = Recording({}, as_plan({"applications": []}), recording.metadata)
    assert summary(bare) == {"interrupted": False, "connections": [], "links": [], "counters": {}}


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_no_json(value: float) -> None:
    """RFC 8259 section 6."""
    with pytest.raises(ValueError, match="JSON"):
        to_json({"mean": value})


def test_json_is_read_by_people() -> None:
    assert to_json({"name": "ü"}) == '{\n  "name": "ü"\n}\n'
