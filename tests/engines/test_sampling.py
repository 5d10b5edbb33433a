"""Samples: one for each instant, whenever the run ends; and what is recorded aside leaves the hash alone."""

from __future__ import annotations

import pytest

from polypath import engines
from polypath.engines import Options
from polypath.scenario import Scenario

SCENARIO = """
duration = "500 ms"
record = { interval = "100 ms" }

[host.client]
[host.server]

[link.path0]
ends = ["client", "server"]
delay = "10 ms"

[[application]]
name = "transfer"
kind = "bulk"
transport = "tcp"
"""

KEYS = {
    "connections": ("time_ns", "connection", "side"),
    "links": ("time_ns", "link", "direction"),
    "subflows": ("time_ns", "connection", "side", "subflow", "state"),
}


@pytest.mark.parametrize(
    ("settings", "end_ms"),
    [
        (["link.path0.rate=10 Mbps"], 500),
        (["link.path0.rate=10 Mbps", "duration=450 ms"], 450),
        (["application.transfer.size=1 kB", "record.interval=25 ms"], 50),
    ],
    ids=["its duration ends on a sampling instant", "between two", "its transfer ends on a sampling instant"],
)
def test_the_last_sample_is_there_once(settings: list[str], end_ms: int) -> None:
    recording = engines.get("sim").run(Scenario.parse(SCENARIO, "x").with_settings(settings).plan())
    end_ns = recording.metadata.end_ns
    assert end_ns == end_ms * 1_000_000
    closed = recording.table("connection_ends")["end_ns"].item() is not None
    for name, keys in KEYS.items():
        if closed and name == "subflows":
            continue  # a subflow that closes has a row for that, too
        samples = recording.table(name)
        assert samples["time_ns"].max() == end_ns
        assert samples.select(keys).is_unique().all(), name
    delivered = recording.table("connections").filter(side="server")["delivered_bytes"]
    assert delivered.max() == recording.table("connection_ends")["server_received_bytes"].item()


def test_segments_recorded_aside_change_neither_plan_nor_hash() -> None:
    scenario = Scenario.parse(SCENARIO, "x").with_settings(["link.path0.rate=10 Mbps", "link.path0.loss=2 %"])
    plain = engines.get("sim").run(scenario.plan())
    aside = engines.get("sim").run(scenario.plan(), Options(segments=True))
    asked = engines.get("sim").run(scenario.with_settings(["record.segments=true"]).plan(), Options(segments=True))
    assert plain.table("segments").is_empty()
    assert aside.table("sack_blocks").height
    assert aside.table("headers").height == aside.table("segments").height
    assert aside.table("segments").equals(asked.table("segments"))
    assert aside.metadata.recording_sha256 == plain.metadata.recording_sha256
    assert aside.metadata.plan_sha256 == plain.metadata.plan_sha256
    assert asked.metadata.recording_sha256 != plain.metadata.recording_sha256


@pytest.mark.parametrize("profile", ["rfc", "mptcp.org", "linux"])
def test_how_often_is_sampled_changes_nothing(profile: str) -> None:
    scenario = Scenario.parse(
        """
duration = "60 s"
[host.client]
[host.server]
[link.path0]
ends = ["client", "server"]
rate = "10 Mbps"
delay = "10 ms"
loss = "1 %"
[link.path1]
ends = ["client", "server"]
rate = "2 Mbps"
delay = "80 ms"
[[application]]
kind = "bulk"
size = "3 MB"
""",
        "x",
    )
    ends = []
    for interval in ("7 ms", "1 s"):
        settings = [f"defaults.profile={profile}", "defaults.receive_buffer=40 kB", f"record.interval={interval}"]
        recording = engines.get("sim").run(scenario.with_settings(settings).plan())
        ends.append([recording.table(name).rows() for name in ("connection_ends", "subflow_ends", "link_ends")])
    assert ends[0] == ends[1]
