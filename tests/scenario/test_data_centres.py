"""What the topologies of data centres and of the literature are made of: counts, degrees, disjoint ways, diameters."""

from collections import Counter

import networkx as nx
import pytest

from polypath.scenario import Scenario, ScenarioError

Graph = "nx.MultiGraph[str]"


def graph(text: str) -> "nx.MultiGraph[str]":
    plan = Scenario.parse("[topology]\n" + text, "x").plan().data
    names = [node["name"] for node in plan["nodes"]]
    made: nx.MultiGraph[str] = nx.MultiGraph()
    for name, node in zip(names, plan["nodes"], strict=True):
        made.add_node(name, host=node["kind"] == "host", forwards=node.get("forwards", False))
    for link in plan["links"]:
        made.add_edge(names[link["a"]["node"]], names[link["b"]["node"]], key=link["name"])
    return made


def hosts(made: "nx.MultiGraph[str]") -> list[str]:
    return [name for name, of in made.nodes(data=True) if of["host"]]


def switches(made: "nx.MultiGraph[str]") -> list[str]:
    return [name for name, of in made.nodes(data=True) if not of["host"]]


def disjoint(made: "nx.MultiGraph[str]", a: str, b: str) -> int:
    """How many ways without a link in common."""
    weighed: nx.Graph[str] = nx.Graph()
    for one, other in made.edges():
        weighed.add_edge(one, other, capacity=made.number_of_edges(one, other))
    ways: int = nx.maximum_flow_value(weighed, a, b)
    return ways


def diameter(made: "nx.MultiGraph[str]", names: list[str]) -> int:
    """The longest of the shortest ways between these."""
    lengths = dict(nx.all_pairs_shortest_path_length(made))
    longest: int = max(lengths[a][b] for a in names for b in names)
    return longest


@pytest.mark.parametrize(("n", "k"), [(2, 0), (4, 1), (3, 2), (5, 2), (2, 4)])
def test_bcube(n: int, k: int) -> None:
    """Guo et al., sections 3.1 and 3.2: at most k + 1 switches on the way, and k + 1 ways that share no server."""
    made = graph(f'kind = "bcube"\nn = {n}\nk = {k}\n')
    assert len(hosts(made)) == n ** (k + 1)
    assert len(switches(made)) == (k + 1) * n**k
    assert made.number_of_edges() == (k + 1) * n ** (k + 1)
    assert {made.degree(name) for name in hosts(made)} == {k + 1}
    assert {made.degree(name) for name in switches(made)} == {n}
    assert diameter(made, hosts(made)) == 2 * (k + 1)
    assert all(made.nodes[name]["forwards"] for name in hosts(made))
    assert nx.node_connectivity(nx.Graph(made), "h0", hosts(made)[-1]) == k + 1


