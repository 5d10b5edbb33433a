"""Links over Wi-Fi: what a plan has of them, what is refused, what comes back from a plan."""

import re
from typing import Any, get_args

import polars as pl
import pytest

from polypath import engines, registry
from polypath.engines import EngineError
from polypath.formats.plan import scenario_of
from polypath.scenario import Scenario, ScenarioError, wifi

TEXT = """
duration = "3 s"
[host.client]
[host.server]
{more}
[link.air]
ends = ["client", "server"]
delay = "1 ms"
{link}
[[application]]
kind = "bulk"
duration = "2 s"
transport = "tcp"
"""
STATES = """wifi = { states = [
  { mcs = 7, dwell = "2 s" },
  { mcs = 4, dwell = "500 ms", error = "10 %" },
  { mcs = 1, dwell = "200 ms", error = "20 %", next = ["75 %", "25 %", "0 %"] },
] }"""


@pytest.fixture(autouse=True)
def small_registry() -> None:
    """The engine's own registry, which plans are made of."""


def scenario(link: str, more: str = "") -> Scenario:
    return Scenario.parse(TEXT.format(link=link, more=more), "lab.toml")


def forward(link: str, more: str = "") -> dict[str, Any]:
    found: dict[str, Any] = scenario(link, more).plan().data["links"][0]["forward"]
    return found


def test_the_standards_are_those_of_the_engine() -> None:
    assert list(get_args(wifi.Standard)) == list(registry.entries("wifi"))
    assert wifi.rates_bps("802.11n", 20, 1, False)[7] == 65_000_000
    assert wifi.rates_bps("802.11ac", 80, 2, True)[9] == 866_666_666
    assert wifi.rates_bps("802.11ac", 20, 1, False)[9] is None


def test_a_single_rate() -> None:
    channel = forward('wifi = { mcs = 7, error = "5 %" }')
    assert channel["wifi"] == {
        "standard": "802.11n",
        "width_mhz": 20,
        "streams": 1,
        "short_guard": False,
        "states": [{"mcs": 7, "error": 0.05}],
        "packets": 64,
        "aggregate_bytes": 1_048_575,
        "airtime_ns": 5_484_000,
        "attempts": 7,
    }
    assert (channel["rate_bps"], channel["overhead_bytes"]) == (65_000_000, 38)
    assert channel["queue"]["packets"] == 1000
    assert "media" not in scenario("wifi = { mcs = 7 }").plan().view
    assert forward('wifi = { standard = "802.11a", mcs = 7 }')["overhead_bytes"] == 36


def test_states_are_followed_by_their_neighbours_unless_they_say_otherwise() -> None:
    channel = forward(STATES)
    states = channel["wifi"]["states"]
    assert [state["next"] for state in states] == [[0, 1, 0], [0.5, 0, 0.5], [0.75, 0.25, 0]]
    assert [state["dwell_ns"] for state in states] == [2_000_000_000, 500_000_000, 200_000_000]
    assert channel["rate_bps"] == 65_000_000


