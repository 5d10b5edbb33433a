"""Two-way transfers, each direction with its own size."""

from __future__ import annotations

import polars as pl
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


@pytest.mark.parametrize("transport", ["tcp", "mptcp", "quic"])
def test_each_end_sends_its_first_bytes_before_it_pauses(transport: str) -> None:
    """The handshake takes 20 ms, and a pause of 2 s keeps all but 100 bytes of each end."""
    text = f'{SCENARIO}reverse_size = "1 MB"\ntransport = "{transport}"\nfirst = "100 B"\npause = "2 s"\n'
    recording = polypath.run(Scenario.parse(text, "both"))
    (connection,) = polypath.summary(recording)["connections"]
    assert connection["finished"]
    assert (connection["to_server"]["bytes"], connection["to_client"]["bytes"]) == (4_000_000, 1_000_000)
    subflows = recording.table("subflows").filter(pl.col("time_ns") == 1_900_000_000)
    assert subflows.group_by("side").agg(pl.col("acked_bytes").sum()).sort("side").rows() == [
        ("client", 100),
        ("server", 100),
    ]
    assert 2 + 3.2 < connection["completion_s"] < 2 + 4.5


def test_a_size_below_the_first_bytes_is_sent_whole() -> None:
    text = f'{SCENARIO}transport = "tcp"\nfirst = "5 MB"\npause = "5 s"\n'
    (connection,) = polypath.summary(polypath.run(Scenario.parse(text, "both")))["connections"]
    assert connection["finished"]
    assert connection["bytes"] == 4_000_000
    assert connection["completion_s"] < 4.5


def test_a_duration_may_end_within_the_pause() -> None:
    text = SCENARIO.replace('size = "4 MB"', 'duration = "1 s"\nfirst = "1 kB"\npause = "5 s"\ntransport = "tcp"')
    (connection,) = polypath.summary(polypath.run(Scenario.parse(text, "both")))["connections"]
    assert connection["bytes"] == 1000


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
        ('first = "1 kB"', "these bytes go before a pause; give 'pause'"),
    ],
)
def test_what_does_not_go_together_is_refused(more: str, fault: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(f'{SCENARIO}reverse_size = "1 MB"\n{more}\n', "both")
    assert fault in str(caught.value)
