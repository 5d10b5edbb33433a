"""What a table `[topology]` and a traffic matrix are written out to."""

import math
import re

import networkx as nx
import pytest

from polypath import registry
from polypath.plan.routing import Routing
from polypath.scenario import Scenario, ScenarioError, describe_topology
from polypath.scenario.draws import permutation
from polypath.scenario.topologies import REGISTRY

BULK = '[[application]]\nkind = "bulk"\n'
PARALLEL = '[topology]\nkind = "parallel"\npaths = 3\nrate = "10 Mbps"\ndelay = "1 us"\naccess = { rate = "1 Gbps" }\n'
PERMUTATION = (
    '[topology]\nkind = "fat-tree"\nrate = "10 Mbps"\n[[application]]\nkind = "bulk"\nmatrix = "permutation"\n'
)


def graph(text: str) -> "nx.Graph[str]":
    plan = Scenario.parse(text, "x").plan().data
    names = [node["name"] for node in plan["nodes"]]
    made: nx.Graph[str] = nx.Graph()
    made.add_edges_from((names[link["a"]["node"]], names[link["b"]["node"]]) for link in plan["links"])
    return made


def refused(text: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(text, "x.toml")
    return str(caught.value)


@pytest.mark.parametrize("k", [2, 4, 8])
def test_a_fat_tree_has_its_hosts_switches_and_ways(k: int) -> None:
    made = graph(f'[topology]\nkind = "fat-tree"\nk = {k}\n')
    hosts = [name for name in made if name.startswith("h")]
    assert len(hosts) == k**3 // 4
    assert len(made) - len(hosts) == 5 * k * k // 4
    assert {made.degree(name) for name in hosts} == {1}
    assert {made.degree(name) for name in made if not name.startswith("h")} == {k}
    ways = list(nx.all_shortest_paths(made, "h0", hosts[-1]))
    assert (len(ways), len(ways[0])) == (k * k // 4, 7)


def test_an_edge_switch_of_a_fat_tree_may_have_more_hosts() -> None:
    made = graph('[topology]\nkind = "fat-tree"\nk = 4\nhosts = 6\n')
    assert len([name for name in made if name.startswith("h")]) == 48
    assert {made.degree(name) for name in made if "edge" in name} == {8}
    assert [each for each in made["pod1-edge0"] if each.startswith("h")] == [f"h{12 + number}" for number in range(6)]


def test_further_interfaces_lead_to_other_edge_switches() -> None:
    text = '[topology]\nkind = "fat-tree"\ninterfaces = 2\n'
    assert sorted(graph(text)["h1"]) == ["pod0-edge0", "pod0-edge1"]
    node = next(each for each in Scenario.parse(text, "x").plan().data["nodes"] if each["name"] == "h1")
    assert [each["name"] for each in node["interfaces"]] == ["eth0", "eth1"]


def test_parallel_routers_stand_between_two() -> None:
    made = graph(PARALLEL + BULK)
    assert sorted(made["left"]) == ["client", "path0", "path1", "path2"]
    assert sorted(made["right"]) == ["path0", "path1", "path2", "server"]
    links = {link["name"]: link["forward"] for link in Scenario.parse(PARALLEL + BULK, "x").plan().data["links"]}
    assert (links["client"]["rate_bps"], links["client"]["delay_ns"]) == (10**9, 1000)
    assert links["left-path2"]["rate_bps"] == links["path2-right"]["rate_bps"] == 10**7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[topology]\nkind = "fat-tree"\nk = 5\n', "x.toml:3: topology.k: a fat-tree's k is even, not 5: half of a"),
        ('[topology]\nkind = "parallel"\n\npaths = 0\n', "x.toml:4: topology.paths: must be at least 1, not 0"),
        ('[topology]\nkind = "parallel"\npaths = -3\n', "x.toml:3: topology.paths: must be at least 1, not -3"),
        ('[topology]\nkind = "fattree"\n', "x.toml:2: topology: unknown kind 'fattree'; did you mean 'fat-tree'?"),
        ('[topology]\nkind = "fat-tree"\nK = 4\n', "x.toml:3: unknown key 'K' in topology; did you mean 'k'?"),
        (PARALLEL + BULK + 'client = "clinet"\n', "x.toml:9: unknown host 'clinet'; did you mean 'client'?"),
        (
            PARALLEL + '[link.client]\nends = ["client", "server"]\n',
            "x.toml:7: duplicate name: the topology makes a link 'client' already",
        ),
        (PERMUTATION + 'server = "h1"\n', "x.toml:7: with a 'matrix' there is no 'server': it gives every pair"),
        (BULK + 'matrix = "permutation"\n', "x.toml:3: a traffic matrix needs two hosts, not 0"),
        (PERMUTATION + 'start = "2 min"\n', "x.toml:7: it starts at 120 s, but the run ends at 60 s"),
    ],
)
def test_mistakes_are_named_with_their_line(text: str, message: str) -> None:
    assert refused(text).startswith(message)


