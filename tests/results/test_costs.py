"""What bytes over links with a price or a cap come to."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.handmade_plans import as_plan

import polypath
from polypath import Scenario
from polypath.formats import plan as plans
from polypath.measures import REGISTRY
from polypath.measures.summary import summary
from polypath.results import Recording, costs, other_tables
from polypath.results.errors import MetricError
from polypath.scenario import ScenarioError
from polypath.statistics import points

#: 1400 and 700 packets on a link that adds 14 bytes to each: 2,050,000 bytes with them.
IP_BYTES = 2_050_000 - 2100 * 14
PAGE = Path(__file__).parents[2] / "docs" / "summary.md"


def priced(recording: Recording, **terms: float) -> Recording:
    first, *others = recording.plan["links"]
    return replace(recording, plan=as_plan({**recording.plan, "links": [dict(first) | terms, *others]}))


def test_a_link_without_price_and_cap_is_not_told_of(recording: Recording) -> None:
    assert costs.of(recording) is None
    assert "costs" not in summary(recording)
    assert list(other_tables.tables(recording)) == []


def test_a_price_is_of_ip_packets_in_both_directions(recording: Recording) -> None:
    found = summary(priced(recording, price_per_gb=500.0, cap_bytes=2_000_000))["costs"]
    own = {"cost": IP_BYTES * 5e-7, "over_cap_bytes": IP_BYTES - 2_000_000}
    link = {"name": "path0", "price_per_gb": 500.0, "cap_bytes": 2_000_000, "bytes": IP_BYTES, **own}
    assert found == {**own, "priced_bytes": IP_BYTES, "links": [link]}


def test_a_cap_alone_costs_nothing_and_a_price_alone_has_no_end(recording: Recording) -> None:
    capped = summary(priced(recording, cap_bytes=3_000_000))["costs"]
    assert (capped["cost"], capped["priced_bytes"], capped["over_cap_bytes"]) == (None, None, 0)
    free = summary(priced(recording, price_per_gb=0.0))["costs"]
    assert (free["cost"], free["priced_bytes"], free["over_cap_bytes"]) == (0.0, 0, None)


def test_a_row_of_the_table(recording: Recording) -> None:
    (found,) = other_tables.tables(priced(recording, price_per_gb=2.5, cap_bytes=2_000_000))
    assert found.rows == [("path0", "2.5", "2.021", "2", "0.021", "0.0050515")]
    assert len(found.headings) == len(found.rows[0])
    (blank,) = other_tables.tables(priced(recording, cap_bytes=5_000_000_000))
    assert blank.rows == [("path0", "", "2.021", "5,000", "0.000", "")]


@pytest.mark.parametrize(
    ("measure", "parameters", "value"),
    [
        ("cost", {}, IP_BYTES * 1e-6),
        ("cost", {"link": "path0"}, IP_BYTES * 1e-6),
        ("over_cap", {}, (IP_BYTES - 1_000_000) / 1e6),
        ("priced", {}, IP_BYTES / 1e6),
        ("dear_share", {"link": "path0"}, 1.0),
    ],
)
def test_measures(recording: Recording, measure: str, parameters: Mapping[str, Any], value: float) -> None:
    assert REGISTRY[measure](priced(recording, price_per_gb=1000.0, cap_bytes=1_000_000), parameters) == pytest.approx(
        value
    )


def test_a_measure_of_what_has_no_price_says_so(recording: Recording) -> None:
    with pytest.raises(MetricError, match=r"^measure 'cost': no link has a price or a cap$"):
        REGISTRY["cost"](recording, {})
    with pytest.raises(MetricError, match=r"^measure 'cost': no link 'path1' has a price or a cap$"):
        REGISTRY["cost"](priced(recording, price_per_gb=1.0), {"link": "path1"})


def test_points_have_the_cost_of_their_run(recording: Recording) -> None:
    of = priced(recording, price_per_gb=1000.0)
    rows = points.rows(summary(of), of.plan)
    assert [row["cost"] for row in rows] == [pytest.approx(IP_BYTES * 1e-6)] * 3
    assert [(row["priced_bytes"], row["over_cap_bytes"]) for row in rows] == [(IP_BYTES, None)] * 3
    assert {row["cost"] for row in points.rows(summary(recording), recording.plan)} == {None}


TWO = """
duration = "2 s"
[host.client]
[host.server]
[link.dsl]
ends = ["client", "server"]
rate = "10 Mbps"
price_per_gb = 0.25
[link.lte]
ends = ["client", "server"]
rate = "10 Mbps"
price_per_gb = 4
cap = "20 kB"
[[application]]
name = "load"
kind = "bulk"
size = "100 kB"
transport = "tcp"
"""


def test_a_run_pays_for_what_its_links_sent() -> None:
    """70 segments of 1448 bytes, their ACKs and the handshake, and no Ethernet header."""
    scenario = Scenario.parse(TWO, "x")
    found = polypath.run(scenario)
    figures = summary(found)["costs"]
    dsl, lte = figures["links"]
    assert dsl["bytes"] > 100_000 + 70 * 52
    assert dsl["bytes"] < 100_000 + 70 * 52 * 2 + 500
    assert dsl["cost"] == dsl["bytes"] * 0.25 / 1e9
    assert (lte["bytes"], lte["cost"], lte["over_cap_bytes"]) == (0, 0.0, 0)
    plain = polypath.run(Scenario.parse(re.sub(r"(price_per_gb|cap) = .*\n", "", TWO), "x"))
    assert found["load"].completion_s == plain["load"].completion_s


def test_the_page_tells_of_every_key(recording: Recording) -> None:
    found = summary(priced(recording, price_per_gb=1.0))["costs"]
    page = PAGE.read_text(encoding="utf-8")
    names = set(re.findall(r"`(\w+)(?:\[\])?`", page))
    assert {*found, *found["links"][0]} <= names


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("price_per_gb = -1", "price_per_gb: must be at least 0"),
        ('price_per_gb = "3 EUR"', "price_per_gb: expected a number"),
        ("price = 3", "unknown key 'price'"),
        ('cap = "0 GB"', "cap: "),
        ("cap = 10", "cap: "),
        ("forward = { price_per_gb = 3 }", "unknown key 'price_per_gb' in link.dsl.forward"),
    ],
)
def test_terms_that_are_none_are_one_line(line: str, message: str) -> None:
    text = TWO.replace("price_per_gb = 0.25", line)
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(text, "x")
    (error,) = caught.value.errors
    assert message in str(error)
    assert error.line == 8


def test_terms_come_back_from_a_plan() -> None:
    scenario = Scenario.parse(TWO, "x")
    made = plans.scenario_of(scenario.plan(), "plan.json")
    assert [(each.price_per_gb, each.cap) for each in made.link.values()] == [(0.25, None), (4.0, 20_000)]
    assert Scenario.parse(scenario.resolved().to_toml(), "x").plan() == scenario.plan()
