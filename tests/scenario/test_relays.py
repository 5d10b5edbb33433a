"""Applications over proxies: which chains there are, and the addresses of their legs."""

from __future__ import annotations

from typing import Any

import pytest

from polypath.engines import EngineError
from polypath.engines.namespaces import translation
from polypath.formats.plan import scenario_of
from polypath.scenario import Scenario, ScenarioError

NETWORK = """
[host.client]
[host.gw.interface.lan]
[host.gw.interface.dsl]
[host.gw.interface.lte]
[host.proxy.interface.core]
[host.proxy.interface.wan]
[host.server]
[router.r]
[link.lan]
ends = ["client", "gw:lan"]
[link.dsl]
ends = ["gw:dsl", "r"]
[link.lte]
ends = ["gw:lte", "r"]
[link.wan]
ends = ["r", "proxy:wan"]
[link.core]
ends = ["proxy:core", "server"]
"""
LOAD = """
[[application]]
name = "load"
kind = "bulk"
server = "gw"
transport = "tcp"
"""
WAN = """
[[application]]
name = "wan"
kind = "relay"
of = "load"
client = "gw"
server = "proxy"
"""
FAR = """
[[application]]
name = "far"
kind = "relay"
of = "load"
client = "proxy"
server = "server"
transport = "tcp"
"""


def applications(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Scenario.parse(NETWORK + text, "x.toml").plan().data["applications"]
    return found


def test_a_leg_is_between_the_interfaces_that_face_each_other() -> None:
    """Not the first ones, which are on the far side of the gateway and of the proxy."""
    load, wan, far = applications(LOAD + WAN + FAR)
    assert (wan["work"], far["work"]) == ({"kind": "relay", "of": 0}, {"kind": "relay", "of": 0})
    addresses = [(each["source"], each["destination"]) for each in (load, wan, far)]
    assert addresses == [("10.0.0.1", "10.0.0.2"), ("10.0.1.1", "10.0.3.2"), ("10.0.4.1", "10.0.4.2")]
    assert [each["transport"] for each in (load, wan, far)] == ["tcp", "mptcp", "tcp"]


def test_addresses_that_are_given_stay() -> None:
    chosen = WAN + 'source = "10.0.2.1"\n'
    assert applications(LOAD + chosen)[1]["source"] == "10.0.2.1"


def test_a_chain_comes_back_from_its_plan() -> None:
    plan = Scenario.parse(NETWORK + LOAD + WAN + FAR, "x.toml").plan()
    assert scenario_of(plan, "plan.json").plan().data["applications"] == plan.data["applications"]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (WAN + LOAD, 24, "unknown application before this one over Multipath TCP or TCP 'load'"),
        (LOAD + WAN.replace("load", "laod"), 30, "'laod'; did you mean 'load'?"),
        (LOAD + FAR, 31, "the connections of 'load' end at 'gw' so far; a relay of them begins there"),
        (LOAD + WAN + WAN.replace('"wan"', '"again"'), 38, "end at 'proxy' so far"),
        (LOAD.replace("tcp", "quic") + WAN, 30, "unknown application before this one"),
        (LOAD + WAN.replace('of = "load"\n', ""), 27, "'of' is missing"),
        (LOAD + WAN + 'transport = "mpquic"\n', 33, "transport: 'mpquic' is not mptcp or tcp"),
        (LOAD + "count = 2\n" + WAN, 31, "unknown application before this one"),
    ],
)
def test_chains_that_are_none_are_one_line(text: str, line: int, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(NETWORK + text, "x.toml").plan()
    errors = [error for error in caught.value.errors if message in str(error)]
    assert errors, str(caught.value)
    assert errors[0].line == line, str(caught.value)


def test_the_kernels_engines_refuse_a_relay() -> None:
    plan = Scenario.parse(NETWORK + LOAD + WAN + FAR, "x.toml").plan()
    never: Any = None
    with pytest.raises(EngineError, match=r"^application 'wan' is a proxy's relay; --engine sim has it$"):
        translation.translate(plan.data, "none", never, never)
