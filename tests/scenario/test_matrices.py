"""Who sends to whom: traffic matrices, and several connections side by side."""

from collections import Counter

import pytest

from polypath.scenario import Scenario, ScenarioError

HEAD = '[topology]\nkind = "torus"\nsize = 3\nrate = "10 Mbps"\n[[application]]\nkind = "bulk"\n'
NAMES = [f"h{number}" for number in range(9)]


def pairs(matrix: str, seed: int = 1) -> list[tuple[str, str]]:
    plan = Scenario.parse(f"{HEAD}matrix = {matrix}\n", "x").plan(seed).data
    names = [node["name"] for node in plan["nodes"]]
    found = [(names[each["client"]], names[each["server"]]) for each in plan["applications"]]
    assert all(client != server for client, server in found)
    return found


def test_one_to_many_has_as_many_different_servers_for_each() -> None:
    found = pairs('{ kind = "one-to-many", receivers = 4 }')
    assert Counter(client for client, _ in found) == dict.fromkeys(NAMES, 4)
    assert len(set(found)) == len(found)
    assert found != pairs('{ kind = "one-to-many", receivers = 4 }', 2)


def test_one_to_many_among_the_hosts_that_are_one_switch_away() -> None:
    text = '[topology]\nkind = "bcube"\nn = 5\nk = 2\n[[application]]\nkind = "bulk"\n'

    def of(matrix: str, seed: int = 1) -> dict[int, set[int]]:
        plan = Scenario.parse(f"{text}matrix = {matrix}\n", "x").plan(seed).data
        found: dict[int, set[int]] = {}
        for each in plan["applications"]:
            found.setdefault(each["client"], set()).add(each["server"])
        return found

    every = of('{ kind = "one-to-many", to = "neighbours" }')
    assert len(every) == 125
    for host, servers in every.items():
        assert servers == {host + (digit - host // level % 5) * level for level in (1, 5, 25) for digit in range(5)} - {
            host
        }
    some = of('{ kind = "one-to-many", to = "neighbours", receivers = 3 }')
    assert all(len(servers) == 3 and servers < every[host] for host, servers in some.items())
    assert some != of('{ kind = "one-to-many", to = "neighbours", receivers = 3 }', 2)


def test_neighbours_may_have_a_link_of_their_own() -> None:
    text = '[host.a]\n[host.b]\n[host.c]\n[router.r]\n[link.ab]\nends = ["a", "b"]\n[link.bc]\nends = ["b", "c"]\n'
    text += '[link.ca]\nends = ["c", "a"]\n[[application]]\nkind = "bulk"\n'
    plan = Scenario.parse(
        text.replace("[router.r]\n", "") + 'matrix = { kind = "one-to-many", to = "neighbours", receivers = 2 }', "x"
    )
    assert len(plan.plan().data["applications"]) == 6


def test_sparse_can_be_a_part_of_a_permutation() -> None:
    found = pairs('{ kind = "sparse", share = "100 %", distinct = true }')
    assert sorted(client for client, _ in found) == sorted(server for _, server in found)
    for seed in range(1, 101):
        found = pairs('{ kind = "sparse", share = "60 %", distinct = true }', seed)
        assert len({server for _, server in found}) == len(found) == 5
        assert all(client != server for client, server in found)


def test_sparse_can_be_of_the_first_hosts() -> None:
    found = [pairs('{ kind = "sparse", share = "30 %", clients = "first" }', seed) for seed in (1, 2)]
    assert [[client for client, _ in each] for each in found] == [["h0", "h1", "h2"]] * 2
    assert found[0] != found[1]


def test_sparse_takes_a_share_of_the_hosts() -> None:
    found = pairs('"sparse"')
    assert len({client for client, _ in found}) == len(found) == 3
    assert len(pairs('{ kind = "sparse", share = "100 %" }')) == 9
    drawn = Counter(client for seed in range(1, 301) for client, _ in pairs('"sparse"', seed))
    assert set(drawn) == set(NAMES)
    assert all(abs(count - 100) < 45 for count in drawn.values())


def test_incast_leads_to_one() -> None:
    assert pairs('{ kind = "incast", receiver = "h4" }') == [(name, "h4") for name in NAMES if name != "h4"]
    found = pairs('{ kind = "incast", senders = 5 }')
    assert len({server for _, server in found}) == 1
    assert len({client for client, _ in found}) == 5
    assert {pairs('"incast"', seed)[0][1] for seed in range(1, 100)} == set(NAMES)


def test_stride_counts_round() -> None:
    assert pairs('{ kind = "stride", step = 4 }')[:6] == [
        ("h0", "h4"),
        ("h1", "h5"),
        ("h2", "h6"),
        ("h3", "h7"),
        ("h4", "h8"),
        ("h5", "h0"),
    ]


def test_all_to_all_is_every_ordered_pair() -> None:
    found = pairs('"all-to-all"')
    assert len(found) == len(set(found)) == 9 * 8


def test_connections_are_named_by_their_ends() -> None:
    def names(matrix: str) -> list[str]:
        plan = Scenario.parse(f"{HEAD}matrix = {matrix}\n", "x").plan().data
        return [each["name"] for each in plan["applications"]][:2]

    assert names('"stride"') == ["bulk-h0", "bulk-h1"]
    assert names('"all-to-all"') == ["bulk-h0-h1", "bulk-h0-h2"]


def test_a_matrix_is_written_as_it_was_read() -> None:
    for matrix in ('"stride"', '{ kind = "incast", receiver = "h4" }'):
        scenario = Scenario.parse(f"{HEAD}matrix = {matrix}\n", "x", default_name="x")
        again = Scenario.parse(scenario.to_toml(), "y", default_name="y")
        assert again.application == scenario.application
        assert again.plan() == scenario.plan()


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ('"permutatoin"', "x.toml:7: application 1.matrix: unknown kind 'permutatoin'; did you mean 'permutation'?"),
        ('{ kind = "stride", step = 18 }', "x.toml:7: no matrix 'stride' in this network: a step of 18 among 9 hosts"),
        (
            '{ kind = "one-to-many", receivers = 5, to = "neighbours" }',
            "x.toml:7: no matrix 'one-to-many' in this network: it needs 5 neighbours, and h0 has 0",
        ),
        ('"one-to-many"', "x.toml:7: no matrix 'one-to-many' in this network: it needs 13 hosts, and there are 9"),
        ('{ kind = "incast", receiver = "h9" }', "x.toml:7: no matrix 'incast' in this network: there is no host 'h9'"),
        ('{ kind = "incast", senders = 9 }', "x.toml:7: no matrix 'incast' in this network: it needs 10 hosts, and"),
        ('{ kind = "sparse", share = "0 %" }', "x.toml:7: no matrix 'sparse' in this network: a share of 0 % is"),
    ],
)
def test_a_matrix_that_cannot_be_is_named_with_its_line(matrix: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(f"{HEAD}matrix = {matrix}\n", "x.toml")
    assert str(caught.value).startswith(message)


def test_flows_that_arrive_are_left_out_by_a_count_of_none_and_take_no_other() -> None:
    flows = '[topology]\nkind = "dumbbell"\n[[application]]\nkind = "bulk"\nclient = "client0"\nserver = "server1"\n'
    flows += 'size = "1 kB"\narrivals = 5\n'
    ping = "[[application]]\nkind = 'ping'\nclient = 'client1'\nserver = 'server1'\n"
    plan = Scenario.parse(f"{flows}count = 0\n{ping}", "x").plan().data
    assert [each["name"] for each in plan["applications"]] == ["ping"]
    with pytest.raises(ScenarioError, match="'arrivals' says how many connections there are; leave 'count' out"):
        Scenario.parse(f"{flows}count = 2\n", "x")


def test_count_makes_connections_side_by_side() -> None:
    text = '[topology]\nkind = "dumbbell"\n[[application]]\nkind = "bulk"\nclient = "client0"\nserver = "server1"\n'
    plan = Scenario.parse(f"{text}count = 3\nport = 6000\n", "x").plan().data
    assert [(each["name"], each["port"]) for each in plan["applications"]] == [
        ("bulk-1", 6000),
        ("bulk-2", 6001),
        ("bulk-3", 6002),
    ]
    assert Scenario.parse(f"{text}count = 1\n", "x").plan() == Scenario.parse(text, "x").plan()
    assert (
        Scenario.parse(f"{text}count = 0\n[[application]]\nkind = 'ping'\nclient = 'client1'\nserver = 'server1'", "x")
        .plan()
        .data["applications"][0]["name"]
        == "ping"
    )
    matrix = Scenario.parse(
        '[topology]\nkind = "torus"\n[[application]]\nkind = "bulk"\nmatrix = "stride"\ncount = 2\n', "x"
    )
    assert [each["name"] for each in matrix.plan().data["applications"]][:3] == ["bulk-h0-1", "bulk-h0-2", "bulk-h1-1"]
