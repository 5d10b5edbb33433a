"""Two-way transfers, each direction with its own size."""

from __future__ import annotations

import pytest

import polypath
from polypath import Scenario, ScenarioError
from polypath.results import metrics

SCENARIO = """
duration = "20 s"
[host.client]
[host.server]
[link.l]
ends = ["client", "server"]
rate = "10 Mbps"
delay = "10 ms"
[[application]]
kind = "bulk"
size = "4 MB"
"""


@pytest.mark.parametrize("transport", ["tcp", "mptcp", "quic"])
def test_both_directions_are_carried_at_once(transport: str) -> None:
    text = f'{SCENARIO}reverse_size = "3 MB"\ntransport = "{transport}"\n'
    recording = polypath.run(Scenario.parse(text, "both"))
    (connection,) = polypath.summary(recording)["connections"]
    assert connection["finished"]
    assert connection["to_server"]["bytes"] == connection["bytes"] == 4_000_000
    assert connection["to_client"]["bytes"] == 3_000_000
    # One after the other they would take 5.6 s at the link's rate.
    assert connection["completion_s"] < 4.5


def test_an_empty_direction_closes() -> None:
    text = f'{SCENARIO}reverse_size = "0 B"\ntransport = "tcp"\n'
    recording = polypath.run(Scenario.parse(text, "both"))
    (of,) = metrics.connections(recording)
    assert of.finished
    assert [way.bytes for way in metrics.both_ways(recording, of) or ()] == [4_000_000, 0]


def test_one_way_has_no_second() -> None:
    recording = polypath.run(Scenario.parse(SCENARIO, "both"))
    (of,) = metrics.connections(recording)
    assert metrics.both_ways(recording, of) is None
    assert "to_client" not in polypath.summary(recording)["connections"][0]


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ("reverse = true", "a two-way transfer has no 'reverse'; leave one of them out"),
        ('duration = "1 s"', "a two-way transfer has two sizes: give 'size', and no 'duration'"),
        ('program = "iperf3"', "a two-way transfer has no 'program'; leave one of them out"),
    ],
)
def test_what_does_not_go_together_is_refused(more: str, fault: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(f'{SCENARIO}reverse_size = "1 MB"\n{more}\n', "both")
    assert fault in str(caught.value)
