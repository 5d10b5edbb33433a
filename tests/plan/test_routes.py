"""Routes of a plan before it runs, and what is doubtful in one."""

from typing import Any

import polars as pl
import pytest

from polypath import labs, run
from polypath.plan import lint, routes
from polypath.scenario import Scenario

TWO_PATHS = """
duration = "4 s"
[defaults]
path_manager = "fullmesh"
[host.client]
[host.server]
[router.r]
[link.wifi]
ends = ["client:eth0", "r"]
rate = "20 Mbps"
delay = "10 ms"
backward = { rate = "5 Mbps" }
[link.lte]
ends = ["client:eth1", "r"]
rate = "10 Mbps"
delay = "30 ms"
[link.server]
ends = ["r", "server"]
[[application]]
name = "get"
kind = "bulk"
duration = "2 s"
"""


def plan_of(text: str) -> Any:
    return Scenario.parse(text, "x").plan().data


def named(plan: Any, route: routes.Route) -> tuple[str, list[str]]:
    assert route.there is not None
    return route.source, [plan["links"][hop.link]["name"] for hop in route.there.hops]


def doubts(text: str) -> list[str]:
    plan = plan_of(text)
    return lint.warnings(plan, routes.routes(plan))


def test_each_address_has_a_route_and_the_first_is_marked() -> None:
    plan = plan_of(TWO_PATHS)
    found = routes.routes(plan)
    assert [named(plan, route) for route in found] == [
        ("10.0.0.1", ["wifi", "server"]),
        ("10.0.1.1", ["lte", "server"]),
    ]
    assert [route.first for route in found] == [True, False]
    assert [(route.rate_bps(plan), route.rate_bps(plan, reverse=True)) for route in found] == [(20e6, 5e6), (1e7, 1e7)]
    assert [route.rtt_s for route in found] == pytest.approx([0.02, 0.06])
    assert routes.is_determined(plan, found)
    assert doubts(TWO_PATHS) == []


@pytest.mark.parametrize(
    ("lab", "name"),
    [
        ("path-manager-mesh", "fullmesh"),
        ("path-manager-mesh", "unannounced"),
        ("path-manager-two-paths", "ndiffports"),
        ("path-manager-two-paths", "default"),
        ("path-manager-two-paths", "server-only"),
        ("quic-handover", "quic-migrates"),
        ("multipath-quic", "rtt"),
    ],
)
def test_a_run_opens_the_routes_that_were_foreseen(lab: str, name: str) -> None:
    (chosen,) = [each for each in labs.get(lab).runs if each.name == name]
    plan = chosen.of(labs.get(lab).scenario()).plan()
    recording = run(plan)
    ends = recording.table("subflow_ends")
    opened = set(ends.select("source", "destination").iter_rows())
    found = routes.routes(plan.view)
    foreseen = {(route.source, route.destination) for route in found}
    # a path of QUIC that has migrated is known by its first address
    assert opened <= foreseen
    assert len(opened) == len(foreseen) or name == "quic-migrates"
    links = recording.table("link_ends").group_by("link").agg(sent=pl.col("sent_packets").sum())
    silent = sorted(links.filter(links["sent"] == 0)["link"].to_list())
    assert silent == routes.idle_links(plan.view, found)


FAT_TREE = """
duration = "1 s"
routing = "ecmp"
[topology]
kind = "fat-tree"
k = 4
[[application]]
kind = "bulk"
client = "h0"
server = "h15"
"""


def test_where_flows_choose_nothing_is_called_idle() -> None:
    plan = plan_of(FAT_TREE)
    found = routes.routes(plan)
    assert found[0].there is None
    assert not routes.is_determined(plan, found)
    assert routes.idle_links(plan, found) == []


def test_an_idle_link_names_the_path_manager_that_leaves_it() -> None:
    reason = "(path manager 'default' of 'client' uses the first two addresses only)"
    text = TWO_PATHS.replace("fullmesh", "default") + '[[event]]\nat = "1 s"\nlink = "lte"\nup = false\n'
    assert doubts(text) == [
        f"link 'lte' stays idle: no path of an application leads over it {reason}",
        "the event at 1 s has no effect: link 'lte' stays idle",
    ]


