"""What `polypath algorithms` says of transports is so."""

from __future__ import annotations

import pytest

from polypath import Scenario, run
from polypath.engines.taken import transports
from polypath.registry import entries
from polypath.results import metrics

SCENARIO = """
duration = "2 s"

[host.client]
[host.server]

[link.one]
ends = ["client", "server"]
rate = "10 Mbps"
delay = "10 ms"
queue = "40 packets"

[link.two]
ends = ["client", "server"]
rate = "5 Mbps"
delay = "20 ms"
queue = "40 packets"

[[application]]
name = "upload"
kind = "bulk"
client = "client"
server = "server"
transport = "{transport}"
stack = {{ congestion = "{congestion}" }}
"""


@pytest.mark.parametrize("transport", transports("congestion"))
def test_every_congestion_control_has_every_transport(transport: str) -> None:
    for congestion in entries("congestion"):
        text = SCENARIO.format(transport=transport, congestion=congestion)
        recording = run(Scenario.parse(text, "taken.toml").plan(1))
        rate = metrics.goodput(recording, metrics.connection(recording, "upload")) or 0.0
        assert rate > 2e6, (congestion, rate)


def test_other_kinds_are_not_asked() -> None:
    assert transports("queue") == ()
