"""BCube's own ways between two servers: k + 1 without a link in common, whichever of the shortest ones are taken."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import networkx as nx
import pytest

import polypath
from polypath.results import metrics
from polypath.scenario import Scenario, ScenarioError

APPLICATION = '[[application]]\nkind = "bulk"\n'


def parsed(n: int, k: int, ways: int, application: str, head: str = "", links: str = "") -> Scenario:
    topology = f'[topology]\nkind = "bcube"\nn = {n}\nk = {k}\nways = {ways}\nrate = "10 Mbps"\n'
    return Scenario.parse(head + topology + links + APPLICATION + application, "x.toml")


class Network:
    """A plan's network, and the shortest ways between two interfaces as the simulator looks for them."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.graph: nx.Graph[int] = nx.Graph()
        self.beyond: dict[tuple[int, int], int] = {}
        for link in plan["links"]:
            a, b = link["a"], link["b"]
            self.graph.add_edge(a["node"], b["node"])
            self.beyond[a["node"], a["interface"]] = b["node"]
            self.beyond[b["node"], b["interface"]] = a["node"]
        self.owners = {
            address: (node, number)
            for node, each in enumerate(plan["nodes"])
            for number, interface in enumerate(each["interfaces"])
            for address in interface["addresses"]
        }
        self.routes = {
            (route["node"], route["source"]["address"], route["destination"]["address"]): route["interface"]
            for route in plan["routes"]
            if route["destination"]["length"]
        }

    def links(self, source: str, destination: str) -> set[frozenset[int]]:
        """Every link of every shortest way between these addresses, which passes the hosts at its ends nowhere else."""
        (here, leaving), (there, arriving) = self.owners[source], self.owners[destination]
        first, last = self.beyond[here, leaving], self.beyond[there, arriving]
        inner = self.graph.subgraph(set(self.graph) - {here, there})
        found = {frozenset((here, first)), frozenset((last, there))}
        hops = nx.single_source_shortest_path_length(inner, last)
        places = {first}
        while places != {last}:
            steps = {(node, on) for node in places for on in self._on(inner, hops, node, source, destination)}
            found |= {frozenset(step) for step in steps}
            places = {on for _, on in steps}
            assert places
        return found

    def _on(self, inner: Any, hops: dict[int, int], node: int, source: str, destination: str) -> Iterator[int]:
        if (kept := self.routes.get((node, source, destination))) is not None:
            yield self.beyond[node, kept]
        else:
            yield from (near for near in inner[node] if hops[near] < hops[node])


def pairs_of(application: dict[str, Any]) -> list[tuple[str, str]]:
    """The addresses of a connection's subflows, the first one's first."""
    steps = application["client_stack"]["path_manager"]["parameters"]["steps"]
    opened = [tuple(step.split()[3:]) for step in steps]
    return [(application["source"], application["destination"]), *opened]


