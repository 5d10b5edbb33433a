"""Path managers over a whole network."""

from __future__ import annotations

import polars as pl
import pytest

from polypath import Scenario, run, summary

BETWEEN_GATEWAYS = """
duration = "5 s"
[defaults]
profile = "mptcp.org"
[defaults.path_manager]
kind = "binder"
gateways = ["10.9.0.1", "10.9.1.1"]
[host.client]
[host.server]
[router.near]
[router.far]
[router.g0.interface.eth0]
address = ["10.9.0.1"]
[router.g1.interface.eth0]
address = ["10.9.1.1"]
[router.short]
[link.access]
ends = ["client", "near"]
[link.shortest]
ends = ["near", "far"]
rate = "2 Mbps"
[link.near0]
ends = ["near", "g0:eth0"]
rate = "5 Mbps"
delay = "5 ms"
[link.far0]
ends = ["g0", "far"]
rate = "50 Mbps"
[link.near1]
ends = ["near", "g1:eth0"]
rate = "8 Mbps"
delay = "5 ms"
[link.far1]
ends = ["g1", "far"]
rate = "50 Mbps"
[link.server]
ends = ["far", "server"]
[[application]]
name = "bulk"
kind = "bulk"
"""


def carried(scenario: Scenario, link: str) -> int:
    table = run(scenario).table("link_ends").filter(pl.col("name") == link)
    sent: list[int] = table["sent_bytes"].to_list()
    return min(sent)


def test_binder_steers_a_subflow_through_each_gateway() -> None:
    scenario = Scenario.parse(BETWEEN_GATEWAYS, "scenario.toml")
    result = summary(run(scenario))["connections"][0]
    rates = [subflow["goodput_mbps"] for subflow in result["subflows"]]
    assert rates == [pytest.approx(1.8, abs=0.3), pytest.approx(4.5, abs=0.6), pytest.approx(7.2, abs=0.9)]


def test_answers_come_back_through_the_gateways() -> None:
    scenario = Scenario.parse(BETWEEN_GATEWAYS, "scenario.toml")
    for link in ("shortest", "near0", "far0", "near1", "far1"):
        assert carried(scenario, link) > 10_000, link


def test_binder_without_gateways_opens_nothing() -> None:
    scenario = Scenario.parse(BETWEEN_GATEWAYS.replace('gateways = ["10.9.0.1", "10.9.1.1"]', ""), "scenario.toml")
    assert len(summary(run(scenario))["connections"][0]["subflows"]) == 1


def test_a_mesh_ends_where_the_address_ids_do() -> None:
    """Ids have eight bits (RFC 8684 section 3.2): of 260 addresses, 254 beside the first take part."""
    link = '[link.p{0}]\nends = ["client", "router"]\nrate = "1 Mbps"\ndelay = "10 ms"\n'
    text = f"""
duration = "300 ms"
[defaults]
path_manager = "fullmesh"
[host.client]
[host.server]
[router.router]
{"".join(link.format(number) for number in range(260))}
[link.last]
ends = ["router", "server"]
rate = "1 Gbps"
[[application]]
kind = "bulk"
"""
    recording = run(Scenario.parse(text, "mesh"))
    assert recording.table("subflow_ends").height == 255


APART = """
duration = "5 s"
[defaults]
profile = "mptcp.org"
[host.client]
[host.server]
[switch.s0]
[switch.s1]
[link.c0]
ends = ["client:eth0", "s0"]
rate = "10 Mbps"
[link.c1]
ends = ["client:eth1", "s1"]
rate = "10 Mbps"
[link.v0]
ends = ["s0", "server:eth0"]
[link.v1]
ends = ["s1", "server:eth1"]
[[application]]
kind = "bulk"
"""


def test_a_mesh_over_paths_without_a_link_in_common_is_full() -> None:
    ends = run(Scenario.parse(APART, "scenario.toml")).table("subflow_ends")
    assert ends["established_ns"].null_count() == 0
    pairs = set(ends.select("source", "destination").iter_rows())
    assert len(pairs) == 4


TWO_LINKS = """
duration = "3 s"
[defaults]
path_manager = "fullmesh"
[host.client]
[host.server]
[link.wifi]
ends = ["client", "server"]
delay = "10 ms"
rate = "20 Mbps"
[link.lte]
ends = ["client", "server"]
delay = "30 ms"
rate = "20 Mbps"
[[application]]
name = "bulk"
kind = "bulk"
"""


@pytest.mark.parametrize(
    ("profile", "pairs"), [("rfc", 4), ("mptcp.org", 4), pytest.param("linux", 2, id="linux binds to devices")]
)
def test_answers_over_the_other_link_reach_no_subflow_that_is_bound_to_its_own(profile: str, pairs: int) -> None:
    text = TWO_LINKS.replace("[defaults]", f'[defaults]\nprofile = "{profile}"')
    recording = run(Scenario.parse(text, "two.toml"))
    ends = recording.table("subflow_ends")
    established = ends.filter(pl.col("established_ns").is_not_null())
    assert (ends.height, established.height) == (4, pairs)
    refused = recording.table("events").filter(pl.col("kind") == "refused", pl.col("host") == "client")
    assert refused.height >= 4 - pairs
