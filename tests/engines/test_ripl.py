"""The examples that are os-ken applications after RipL-POX, with its three routings."""

from __future__ import annotations

from pathlib import Path

import pytest

from polypath import Recording, Scenario, run

EXAMPLES = Path(__file__).parents[2] / "examples"
ROUTINGS = ("random", "hashed", "spanning_tree")


def scenario(routing: str, rest: str = "") -> Scenario:
    text = f"""
duration = "30 s"
[controller]
app = "ripl_{routing}.py"
delay = "1 ms"
[topology]
kind = "fat-tree"
k = 4
rate = "20 Mbps"
delay = "100 us"
queue = "100 packets"
[[application]]
kind = "bulk"
transport = "tcp"
matrix = "permutation"
size = "500 kB"
start = "1 s"
{rest}
"""
    return Scenario.parse(text, str(EXAMPLES / "x.toml"), folder=EXAMPLES)


def used(recording: Recording) -> set[str]:
    """The links between switches that carried more than LLDP."""
    ends = recording.table("link_ends")
    ends = ends.filter(ends["sent_packets"] > 20)
    return {name for name in ends["link"].cast(str).to_list() if name in _between(recording)}


def _between(recording: Recording) -> set[str]:
    nodes, links = recording.plan["nodes"], recording.plan["links"]
    return {
        str(number)
        for number, link in enumerate(links)
        if all(nodes[link[end]["node"]]["kind"] != "host" for end in ("a", "b"))
    }


def finished(recording: Recording) -> bool:
    ends = recording.table("connection_ends")
    states = ends["state"].unique().to_list(), ends["server_received_bytes"].unique().to_list()
    return states == (["finished"], [500_000])


@pytest.mark.parametrize("routing", ROUTINGS)
def test_each_routing_carries_a_permutation_in_a_fat_tree(routing: str) -> None:
    recording = run(scenario(routing))
    assert finished(recording)
    assert recording.table("switch_ends")["errors"].unique().to_list() == [0]
    links, switches = used(recording), recording.table("switch_ends").height
    if routing == "spanning_tree":
        assert len(links) <= switches - 1
    else:
        assert len(links) > switches - 1, "equal paths are used side by side"
    assert run(scenario(routing)).metadata.recording_sha256 == recording.metadata.recording_sha256


@pytest.mark.parametrize("routing", ROUTINGS)
def test_flows_get_other_paths_when_a_switch_fails_and_when_it_is_back(routing: str) -> None:
    changes = "".join(
        f'[[event]]\nat = "{at} ms"\nswitch = "core0"\nup = {up}\n' for at, up in ((1050, "false"), (1200, "true"))
    )
    recording = run(scenario(routing, changes))
    assert finished(recording)
    ends = recording.table("switch_ends")
    # Each of the four links is reported at both ends, down and up.
    assert ends["port_statuses"].sum() == 16
