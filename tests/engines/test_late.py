"""Connections that begin after something happened to an interface of their host."""

import pytest

import polypath
from polypath.results import metrics
from polypath.scenario import Scenario

SECOND = 1_000_000_000
TEXT = """
duration = "8 s"
defaults = {{ path_manager = "fullmesh" }}
host = {{ client = {{}}, server = {{}} }}
router.r = {{}}
link.a = {{ ends = ["client:eth0", "r"], rate = "10 Mbps", delay = "10 ms" }}
link.b = {{ ends = ["client:eth1", "r"], rate = "10 Mbps", delay = "15 ms" }}
link.server = {{ ends = ["r", "server"], rate = "100 Mbps" }}
event = [{events}]
[[application]]
name = "late"
kind = "bulk"
start = "2 s"
transport = "{transport}"
"""
DOWN = '{ at = "1 s", interface = "client:eth1", up = false }'
UP = '{ at = "4 s", interface = "client:eth1", up = true }'


def second_path(transport: str, *events: str) -> tuple[metrics.Subflow, ...]:
    text = TEXT.format(transport=transport, events=", ".join(events))
    recording = polypath.run(Scenario.parse(text, "late.toml"))
    (connection,) = metrics.connections(recording)
    return tuple(each for each in metrics.subflows(recording, connection) if each.interface == "eth1")


@pytest.mark.parametrize("transport", ["mptcp", "mpquic"])
def test_an_interface_that_is_down_is_not_used_before_it_is_up(transport: str) -> None:
    assert second_path(transport, DOWN) == ()
    (path,) = second_path(transport, DOWN, UP)
    assert path.established_ns is not None
    assert 4 * SECOND < path.established_ns < 4.1 * SECOND
    assert (path.bytes or 0) > 1_000_000


@pytest.mark.parametrize("transport", ["mptcp", "mpquic"])
def test_an_interface_that_became_a_backup_is_one(transport: str) -> None:
    (path,) = second_path(transport, '{ at = "1 s", interface = "client:eth1", backup = true }')
    assert path.backup
    assert not path.bytes
    (path,) = second_path(
        transport,
        '{ at = "1 s", interface = "client:eth1", backup = true }',
        '{ at = "1500 ms", interface = "client:eth1", backup = false }',
    )
    assert not path.backup