@pytest.mark.parametrize(("n", "k"), [(2, 0), (3, 1), (2, 2), (5, 2), (2, 3), (3, 3), (2, 5)])
def test_every_pair_has_ways_without_a_link_in_common(n: int, k: int) -> None:
    """Guo et al., SIGCOMM 2009, section 3.3. A BCube looks alike from each server: all pairs of one, and some more."""
    hosts = n ** (k + 1)
    pairs = [(0, other) for other in range(1, hosts)]
    pairs += [(one, (one * one + 1) % hosts) for one in range(1, hosts, 1 + hosts // 20)]
    tables = [f'client = "h{client}"\nserver = "h{server}"\n' for client, server in pairs if client != server]
    plan = parsed(n, k, k + 1, APPLICATION.join(tables)).plan().data
    network = Network(plan)
    assert len(plan["applications"]) == len(tables)
    for application in plan["applications"]:
        ends = pairs_of(application) if k else [(application["source"], application["destination"])]
        assert len(ends) == k + 1
        for there in (ends, [(destination, source) for source, destination in ends]):
            ways = [network.links(*pair) for pair in there]
            assert not [1 for one, other in itertools.combinations(ways, 2) if one & other]


@pytest.mark.parametrize("routing", ["ecmp", "shortest-path"])
@pytest.mark.parametrize("server", [1, 5, 7, 25, 30, 31])
def test_three_ways_carry_three_links(server: int, routing: str) -> None:
    """1428 bytes of payload in 1514 with the Ethernet header, on links of 10 Mbps."""
    text = f'name = "bulk"\nclient = "h0"\nserver = "h{server}"\n'
    head = f'routing = "{routing}"\nduration = "4 s"\n'
    recording = polypath.run(parsed(5, 2, 3, text, head, 'queue = "100 packets"\n'))
    (connection,) = metrics.connections(recording)
    rate = metrics.goodput(recording, connection, 2 * metrics.SECOND, 4 * metrics.SECOND)
    assert rate == pytest.approx(3 * 10e6 * 1428 / 1514, rel=0.02)


@cache
def lengths(n: int, k: int, ways: int, client: int, server: int) -> list[int]:
    plan = parsed(n, k, ways, f'client = "h{client}"\nserver = "h{server}"\n').plan().data
    network = Network(plan)
    return [_switches(network, *pair) for pair in pairs_of(plan["applications"][0])]


def _switches(network: Network, source: str, destination: str) -> int:
    (here, leaving), (there, arriving) = network.owners[source], network.owners[destination]
    inner = network.graph.subgraph(set(network.graph) - {here, there})
    hops: int = nx.shortest_path_length(inner, network.beyond[here, leaving], network.beyond[there, arriving])
    return 1 + hops // 2


def test_the_shortest_way_is_the_first_and_further_ones_are_between_other_interfaces() -> None:
    assert lengths(5, 2, 3, 0, 1 + 5 + 25) == [3, 3, 3]
    assert lengths(5, 2, 3, 0, 25) == [1, 3, 3]
    assert lengths(5, 2, 9, 0, 1 + 5 + 25) == [3, 3, 3, 3, 3, 3, 4, 4, 4]
    assert lengths(5, 2, 9, 0, 1 + 25) == [2, 2, 4, 3, 3, 4, 4, 4, 4]
    assert lengths(5, 2, 9, 0, 25) == [1, 3, 3, 4, 4, 4, 4, 5, 5]


def test_a_connection_of_one_path_takes_the_first() -> None:
    plan = parsed(5, 2, 3, 'transport = "tcp"\nclient = "h0"\nserver = "h5"\n').plan().data
    (application,) = plan["applications"]
    names = {
        address: f"{node['name']}:{interface['name']}"
        for node in plan["nodes"]
        for interface in node["interfaces"]
        for address in interface["addresses"]
    }
    assert (names[application["source"]], names[application["destination"]]) == ("h0:eth1", "h5:eth1")
    assert application["client_stack"] is None


def test_one_way_is_one_subflow() -> None:
    plan = parsed(5, 2, 1, 'client = "h0"\nserver = "h5"\n').plan().data
    (application,) = plan["applications"]
    assert len(pairs_of(application)) == 1
    assert application["server_stack"]["path_manager"] == {"name": "scripted", "parameters": {"steps": []}}


def test_routes_keep_packets_on_their_way_where_four_digits_differ() -> None:
    assert not [
        route for route in parsed(2, 3, 4, 'client = "h0"\nserver = "h7"\n').plan().data["routes"] if _kept(route)
    ]
    found = [
        route for route in parsed(2, 3, 4, 'client = "h0"\nserver = "h15"\n').plan().data["routes"] if _kept(route)
    ]
    assert Counter(route["node"] for route in found).most_common()[0][1] == 2
    assert len(found) == 4 * 3 * 2


def _kept(route: dict[str, Any]) -> bool:
    return bool(route["destination"]["length"])


def test_other_settings_of_the_application_stay() -> None:
    text = 'client = "h0"\nserver = "h1"\nclient_stack = { nagle = false }\nstack = { congestion = "olia" }\n'
    plan = parsed(3, 1, 2, text).plan().data
    (application,) = plan["applications"]
    client, server = application["client_stack"], application["server_stack"]
    assert (client["nagle"], server["nagle"]) == (False, True)
    assert client["congestion"]["name"] == server["congestion"]["name"] == "olia"
    assert client["path_manager"]["name"] == server["path_manager"]["name"] == "scripted"


def test_without_ways_nothing_is_said() -> None:
    plan = parsed(3, 1, 0, 'client = "h0"\nserver = "h8"\n').plan().data
    assert plan["applications"][0]["client_stack"] is None


@pytest.mark.parametrize(
    ("n", "k", "ways", "head", "application", "message"),
    [
        (3, 1, 5, "", "", "x.toml:1: topology: two servers have 2 interfaces each, and so 4 ways, not 5"),
        (
            3,
            1,
            2,
            '[defaults]\npath_manager = "fullmesh"\n',
            'client = "h0"\nserver = "h1"\n',
            "x.toml:2: the topology's 'ways' open the subflows; take one of the two away",
        ),
        (
            3,
            1,
            2,
            "",
            'client = "h0"\nserver = "h1"\nclient_stack = { path_manager = "ndiffports" }\n',
            "x.toml:11: the topology's 'ways' open the subflows",
        ),
        (
            3,
            1,
            2,
            "",
            'client = "h0"\nserver = "h1"\ntransport = "mpquic"\n',
            "x.toml:11: the topology's 'ways' are for Multipath TCP and for single paths",
        ),
        (
            2,
            3,
            4,
            'routing = "spread"\n',
            'client = "h0"\nserver = "h15"\n',
            "x.toml:1: routing 'spread' places every flow itself; take the topology's 'ways' away",
        ),
    ],
)
def test_what_does_not_go_together_is_named(
    n: int, k: int, ways: int, head: str, application: str, message: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        parsed(n, k, ways, application, head)
    assert str(caught.value).startswith(message)


def test_both_ends_of_a_way_have_one_version_of_ip() -> None:
    """One interface has an address of IPv6 alone, and none of the other end's has."""
    text = (
        'duration = "1 s"\nrouting = "ecmp"\n[topology]\nkind = "bcube"\nn = 3\nk = 1\nways = 4\nrate = "10 Mbps"\n'
        '[host.h0.interface.eth1]\naddress = "2001:db8::1"\n'
        '[[application]]\nkind = "bulk"\nclient = "h0"\nserver = "h4"\ntransport = "mptcp"\n'
    )
    ends = polypath.run(Scenario.parse(text, "x")).table("subflow_ends").select("source", "destination")
    assert 1 <= ends.height < 4
    assert not [pair for pair in ends.iter_rows() if ":" in "".join(pair)]
