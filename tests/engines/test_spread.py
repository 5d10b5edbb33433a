"""Routing 'spread': a controller that keeps the subflows of one connection apart."""

import itertools

import polars as pl
import pytest

import polypath
from polypath import Recording, Scenario, ScenarioError

PARALLEL = """
duration = "4 s"
routing = "spread"
[defaults]
path_manager = { kind = "ndiffports", num_subflows = 4 }
[topology]
kind = "parallel"
paths = 4
rate = "10 Mbps"
delay = "1 ms"
access = { rate = "1 Gbps" }
[[application]]
kind = "bulk"
"""
TRAP = """
duration = "3 s"
routing = "spread"
[defaults]
path_manager = { kind = "ndiffports", num_subflows = 2 }
[host.client]
[host.server]
[router.a]
[router.b]
[router.c]
[router.d]
[link.in]
ends = ["client", "a"]
[link.out]
ends = ["b", "server"]
[link.short]
ends = ["a", "b"]
rate = "10 Mbps"
delay = "1 ms"
[link.long-1]
ends = ["a", "c"]
rate = "10 Mbps"
delay = "1 ms"
[link.long-2]
ends = ["c", "d"]
rate = "10 Mbps"
delay = "1 ms"
[link.long-3]
ends = ["d", "b"]
rate = "10 Mbps"
delay = "1 ms"
[[application]]
kind = "bulk"
"""


def run(text: str, *settings: str) -> Recording:
    return polypath.run(Scenario.parse(text, "x").with_settings(list(settings)))


def forward(recording: Recording, prefix: str) -> dict[str, int]:
    """Bytes that each link of these carried from its first end to its second."""
    ends = recording.table("link_ends").filter(pl.col("name").str.starts_with(prefix), direction="forward")
    return dict(ends.select("name", "sent_bytes").iter_rows())


def goodput(recording: Recording) -> float:
    """Mbps from the first byte to the end."""
    row = recording.table("connection_ends").row(0, named=True)
    mbps: float = row["server_received_bytes"] * 8e3 / (row["last_byte_ns"] - row["first_byte_ns"])
    return mbps


@pytest.mark.parametrize("profile", ["linux", "rfc", "mptcp.org"])
def test_as_many_subflows_as_paths_take_one_each(profile: str) -> None:
    recording = run(PARALLEL, f"defaults.profile={profile}", "defaults.receive_buffer=4 MiB")
    samples = recording.table("subflow_ends")
    assert len(samples) == 4
    carried = forward(recording, "left-")
    assert len(carried) == 4
    assert min(carried.values()) > 0.15 * sum(carried.values())


def test_they_fill_all_paths() -> None:
    settings = ("defaults.profile=linux", "defaults.receive_buffer=4 MiB")
    assert goodput(run(PARALLEL, *settings)) > 0.95 * 40 * 1400 / 1514


def test_a_second_connection_is_spread_by_itself() -> None:
    """Two connections of two subflows each on four paths: disjoint within, and over free paths first."""
    text = PARALLEL + '[[application]]\nkind = "bulk"\nname = "second"\nstart = "10 ms"\n'
    carried = forward(run(text, "defaults.path_manager.num_subflows=2"), "left-")
    assert min(carried.values()) > 0.15 * sum(carried.values())


def test_plain_tcp_takes_the_path_with_the_fewest_flows() -> None:
    applications = "".join(f'[[application]]\nkind = "bulk"\nname = "tcp-{number}"\n' for number in range(3))
    text = PARALLEL + applications
    settings = [f"application.{name}.transport=tcp" for name in ("bulk", "tcp-0", "tcp-1", "tcp-2")]
    carried = forward(run(text, *settings), "left-")
    assert min(carried.values()) > 0.2 * sum(carried.values())


def test_a_longer_way_counts_for_more_than_a_shared_link() -> None:
    spread, shortest = (run(TRAP, f"routing={routing}") for routing in ("spread", "shortest-path"))
    assert forward(shortest, "long-1") == {"long-1": 0}
    assert forward(spread, "long-1")["long-1"] > 0.4 * forward(spread, "short")["short"]
    assert goodput(spread) > 1.8 * goodput(shortest)


def test_answers_come_back_the_same_way() -> None:
    recording = run(TRAP)
    ends = recording.table("link_ends").filter(pl.col("name").is_in(["short", "long-1", "long-2", "long-3"]))
    packets = {(name, way): sent for name, way, sent in ends.select("name", "direction", "sent_packets").iter_rows()}
    way_back = [packets[name, "backward"] for name in ("long-1", "long-2", "long-3")]
    assert min(way_back) > 100
    assert max(way_back) - min(way_back) <= 2  # still under way when the run ends


def test_runs_are_equal() -> None:
    assert len({run(PARALLEL).metadata.recording_sha256 for _ in range(2)}) == 1


def test_it_takes_no_static_routes() -> None:
    route = '[[route]]\nnode = "a"\ndestination = "10.0.1.0/24"\ninterface = "eth1"\n'
    with pytest.raises(ScenarioError, match="routing 'spread' places every flow itself; take the routes away"):
        Scenario.parse(TRAP + route, "x.toml")


def test_it_knows_no_middleboxes() -> None:
    text = TRAP.replace("[link.short]", '[link.short]\nmiddlebox = "nat"')
    with pytest.raises(
        ScenarioError, match=r"x.toml:17: routing 'spread' knows no middleboxes; take that of link short away"
    ):
        Scenario.parse(text, "x.toml")


def test_a_torus_gives_a_connection_every_way_out() -> None:
    """In a torus of two dimensions four ways share no link but those of the hosts."""
    text = (
        'duration = "3 s"\nrouting = "spread"\n[defaults]\npath_manager = { kind = "ndiffports", num_subflows = 4 }\n'
        'receive_buffer = "4 MiB"\n[topology]\nkind = "torus"\nrate = "10 Mbps"\ndelay = "1 ms"\n'
        'access = { rate = "1 Gbps" }\n[[application]]\nkind = "bulk"\nclient = "h0"\nserver = "h10"\n'
    )
    ends = (
        run(text)
        .table("link_ends")
        .filter(pl.col("name").str.starts_with("s0-0-") | pl.col("name").str.ends_with("-s0-0"))
    )
    sent = ends.group_by("name").agg(pl.col("sent_bytes").max())["sent_bytes"].to_list()
    assert len(sent) == 4
    assert all(2 * one > other for one, other in itertools.permutations(sent, 2))