def test_stations_have_their_medium_and_its_standard() -> None:
    more = '[medium.office]\n[medium.home]\nstandard = "802.11ac"\n'
    plan = scenario('wifi = { mcs = 8, medium = "home" }', more).plan().data
    assert plan["media"] == [{"name": "office"}, {"name": "home"}]
    station = plan["links"][0]["backward"]["wifi"]
    assert (station["standard"], station["medium"]) == ("802.11ac", 1)


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("wifi = { mcs = 32 }", "lab.toml:9: link.air.wifi.mcs: must be at most 31, not 32"),
        (
            'wifi = { standard = "802.11ac", mcs = 9 }',
            "lab.toml:9: no MCS 9 in 802.11ac in 20 MHz and a guard interval of 800 ns; did you mean '8'?",
        ),
        (
            'wifi = { standard = "802.11a", mcs = 0, width = "40 MHz" }',
            "lab.toml:9: there is no 802.11a in 40 MHz and a guard interval of 800 ns",
        ),
        (
            'wifi = { standard = "802.11m", mcs = 0 }',
            "link.air.wifi.standard: '802.11m' is not 802.11a, 802.11n or 802.11ac; did you mean '802.11n'?",
        ),
        ("wifi = { mcs = 7, errors = 1 }", "unknown key 'errors' in link.air.wifi; did you mean 'error'?"),
        (
            "wifi = { mcs = 7, error = 0.1 }",
            'lab.toml:9: link.air.wifi.error: 0.1 has no unit; write for example "1 %"',
        ),
        ("wifi = { }", "lab.toml:9: link.air.wifi: give either 'mcs' or 'states'"),
        ("wifi = { states = [] }", "lab.toml:9: link.air.wifi: there is no state"),
        (
            'wifi = { states = [{ mcs = 7, dwell = "1 s" }] }',
            "lab.toml:9: link.air.wifi: there is no other state to follow this; take 'dwell' away",
        ),
        (
            'wifi = { states = [{ mcs = 7, dwell = "1 us" }, { mcs = 1 }] }',
            "lab.toml:9: link.air.wifi: 'dwell' must be at least 1 ms",
        ),
        (
            'wifi = { states = [{ mcs = 7, dwell = "1 s", next = ["0 %", "90 %"] }, { mcs = 1 }] }',
            "lab.toml:9: link.air.wifi: the shares of 'next' make 90 %, not 100 %",
        ),
        (
            'wifi = { mcs = 7, aggregate = { packets = "65 packets" } }',
            "lab.toml:9: link.air.wifi.aggregate: a block ack covers 64 packets at most",
        ),
        (
            'wifi = { standard = "802.11a", mcs = 7, aggregate = { packets = "8 packets" } }',
            "lab.toml:9: 802.11a sends one packet at a time, so that it has no 'aggregate'",
        ),
        ('wifi = { mcs = 7, medium = "hme" }', "lab.toml:9: unknown medium 'hme'; did you mean 'home'?"),
        ('wifi = { mcs = 7 }\nrate = "1 Mbps"', "lab.toml:10: link.air: Wi-Fi has a rate of its own; take 'rate' away"),
        ('wifi = { mcs = 7 }\nburst = "15 kB"', "link.air: a link over Wi-Fi has no 'burst'"),
        (
            'wifi = { mcs = 7 }\nqueue_at = "host-netem"',
            "link.air: a link over Wi-Fi has its queue at the link",
        ),
        ("forward = { wifi = { mcs = 7 } }", "link.air: both directions are Wi-Fi on one medium, or neither"),
        (
            'wifi = { mcs = 7 }\nbackward = { wifi = { mcs = 7, medium = "home" } }',
            "link.air: both directions are Wi-Fi on one medium, or neither",
        ),
        (
            'wifi = { mcs = 7 }\n[[event]]\nlink = "air"\nat = "1 s"\nrate = "1 Mbps"',
            "link.air is Wi-Fi, so that its rate cannot be changed",
        ),
    ],
)
def test_what_is_refused(link: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(message)):
        scenario(link, "[medium.home]")


def test_a_medium_that_nobody_made() -> None:
    with pytest.raises(ScenarioError, match=r"unknown medium 'home'; there is none yet: add \[medium.home\]"):
        scenario('wifi = { mcs = 7, medium = "home" }')


@pytest.mark.parametrize(
    "link",
    [
        "wifi = { mcs = 7 }",
        STATES,
        'wifi = { standard = "802.11a", mcs = 7, attempts = 4 }',
        'wifi = { standard = "802.11ac", mcs = 9, width = "80 MHz", streams = 2, guard = "400 ns", medium = "home" }\n'
        'backward = { wifi = { standard = "802.11n", mcs = 3, medium = "home", aggregate = { airtime = "2 ms" } } }',
    ],
)
def test_a_plan_gives_its_scenario_back(link: str) -> None:
    given = scenario(link, "[medium.home]")
    assert Scenario.parse(given.to_toml(), "x.toml") == given
    assert given.resolved().plan() == given.plan()
    made = scenario_of(given.plan(), "plan.json")
    assert made.plan() == given.plan()
    assert Scenario.parse(made.to_toml(), "x.toml").plan() == given.plan()


@pytest.mark.parametrize("name", ["linux"])
def test_kernels_have_none(name: str) -> None:
    with pytest.raises(EngineError, match="link air is Wi-Fi, which the kernel's links are not"):
        engines.get(name).run(scenario("wifi = { mcs = 7 }").plan())


def _goodput_mbps(link: str, more: str = "") -> float:
    recording = engines.get("sim").run(scenario(link + '\nqueue = "100 packets"', more).plan())
    return int(recording.table("connections").select(pl.max("delivered_bytes")).item()) * 8 / 2e6


def test_a_connection_over_the_air_is_slower_than_its_rate_and_loses_next_to_nothing() -> None:
    clean, failing = _goodput_mbps("wifi = { mcs = 7 }"), _goodput_mbps('wifi = { mcs = 7, error = "20 %" }')
    assert 45 < clean < 61
    assert 0.6 < failing / clean < 0.9
