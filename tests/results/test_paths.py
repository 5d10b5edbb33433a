"""Paths by the plan: routes, greatest flow, round-trip times."""

import pytest

import polypath
from polypath.measures.summary import summary
from polypath.plan.data import PlanData
from polypath.plan.routing import PathOfSubflow, Routing
from polypath.results import paths
from polypath.scenario import Scenario
from polypath.statistics import points

NETWORK = """
duration = "1 s"
[host.client]
[host.server]
[router.a]
[router.b]
[link.wifi]
ends = ["client:eth0", "a"]
rate = "20 Mbps"
delay = "10 ms"
forward = { rate = "4 Mbps" }
[link.lte]
ends = ["client:eth1", "b"]
rate = "10 Mbps"
delay = "30 ms"
[link.short]
ends = ["a", "server:eth0"]
delay = "1 ms"
[link.long]
ends = ["b", "a"]
delay = "5 ms"
rate = "8 Mbps"
[[application]]
kind = "fetch"
name = "get"
size = "1 MB"
"""


def found(text: str, *ends: str) -> tuple[PlanData, list[PathOfSubflow]]:
    plan = Scenario.parse(text, "x").plan().view
    server = next(node for node in plan["nodes"] if node["name"] == "server")
    address = server["interfaces"][0]["addresses"][0]
    client = plan["nodes"][plan["applications"][0]["client"]]
    sources = {each["name"]: each["addresses"][0] for each in client["interfaces"]}
    return plan, Routing(plan).of_subflows((sources.get(end, "192.0.2.1"), address) for end in ends)


def test_routes_rates_and_times() -> None:
    plan, (wifi, lte) = found(NETWORK, "eth0", "eth1")
    names = [[plan["links"][hop.link]["name"] for hop in path.hops] for path in (wifi, lte)]
    assert names == [["wifi", "short"], ["lte", "long", "short"]]
    assert [path.rtt_s for path in (wifi, lte)] == pytest.approx([0.022, 0.072])
    assert paths.rate_bps(plan, [wifi], reverse=True) == 20e6
    assert paths.rate_bps(plan, [wifi], reverse=False) == 4e6
    assert paths.rate_bps(plan, [wifi, lte], reverse=True) == 28e6


def test_a_link_that_paths_share_counts_once() -> None:
    text = NETWORK.replace('ends = ["a", "server:eth0"]', 'ends = ["a", "server:eth0"]\nrate = "15 Mbps"')
    plan, both = found(text, "eth0", "eth1")
    assert paths.rate_bps(plan, both, reverse=True) == 15e6


def test_two_subflows_over_one_path_carry_what_one_does() -> None:
    plan, both = found(NETWORK, "eth0", "eth0")
    assert paths.rate_bps(plan, both, reverse=True) == 20e6


DIRECT = """
[link.direct]
ends = ["b", "a"]
delay = "3 ms"
"""
ROUTE = """
[[route]]
node = "b"
{}destination = "10.0.2.0/24"
interface = "eth1"
"""


@pytest.mark.parametrize(
    ("more", "link"),
    [
        (DIRECT, "direct"),
        (DIRECT + ROUTE.format(""), "long"),
        (DIRECT + ROUTE.format('source = "10.0.1.0/24"\n'), "long"),
        (DIRECT + ROUTE.format('source = "10.0.9.0/24"\n'), "direct"),
    ],
)
def test_least_delay_counts_unless_a_static_route_matches(more: str, link: str) -> None:
    plan, (lte,) = found(NETWORK + more, "eth1")
    assert [plan["links"][hop.link]["name"] for hop in lte.hops] == ["lte", link, "short"]


def test_the_last_link_is_that_of_the_address() -> None:
    plan = Scenario.parse(NETWORK + DIRECT.replace('["b", "a"]', '["b", "server:eth1"]'), "x").plan().data
    application = plan["applications"][0]
    addresses = [interface["addresses"][0] for interface in plan["nodes"][1]["interfaces"]]
    ways = Routing(plan).of_subflows((application["source"], address) for address in addresses)
    names = [[plan["links"][hop.link]["name"] for hop in path.hops] for path in ways]
    assert names == [["wifi", "short"], ["wifi", "long", "direct"]]


def test_no_rate_and_no_way() -> None:
    plan, (wifi,) = found(NETWORK.replace('rate = "20 Mbps"\n', "").replace('{ rate = "4 Mbps" }', "{}"), "eth0")
    assert paths.rate_bps(plan, [wifi], reverse=False) is None
    assert paths.rate_bps(plan, [], reverse=False) is None
    assert found(NETWORK, "eth9")[1] == []


def test_a_path_leads_over_a_host_that_forwards() -> None:
    plan, (lte,) = found(NETWORK.replace("[router.b]", "[host.b]\nforwards = true"), "eth1")
    assert [plan["links"][hop.link]["name"] for hop in lte.hops] == ["lte", "long", "short"]


