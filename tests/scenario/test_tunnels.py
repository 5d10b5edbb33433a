"""Tunnels: the link whose packets they carry, and the addresses of their connections."""

from __future__ import annotations

from typing import Any

import pytest

from polypath.engines import EngineError
from polypath.engines.namespaces import translation
from polypath.formats.plan import scenario_of
from polypath.scenario import Scenario, ScenarioError

NETWORK = """
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
[link.lte]
ends = ["gw:lte", "r"]
[link.wan]
ends = ["r", "proxy:wan"]
[link.core]
ends = ["proxy:core", "server"]
"""
TUNNEL = """
[[application]]
kind = "tunnel"
link = "tun"
client = "gw"
server = "proxy"
"""
LOAD = """
[[application]]
kind = "bulk"
transport = "tcp"
start = "1 s"
"""


def applications(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Scenario.parse(NETWORK + text, "x.toml").plan().data["applications"]
    return found


def test_a_tunnel_is_between_the_interfaces_that_face_each_other() -> None:
    """Neither the first ones, which are on the far side of the gateway, nor its own link's."""
    tunnel, load = applications(TUNNEL + LOAD)
    assert tunnel["transport"] == "mpquic"
    assert (tunnel["source"], tunnel["destination"]) == ("10.0.2.1", "10.0.4.2")
    assert (load["source"], load["destination"]) == ("10.0.0.1", "10.0.5.2")
    assert tunnel["work"] == {
        "kind": "tunnel",
        "link": 1,
        "framing": "connect-ip",
        "carriage": "datagrams",
        "queue": 500,
        "reorder_ns": 0,
        "reorder_packets": 1000,
    }


def test_a_tunnel_comes_back_from_its_plan() -> None:
    settings = 'reorder = "80 ms"\nreorder_packets = "50 packets"\nframing = "connect-udp"\nqueue = "20 packets"\n'
    plan = Scenario.parse(NETWORK + TUNNEL + settings + LOAD, "x.toml").plan()
    again = scenario_of(plan, "plan.json").plan().data["applications"]
    assert again == plan.data["applications"]
    assert again[0]["work"]["reorder_ns"] == 80_000_000


def test_a_bond_has_weights() -> None:
    settings = 'transport = "udp"\nweights = [3, 1]\n'
    plan = Scenario.parse(NETWORK + TUNNEL + settings + LOAD, "x.toml").plan()
    assert plan.data["applications"][0]["work"]["weights"] == [3, 1]
    assert scenario_of(plan, "plan.json").plan().data["applications"] == plan.data["applications"]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (TUNNEL.replace('"tun"', '"tum"') + LOAD, 24, "unknown link 'tum'; did you mean 'tun'?"),
        (TUNNEL.replace('"tun"', '"lan"') + LOAD, 24, "link 'lan' is between 'client' and 'gw', and the tunnel"),
        (TUNNEL.replace('link = "tun"\n', "") + LOAD, 22, "'link' is missing"),
        (TUNNEL + LOAD + TUNNEL, 35, "link 'tun' has a tunnel already, 'tunnel'"),
        (TUNNEL, 22, "a tunnel carries packets of other applications, and there is none"),
        (TUNNEL + 'carriage = "stream"\nreorder = "50 ms"\n' + LOAD, 28, "a stream keeps packets in order"),
        (TUNNEL + 'carriage = "stream"\nframing = "connect-udp"\n' + LOAD, 28, "a stream carries whole packets"),
        (TUNNEL + 'transport = "tcp"\n' + LOAD, 27, "transport: 'tcp' is not mpquic, quic or udp"),
        (TUNNEL + LOAD + '[controller]\nrouting = "shortest-path"\n', 22, "a controller knows no tunnels"),
        (TUNNEL + "weights = [2, 1]\n" + LOAD, 27, "'weights' are of transport = \"udp\""),
        (TUNNEL + 'transport = "udp"\nweights = [2]\n' + LOAD, 28, "there are 2 lines from 'gw' to 'proxy', and 1"),
        (TUNNEL + 'transport = "udp"\nqueue = "5 packets"\n' + LOAD, 28, "there is no connection, and no 'queue'"),
        (TUNNEL + 'client_stack = { stack = "noq" }\n' + LOAD, 23, "runs noq, which has no datagrams here"),
    ],
)
def test_tunnels_that_are_none_are_one_line(text: str, line: int, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(NETWORK + text, "x.toml").plan()
    errors = [error for error in caught.value.errors if message in str(error)]
    assert errors, str(caught.value)
    assert errors[0].line == line, str(caught.value)


@pytest.mark.parametrize(
    ("before", "after", "line", "message"),
    [
        ('proxy:tun"]\n', 'proxy:tun"]\nrate = "5 Mbps"\n', 13, "so that it has no 'rate' of its own"),
        ('proxy:tun"]\n', 'proxy:tun"]\nbackward.delay = "5 ms"\n', 13, "so that it has no 'delay' of its own"),
        ('proxy:tun"]\n', 'proxy:tun"]\nmiddlebox = "nat"\n', 13, "where no middlebox stands"),
    ],
)
def test_what_its_link_cannot_have(before: str, after: str, line: int, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(NETWORK.replace(before, after) + TUNNEL + LOAD, "x.toml").plan()
    errors = [error for error in caught.value.errors if message in str(error)]
    assert errors, str(caught.value)
    assert errors[0].line == line, str(caught.value)


def test_its_own_packets_need_another_way() -> None:
    network = NETWORK.replace('"gw:dsl"', '"client:dsl"').replace('"gw:lte"', '"client:lte"')
    with pytest.raises(ScenarioError, match="no way leads from 'gw' to 'proxy' but through a tunnel"):
        Scenario.parse(network + TUNNEL + LOAD, "x.toml").plan()


def test_an_event_changes_nothing_of_its_link() -> None:
    event = '[[event]]\nat = "2 s"\nlink = "tun"\nrate = "1 Mbps"\n'
    with pytest.raises(ScenarioError, match="so that it has no 'rate' of its own"):
        Scenario.parse(NETWORK + TUNNEL + LOAD + event, "x.toml").plan()


def test_the_kernels_engines_refuse_a_tunnel() -> None:
    plan = Scenario.parse(NETWORK + TUNNEL + LOAD, "x.toml").plan()
    data = plan.data | {"applications": [each | {"transport": "tcp"} for each in plan.data["applications"]]}
    never: Any = None
    with pytest.raises(EngineError, match=r"^application 'tunnel' is a tunnel; --engine sim has it$"):
        translation.translate(data, "none", never, never)