def test_what_is_wrong_with_many_links_is_one_line() -> None:
    text = PERMUTATION.replace("rate =", 'icmp = true\nburst = "1 kB"\nrate =', 1)
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(text, "x.toml")
    icmp, burst = map(str, caught.value.errors)
    assert re.match("x.toml:3: link.pod0-.*: 'icmp' is about packets longer", icmp)
    assert re.match("x.toml:4: link.pod0-.*: a bucket of 1 kB never holds", burst)


def test_a_made_host_can_be_described() -> None:
    scenario = Scenario.parse(PARALLEL + BULK + '[host.server]\ncongestion = "reno"\n', "x")
    changed = scenario.with_settings(["host.client.congestion=olia", "topology.paths=2"])
    stacks = {node["name"]: node["stack"] for node in changed.plan().data["nodes"]}
    assert stacks["server"]["congestion"]["name"] == "reno"
    assert stacks["client"]["congestion"]["name"] == "olia"
    assert len(stacks) == 6


@pytest.mark.parametrize("text", [PARALLEL + BULK, PERMUTATION])
def test_written_out_it_is_the_same_plan(text: str) -> None:
    scenario = Scenario.parse(text, "x", default_name="x")
    assert Scenario.parse(scenario.to_toml(), "y").plan() == scenario.plan()
    resolved = scenario.resolved()
    assert resolved.topology is None
    assert resolved.plan() == scenario.plan()


def test_a_permutation_gives_each_host_one_of_each() -> None:
    scenario = Scenario.parse(PERMUTATION, "x")
    applications = scenario.plan().data["applications"]
    pairs = [(each["client"], each["server"]) for each in applications]
    assert sorted(client for client, _ in pairs) == sorted(server for _, server in pairs) == list(range(16))
    assert all(client != server for client, server in pairs)
    assert [each["name"] for each in applications[:2]] == ["bulk-h0", "bulk-h1"]
    other = scenario.plan(2)
    assert other.data["seed"] == 2
    assert pairs != [(each["client"], each["server"]) for each in other.data["applications"]]
    assert other == scenario.with_settings(["seed=2"]).plan()


def test_permutations_are_even() -> None:
    """Each of the (n-1)! cycles is as likely: the first element goes anywhere but to its own place."""
    counts = [0] * 5
    for stream in range(2000):
        counts[permutation(5, str(stream))[0]] += 1
    assert counts[0] == 0
    assert all(abs(count - 500) < 4 * math.sqrt(500) for count in counts[1:])


@pytest.mark.parametrize("kind", REGISTRY)
def test_every_topology_is_listed_and_pictured(kind: str) -> None:
    entry = registry.entries("topology")[kind]
    assert entry.description
    assert entry.source
    assert entry.parameters
    picture = describe_topology(Scenario.parse(f'[topology]\nkind = "{kind}"\nrate = "10 Mbps"\n', "x"))
    assert picture.splitlines()[-1] == "links: 10 Mbps"


def test_the_picture_of_a_topology_has_what_the_scenario_adds() -> None:
    text = '[topology]\nkind = "dumbbell"\n[host.more]\n[link.more]\nends = ["right", "more"]\n'
    rates = 'forward = { loss = { kind = "periodic", every = 100 } }\n'
    last = describe_topology(Scenario.parse(text + rates, "x")).splitlines()[-1]
    assert last == "more  right:eth0 ---- 1 of 100 lost ---- more:eth0"


@pytest.mark.parametrize(("routing", "known"), [("shortest-path", True), ("ecmp", False), ("in-turn", False)])
def test_what_links_carry_is_known_where_flows_have_no_choice(routing: str, known: bool) -> None:
    plan = Scenario.parse(f'routing = "{routing}"\n' + PARALLEL + BULK, "x").plan().data
    found = Routing(plan).of_subflows([(plan["applications"][0]["source"], plan["applications"][0]["destination"])])
    assert [len(path.hops) for path in found] == ([4] if known else [])
