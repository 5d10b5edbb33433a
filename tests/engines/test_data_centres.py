"""Runs over the topologies of data centres: every transfer ends, over the links that it should take."""

import polars as pl
import pytest

import polypath
from polypath import Recording, Scenario, engines
from polypath.engines.base import EngineError

HEAD = 'duration = "20 s"\nrouting = "ROUTING"\n[defaults]\npath_manager = "fullmesh"\n[topology]\nrate = "10 Mbps"\n'
TRANSFER = '[[application]]\nkind = "bulk"\nsize = "100 kB"\n'
KINDS = [
    'kind = "bcube"\nn = 3\n',
    'kind = "dumbbell"\n',
    'kind = "jellyfish"\nswitches = 8\n',
    'kind = "parking-lot"\n',
    'kind = "three-level"\nhosts = 2\n',
    'kind = "torus"\nsize = 3\n',
    'kind = "vl2"\nservers = 2\n',
]


def run(topology: str, application: str, routing: str = "shortest-path") -> Recording:
    return polypath.run(Scenario.parse(HEAD.replace("ROUTING", routing) + topology + TRANSFER + application, "x"))


def carried(recording: Recording) -> dict[str, int]:
    """Bytes that each link carried, both ways."""
    return dict(recording.table("link_ends").group_by("name").agg(pl.col("sent_bytes").sum()).iter_rows())


@pytest.mark.parametrize("routing", ["shortest-path", "ecmp", "in-turn"])
@pytest.mark.parametrize("topology", KINDS)
def test_every_transfer_of_a_permutation_ends(topology: str, routing: str) -> None:
    recording = run(topology, 'matrix = "permutation"\n', routing)
    ends = recording.table("connection_ends")
    assert len(ends) >= 4
    assert ends["end_ns"].null_count() == 0
    assert ends["server_received_bytes"].unique().to_list() == [100_000]


def test_every_link_side_by_side_is_used() -> None:
    recording = run('kind = "three-level"\n', 'matrix = "permutation"\n', "ecmp")
    between = {name: sent for name, sent in carried(recording).items() if name.startswith("edge")}
    assert len(between) == 72
    assert sum(sent > 0 for sent in between.values()) > 60


def test_a_server_of_bcube_carries_what_is_for_others() -> None:
    """h0 and h3 of 2 x 2 servers have no switch in common: h1 or h2 stands between."""
    recording = run('kind = "bcube"\nn = 2\n', 'client = "h0"\nserver = "h3"\n')
    used = {name for name, sent in carried(recording).items() if sent > 50_000}
    assert {"h0-eth0", "h1-eth0", "h1-eth1", "h3-eth1"} <= used or {"h0-eth1", "h2-eth1", "h2-eth0", "h3-eth0"} <= used


def test_the_kernel_has_no_hosts_that_forward() -> None:
    text = HEAD.replace("ROUTING", "shortest-path") + 'kind = "bcube"\nn = 2\n' + TRANSFER
    plan = Scenario.parse(text + 'client = "h0"\nserver = "h3"\n', "x").plan()
    with pytest.raises(EngineError, match="host h0 forwards for others"):
        engines.get("linux").run(plan)
