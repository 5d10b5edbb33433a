"""Migration of QUIC's clients as a scenario schedules it."""

from typing import Any

import pytest

from polypath.scenario import Scenario, ScenarioError

EVENT = """
[[event]]
at = "4 s"
interface = "client:eth0"
migrate_to = "eth1"
"""


def over(two_paths: str, transport: str, event: str = EVENT, stack: str = "polypath") -> str:
    text = two_paths.replace('kind = "bulk"', f'kind = "bulk"\ntransport = "{transport}"')
    text = text.replace('scheduler = "roundrobin"', f'stack = "{stack}"')
    return text + event


def complaint(text: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(text, "x.toml").plan()
    return str(caught.value)


@pytest.mark.parametrize("transport", ["quic", "mpquic"])
def test_the_plan_names_both_interfaces(two_paths: str, transport: str) -> None:
    plan: dict[str, Any] = Scenario.parse(over(two_paths, transport), "x.toml").plan().data
    assert plan["events"][-1] == {
        "at_ns": 4_000_000_000,
        "action": {"kind": "migrate", "node": 0, "interface": 0, "to": 1},
    }


@pytest.mark.parametrize(
    ("transport", "old", "new", "message"),
    [
        (
            "mptcp",
            "",
            "",
            "46: only clients of QUIC migrate (RFC 9000 section 9), and 'client' is a client over "
            'mptcp alone; take transport = "quic" or "mpquic"',
        ),
        (
            "quic",
            'client:eth0"\nmigrate_to = "eth1"',
            'server:eth0"\nmigrate_to = "eth1"',
            "46: unknown interface of 'server' 'eth1'; did you mean 'eth0'?",
        ),
        (
            "quic",
            '"eth1"',
            '"eth0"',
            "46: paths of 'client:eth0' are there already; name another interface of 'client'",
        ),
        (
            "quic",
            'interface = "client:eth0"',
            'link = "path0"',
            "46: 'migrate_to' is nothing that changes of a link",
        ),
    ],
)
def test_refused_with_its_place(two_paths: str, transport: str, old: str, new: str, message: str) -> None:
    said = complaint(over(two_paths, transport, EVENT.replace(old, new) if old else EVENT))
    assert said == f"x.toml:{message}"


def test_a_server_does_not_migrate(two_paths: str) -> None:
    link = '[link.second]\nends = ["r", "server:eth1"]\n'
    event = EVENT.replace("client", "server")
    said = complaint(over(two_paths, "quic", event).replace("[[application]]", f"{link}[[application]]"))
    assert said.endswith('and \'server\' is the client of no application; take transport = "quic" or "mpquic"')


def test_noq_moves_no_path_of_several(two_paths: str) -> None:
    said = complaint(over(two_paths, "mpquic", stack="noq"))
    assert said.endswith(
        "'client' runs noq, which moves no path of Multipath QUIC: it opens another one instead; "
        'take transport = "quic" there'
    )
    Scenario.parse(over(two_paths, "quic", stack="noq"), "x.toml").plan()
