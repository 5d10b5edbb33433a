"""Where applications connect from that name no source."""

import pytest

from polypath.scenario import Scenario

FIRST, SECOND = "10.0.0.1", "10.0.1.1"


def source(start: str, *events: tuple[str, str, bool], given: str = "") -> str:
    text = f"""
duration = "9 s"
[host.client]
[host.server]
[link.a]
ends = ["client", "server"]
[link.b]
ends = ["client", "server"]
[[application]]
kind = "bulk"
start = "{start}"
{given}
"""
    for at, interface, up in events:
        text += f'[[event]]\nat = "{at}"\ninterface = "{interface}"\nup = {str(up).lower()}\n'
    return str(Scenario.parse(text, "x.toml").plan().data["applications"][0]["source"])


def test_the_first_interface_that_is_up_at_the_start() -> None:
    down = ("1 s", "client:eth0", False)
    assert source("0 s", down) == FIRST
    assert source("1 s", down) == SECOND
    assert source("3 s", down) == SECOND
    assert source("3 s", ("1 s", "server:eth0", False)) == FIRST


def test_an_interface_that_came_back_is_up() -> None:
    """Whatever the order in the file; changes come before what else happens at their time."""
    events = [("1 s", "client:eth0", False), ("2 s", "client:eth0", True)]
    for order in (events, events[::-1]):
        assert source("2 s", *order) == FIRST
        assert source("1999 ms", *order) == SECOND


def test_the_first_of_all_that_are_down() -> None:
    assert source("2 s", ("1 s", "client:eth0", False), ("1 s", "client:eth1", False)) == FIRST


@pytest.mark.parametrize("address", [FIRST, SECOND])
def test_a_source_that_is_named_stays(address: str) -> None:
    assert source("2 s", ("1 s", "client:eth0", False), given=f'source = "{address}"') == address
