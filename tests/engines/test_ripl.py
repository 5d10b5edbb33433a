"""The examples that are os-ken applications after RipL-POX, with its three routings."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from polypath import Recording, Scenario, run

from ..slow import others_slow

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


#: What fails, and how many links with it.
FAILING = {'switch = "core0"': 4, 'switch = "pod0-aggregation0"': 4, 'link = "pod0-edge0-aggregation0"': 1}


@pytest.mark.parametrize(
    ("failing", "routing"), others_slow(product(FAILING, ROUTINGS), *zip(FAILING, ROUTINGS, strict=True))
)
def test_flows_get_other_paths_when_something_fails_and_when_it_is_back(routing: str, failing: str) -> None:
    changes = "".join(
        f'[[event]]\nat = "{at} ms"\n{failing}\nup = {up}\n' for at, up in ((1050, "false"), (1200, "true"))
    )
    recording = run(scenario(routing, changes))
    assert finished(recording)
    # Each link is reported at both ends, down and up.
    assert recording.table("switch_ends")["port_statuses"].sum() == 4 * FAILING[failing]
    whole = run(scenario(routing)).table("connection_ends")["end_ns"].max()
    late = recording.table("connection_ends")["end_ns"].max()
    assert whole is not None
    assert late is not None
    assert int(str(late)) < int(str(whole)) + 3 * 10**9, "flows do not wait for the link"