def test_an_event_on_an_idle_interface() -> None:
    text = TWO_PATHS.replace('name = "get"', 'name = "get"\ntransport = "tcp"')
    text += '[[event]]\nat = "1 s"\ninterface = "client:eth1"\nup = false\n'
    assert doubts(text) == [
        "link 'lte' stays idle: no path of an application leads over it",
        "the event at 1 s has no effect: link 'lte' stays idle",
    ]


@pytest.mark.parametrize(
    ("change", "to", "doubt"),
    [
        (
            'duration = "2 s"',
            'duration = "6 s"',
            "application 'get' would end at 6 s; the run ends at 4 s",
        ),
        (
            "[host.server]",
            '[host.server]\n[host.idle]\n[link.idle]\nends = ["idle", "r"]',
            "host 'idle' takes part in no application",
        ),
        ("[router.r]", "[router.r]\n[router.apart]", "router 'apart' has no link"),
        ("[host.server]", "[host.server]\n[medium.air]", "medium 'air' has no link"),
        (
            'rate = "10 Mbps"\n',
            "",
            "application 'get': no link between 10.0.1.1 and 10.0.2.2 has a rate, so windows alone limit it",
        ),
        (
            "[[application]]",
            '[[event]]\nat = "3 s"\nlink = "lte"\nup = false\n[[application]]',
            "the event at 3 s may not happen: the last application sends until 2 s, and the run ends with it",
        ),
    ],
)
def test_doubts(change: str, to: str, doubt: str) -> None:
    assert change in TWO_PATHS
    assert doubt in doubts(TWO_PATHS.replace(change, to))
    assert doubt not in doubts(TWO_PATHS)


def test_a_medium_with_a_link_is_no_doubt() -> None:
    text = TWO_PATHS.replace('backward = { rate = "5 Mbps" }\n', "")
    text = text.replace('rate = "20 Mbps"', 'wifi = { medium = "air", mcs = 7 }')
    assert doubts(text + "[medium.air]\n") == []


QUEUED = "link 'server' has a queue and no rate: packets take no time to send, so that none waits"


@pytest.mark.parametrize(
    ("link", "found"),
    [
        ('queue = { kind = "codel" }', [QUEUED]),
        ('queue = "80 packets"', [QUEUED]),
        ('backward = { queue = "9 packets" }', [QUEUED]),
        ('queue = "80 packets"\nforward.rate = "1 Gbps"', []),
        ('queue = "80 packets"\nforward.rate = "1 Gbps"\nbackward = { queue = "9 packets" }', [QUEUED]),
    ],
)
def test_a_queue_is_about_a_rate(link: str, found: list[str]) -> None:
    text = TWO_PATHS.replace('ends = ["r", "server"]', f'ends = ["r", "server"]\n{link}')
    assert doubts(text) == found
    event = '\n[[event]]\nat = "1 s"\nlink = "server"\nrate = "5 Mbps"\n'
    assert doubts(text + event) == []


def test_a_rate_that_an_event_gives_limits_a_path() -> None:
    text = TWO_PATHS.replace('rate = "10 Mbps"\n', "")
    (doubt,) = doubts(text)
    assert "no link between 10.0.1.1" in doubt
    assert doubts(text + '\n[[event]]\nat = "1 s"\nlink = "server"\nrate = "5 Mbps"\n') == []


TWO_SERVERS = """
[host.client]
[host.server]
[router.r]
[link.p0]
ends = ["client", "r"]
[link.s0]
ends = ["r", "server"]
[link.s1]
ends = ["r", "server"]
[[application]]
kind = "bulk"
transport = "TRANSPORT"
"""


def test_no_path_of_quic_leads_to_an_address_that_nobody_announces() -> None:
    first, second = (routes.routes(plan_of(TWO_SERVERS.replace("TRANSPORT", each))) for each in ("mpquic", "mptcp"))
    assert [route.first for route in first] == [True]
    assert len(second) == 2
