"""What the table shows as unknown is null in JSON and None in Python."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import polypath
from polypath import measures
from polypath.measures.summary import to_json
from polypath.notebook import of_recording
from polypath.results import Recording, metrics, notes
from polypath.statistics import comparison, points

SCENARIO = """
duration = "4 s"
[defaults]
path_manager = "fullmesh"
[host.client]
[host.server]
[router.r]
[link.a]
ends = ["client:eth0", "r"]
rate = "5 Mbps"
delay = "10 ms"
[link.b]
ends = ["client:eth1", "r"]
rate = "5 Mbps"
delay = "20 ms"
[link.s]
ends = ["r", "server"]
[[application]]
name = "m"
kind = "messages"
transport = "{transport}"
delivery = "{delivery}"
size = "{size}"
interval = "10 ms"
duration = "1 s"
"""


def run(transport: str, delivery: str, size: str = "500 B") -> Recording:
    text = SCENARIO.format(transport=transport, delivery=delivery, size=size)
    return polypath.run(polypath.Scenario.parse(text, "uncounted"))


@pytest.mark.parametrize("transport", ["quic", "mpquic"])
def test_bytes_of_datagrams_are_unknown_by_path(transport: str) -> None:
    recording = run(transport, "datagrams")
    (told,) = json.loads(to_json(polypath.summary(recording)))["connections"]
    assert told["bytes"] == 49_000
    assert told["subflows"]
    for path in told["subflows"]:
        assert [path[name] for name in ("bytes", "share", "goodput_mbps", "resent", "reinjected_bytes")] == [None] * 5
    (of,) = metrics.connections(recording)
    lanes = metrics.subflows(recording, of)
    assert "  bytes in datagrams are not counted by path" in notes.of(recording, of, lanes)
    assert {(lane.bytes, lane.share, metrics.subflow_goodput(recording, of, lane)) for lane in lanes} == {
        (None, None, None)
    }
    assert measures.figure(recording, "subflow_share", connection="m", interface="eth0") is None
    assert "0.0%" not in of_recording(recording)
    shares = [each.values["sim"] for each in comparison.compare({"sim": recording}) if each.measure == "share"]
    assert shares == [None] * len(lanes)
    (row,) = points.rows(polypath.summary(recording), recording.plan)
    assert row["subflow_share"] == row["subflow_goodput_mbps"] == [None] * len(lanes)
    assert row["reinjected_bytes"] is None


@pytest.mark.parametrize("transport", ["quic", "mpquic"])
def test_bytes_of_a_stream_are_known(transport: str) -> None:
    (told,) = polypath.summary(run(transport, "stream"))["connections"]
    assert sum(path["bytes"] for path in told["subflows"]) >= told["bytes"] == 49_000
    assert sum(path["share"] for path in told["subflows"]) == pytest.approx(1)


@pytest.mark.parametrize(("size", "finished"), [("500 B", True), ("9 kB", False)])
def test_what_is_finished_has_a_time(size: str, finished: bool) -> None:
    """A message that no datagram has room for is lost, and so may all of them be."""
    (told,) = polypath.summary(run("quic", "datagrams", size))["connections"]
    assert told["finished"] is finished
    assert (told["completion_s"] is not None) is finished


def test_what_finished_without_a_byte_took_until_it_was_closed() -> None:
    (of,) = metrics.connections(run("quic", "stream"))
    nothing = replace(of, bytes=0, last_byte_ns=None)
    assert of.end_ns is not None
    assert metrics.completion_ns(nothing) == of.end_ns - of.start_ns
    assert metrics.completion_ns(replace(nothing, finished=None)) is None