def test_closed_forms() -> None:
    assert paths.rule_of_thumb_bytes(2e9, 0.036) == pytest.approx(18e6)
    assert paths.window_limit_bps(1e6, 0.1, 1e9) == 80e6
    assert paths.window_limit_bps(1e9, 0.1, 1e9) == 1e9


@pytest.mark.parametrize(
    ("rates", "cap", "total"),
    [
        ([12, 6], 1.0, 18),
        ([12, 6], 2 / 3, 18),
        ([6, 12], 0.55, 6 / 0.45),
        ([12, 6], 0.5, 12),
        ([12, 6, 4], 1 / 3 + 0.05, 10 / (1 - 1 / 3 - 0.05)),
        ([12, 6, 4, 3], 0.3, 7 / 0.4),
        ([12, 6, 4, 3, 3, 2], 1 / 6, 12),
        ([10, 10, 10], 1 / 3, 30),
        ([5], 1.0, 5),
    ],
)
def test_what_paths_carry_under_a_cap(rates: list[float], cap: float, total: float) -> None:
    found = paths.capped_rate_bps(rates, cap)
    assert found == pytest.approx(total)
    # the definition: no more than each rate, no more than the cap's share of the total
    assert sum(min(rate, cap * found) for rate in rates) == pytest.approx(found)


@pytest.mark.parametrize(
    ("application", "reverse"),
    [
        ('kind = "bulk"', False),
        ('kind = "bulk"\nreverse = true', True),
        ('kind = "fetch"\nsize = "1 kB"', True),
        ('kind = "video"', True),
        ('kind = "page"\nobjects = [{ name = "a", size = "1 kB" }]', True),
        ('kind = "request-response"\ncount = 1\nrequest = "1 kB"\nresponse = "9 kB"', True),
        ('kind = "request-response"\ncount = 1\nrequest = "9 kB"\nresponse = "1 kB"', False),
        ('kind = "ping-pong"\nsize = "1 kB"', False),
    ],
)
def test_links_are_those_towards_the_end_that_most_bytes_go_to(application: str, reverse: bool) -> None:
    network = "[host.client]\n[host.server]\n[link.a]\nends = ['client', 'server']\n"
    plan = Scenario.parse(f"{network}[[application]]\n{application}\n", "a.toml").plan().view
    assert paths.is_reverse(plan["applications"][0]) == reverse


ADDRESSES = """
host.client.interface.eth0.address = ["10.0.0.1", "10.0.0.3"]
host.server.interface.eth0.address = "10.0.9.1"
router.r = {}
router.q = {}
link.c = { ends = ["client:eth0", "r"], rate = "100 Mbps", delay = "1 ms" }
link.x = { ends = ["r:x", "q:x"], rate = "10 Mbps", delay = "5 ms" }
link.y = { ends = ["r:y", "q:y"], rate = "10 Mbps", delay = "20 ms" }
link.s = { ends = ["q", "server:eth0"], rate = "100 Mbps", delay = "1 ms" }
route = [
    { node = "r", source = "10.0.0.3/32", destination = "10.0.9.1/32", interface = "y" },
    { node = "q", destination = "10.0.0.3/32", interface = "y" },
]
duration = "1 s"
[[application]]
name = "up"
kind = "bulk"
transport = "mptcp"
client_stack = { path_manager = "fullmesh" }
"""


def test_each_address_of_an_interface_has_its_own_way() -> None:
    recording = polypath.run(Scenario.parse(ADDRESSES, "x"))
    (row,) = points.rows(summary(recording), recording.plan)
    assert row["links_mbps"] == 20
    assert row["rtt_s"] == pytest.approx(0.044)


ANOTHER_WAY_BACK = """
host = { client = {}, server = {} }
router = { r1 = {}, r2 = {} }
link.c1 = { ends = ["client", "r1"], rate = "2 Mbps", delay = "10 ms" }
link.c2 = { ends = ["client", "r2"], rate = "10 Mbps", delay = "20 ms" }
link.s1 = { ends = ["r1", "server"], rate = "10 Mbps", delay = "1 ms" }
link.s2 = { ends = ["r2", "server"], rate = "10 Mbps", delay = "1 ms" }
duration = "2 s"
[[application]]
kind = "bulk"
transport = "tcp"
reverse = true
source = "10.0.1.1"
destination = "10.0.2.2"
"""


def test_answers_may_take_another_way() -> None:
    recording = polypath.run(Scenario.parse(ANOTHER_WAY_BACK, "x"))
    (row,) = points.rows(summary(recording), recording.plan)
    assert row["links_mbps"] == 2
    assert 0.9 * row["links_mbps"] < row["goodput_mbps"] < row["links_mbps"]
    assert row["rtt_s"] == pytest.approx(0.032)