@pytest.mark.parametrize(("d_a", "d_i", "servers"), [(4, 4, 20), (6, 8, 2), (2, 2, 1), (8, 4, 3)])
def test_vl2(d_a: int, d_i: int, servers: int) -> None:
    text = f'kind = "vl2"\naggregation_ports = {d_a}\nintermediate_ports = {d_i}\nservers = {servers}\n'
    made = graph(text)
    kinds = Counter(name.rstrip("0123456789") for name in made)
    racks = d_a * d_i // 4
    assert kinds == {"h": racks * servers, "tor": racks, "aggregation": d_i, "intermediate": d_a // 2}
    assert {made.degree(name) for name in made if name.startswith("aggregation")} == {d_a}
    assert {made.degree(name) for name in made if name.startswith("intermediate")} == {d_i}
    assert {made.degree(name) for name in made if name.startswith("tor")} == {2 + servers}
    if racks > 1:
        assert disjoint(made, "tor0", f"tor{racks - 1}") == 2
        assert diameter(made, hosts(made)) == (6 if d_i > 2 else 4)


def test_three_levels_with_links_side_by_side() -> None:
    made = graph('kind = "three-level"\n')
    assert (len(hosts(made)), len(switches(made)), made.number_of_edges()) == (72, 6, 2 * 4 * 9 + 72)
    assert {made.degree(name) for name in switches(made)} == {36}
    assert made.number_of_edges("edge1", "core0") == 9
    assert disjoint(made, "edge0", "edge3") == 18
    assert diameter(made, hosts(made)) == 4


@pytest.mark.parametrize("pairs", [1, 2, 30])
def test_dumbbell(pairs: int) -> None:
    made = graph(f'kind = "dumbbell"\npairs = {pairs}\n')
    assert (len(hosts(made)), made.number_of_edges()) == (2 * pairs, 2 * pairs + 1)
    assert nx.shortest_path(made, "client0", f"server{pairs - 1}") == ["client0", "left", "right", f"server{pairs - 1}"]


@pytest.mark.parametrize("hops", [1, 2, 5])
def test_parking_lot(hops: int) -> None:
    made = graph(f'kind = "parking-lot"\nhops = {hops}\n')
    assert (len(hosts(made)), len(switches(made))) == (2 * hops + 2, hops + 1)
    assert nx.shortest_path_length(made, "client0", "server0") == hops + 2
    crossed = {frozenset(nx.shortest_path(made, f"client{hop}", f"server{hop}")[1:3]) for hop in range(1, hops + 1)}
    assert len(crossed) == hops
    assert diameter(made, hosts(made)) == hops + 2


@pytest.mark.parametrize(("size", "dimensions", "count"), [(5, 1, 1), (4, 2, 2), (3, 3, 1), (5, 2, 1)])
def test_torus(size: int, dimensions: int, count: int) -> None:
    made = graph(f'kind = "torus"\nsize = {size}\ndimensions = {dimensions}\nhosts = {count}\n')
    assert len(switches(made)) == size**dimensions
    assert {made.degree(name) for name in switches(made)} == {2 * dimensions + count}
    assert diameter(made, switches(made)) == dimensions * (size // 2)
    first, last = switches(made)[0], switches(made)[-1]
    assert disjoint(made, first, last) == 2 * dimensions


@pytest.mark.parametrize(("count", "degree"), [(20, 4), (21, 3), (2, 1), (10, 9), (60, 8)])
def test_jellyfish(count: int, degree: int) -> None:
    text = f'kind = "jellyfish"\nswitches = {count}\ndegree = {degree}\n'
    made = graph(text)
    degrees = Counter(made.degree(name) - 1 for name in switches(made))
    assert degrees == ({degree: count} if count * degree % 2 == 0 else {degree: count - 1, degree - 1: 1})
    assert max(Counter(made.edges()).values()) == 1
    assert nx.is_connected(made)
    assert sorted(made.edges()) == sorted(graph(text).edges())


def test_another_seed_is_another_jellyfish_and_every_switch_is_as_likely_a_neighbour() -> None:
    near: Counter[str] = Counter()
    for seed in range(400):
        made = graph(f'kind = "jellyfish"\nswitches = 8\ndegree = 3\nseed = {seed}\n')
        near.update(name for name in made["s0"] if name.startswith("s"))
    expected = 400 * 3 / 7
    assert set(near) == {f"s{number}" for number in range(1, 8)}
    assert sum((count - expected) ** 2 / expected for count in near.values()) < 22.5  # chi-squared, 6 degrees, 0.1 %


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('kind = "bcube"\nn = 64\nk = 3\n', "x.toml:1: topology: a BCube of n = 64 and k = 3 has 16,777,216 servers"),
        ('kind = "vl2"\naggregation_ports = 3\n', "x.toml:3: topology.aggregation_ports: it is even, not 3"),
        ('kind = "torus"\nsize = 2\n', "x.toml:3: topology.size: must be at least 3, not 2"),
        (
            'kind = "jellyfish"\nswitches = 4\ndegree = 4\n',
            "x.toml:4: topology: a switch is joined to at most 3",
        ),
        (
            'kind = "jellyfish"\nswitches = 4\ndegree = 1\n',
            "x.toml:4: topology: with one link each, 4 switches are not connected; take a degree of 2 or more",
        ),
        ('kind = "three-levels"\n', "x.toml:2: topology: unknown kind 'three-levels'; did you mean 'three-level'?"),
    ],
)
def test_sizes_that_cannot_be_are_named_with_their_line(text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse("[topology]\n" + text, "x.toml")
    assert str(caught.value).startswith(message)
