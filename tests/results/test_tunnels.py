"""A tunnel in the results: its table, its figures in summary.json, and what labs measure."""

from __future__ import annotations

from pathlib import Path

import pytest

from polypath.engines import Options, get
from polypath.measures import REGISTRY
from polypath.measures.summary import summary
from polypath.results import Recording, other_tables
from polypath.results.metrics import MetricError
from polypath.scenario import Scenario

from ..tshark import fields

SCENARIO = """
duration = "4 s"
[defaults]
scheduler = "roundrobin"
[host.client]
[host.gw]
forwards = true
[host.proxy]
forwards = true
[host.server]
[router.r]
[link.lan]
ends = ["client", "gw:lan"]
[link.tun]
ends = ["gw:tun", "proxy:tun"]
[link.dsl]
ends = ["gw:dsl", "r"]
rate = "10 Mbps"
delay = "5 ms"
[link.lte]
ends = ["gw:lte", "r"]
rate = "10 Mbps"
delay = "40 ms"
[link.wan]
ends = ["r", "proxy:wan"]
[link.core]
ends = ["proxy:core", "server"]
[[application]]
kind = "tunnel"
name = "vpn"
link = "tun"
client = "gw"
server = "proxy"
[[application]]
kind = "bulk"
transport = "tcp"
reverse = true
start = "1 s"
"""


@pytest.fixture(scope="module")
def recording() -> Recording:
    return get("sim").run(Scenario.parse(SCENARIO, "s.toml").plan())


def test_the_summary_tells_where_packets_went(recording: Recording) -> None:
    forward, backward = summary(recording)["tunnels"]
    assert (forward["name"], forward["link"], forward["direction"]) == ("vpn", "tun", "forward")
    for each in (forward, backward):
        dropped = each["unconnected"] + each["queue_full"] + each["too_long"] + each["unfit"]
        assert each["entered"] == each["carried"] + dropped
        assert each["carried"] == each["left"] + each["lost"]
    assert backward["late"] == backward["reordered"] > 0
    assert backward["too_long"] > 0
    assert backward["carried_bytes"] > 1000 * backward["carried"] > 300_000


def test_the_table_has_a_row_for_each_direction(recording: Recording) -> None:
    (found,) = other_tables.tables(recording)
    assert [row[:2] for row in found.rows] == [("vpn", "forward"), ("vpn", "backward")]
    assert {len(row) for row in found.rows} == {len(found.headings)}


def test_measures(recording: Recording) -> None:
    both = summary(recording)["tunnels"]
    entered, left = (sum(each[key] for each in both) for key in ("entered", "left"))
    expected = {
        "tunnel_lost": sum(each["lost"] for each in both) / entered,
        "tunnel_dropped": sum(each["entered"] - each["carried"] for each in both) / entered,
        "tunnel_late": sum(each["late"] for each in both) / left,
    }
    for name, value in expected.items():
        assert REGISTRY[name](recording, {"connection": "vpn"}) == REGISTRY[name](recording, {}) == value
        with pytest.raises(MetricError, match=f"^measure '{name}': there is no tunnel 'bulk'$"):
            REGISTRY[name](recording, {"connection": "bulk"})


def test_frames_in_captures_have_the_packets_lengths(tmp_path: Path) -> None:
    """Wireshark decrypts the lines: in each frame is a packet of the tunnel behind the stream and the context."""
    plan = Scenario.parse(SCENARIO, "s.toml").with_settings(["duration=1300 ms"]).plan()
    get("sim").run(plan, Options("links", tmp_path))
    framed = [
        int(length)
        for line in ("dsl", "lte")
        for (lengths,) in fields(tmp_path / f"{line}.pcapng", "quic.dg.length", "quic.dg.length")
        for length in lengths.split(",")
    ]
    inside = [int(length) for (length,) in fields(tmp_path / "tun.pcapng", "ip", "ip.len")]
    assert {*framed} >= {length + 2 for length in inside}
    assert max(framed) == max(inside) + 2 > 1400
