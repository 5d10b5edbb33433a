"""A scenario written as TOML is the same scenario; so is a resolved one."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polypath.scenario import Scenario, describe_topology, json_schema
from polypath.units import PACKETS, RATE, SIZE, TIME, Quantity, format_share


def test_written_scenarios_load_back(two_paths: str) -> None:
    scenario = Scenario.parse(two_paths, "x")
    assert Scenario.parse(scenario.to_toml(), "y") == scenario
    assert Scenario.from_data(scenario.to_data()) == scenario


def test_a_scenario_is_the_same_wherever_it_was_written(two_paths: str) -> None:
    scenario = Scenario.parse(two_paths + "[vary]\nseeds = 2\n", "x")
    assert Scenario.from_data(scenario.to_data()) == scenario
    assert Scenario.from_data(scenario.to_data() | {"seed": 7}) != scenario


def test_resolved_scenarios_give_the_same_plan(two_paths: str) -> None:
    scenario = Scenario.parse(two_paths, "x")
    resolved = scenario.resolved()
    assert resolved.host["client"].interface["eth0"].address is not None
    assert resolved.plan() == scenario.plan()
    assert Scenario.parse(scenario.to_toml(resolved=True), "y") == resolved


def amounts(quantity: Quantity, least: int, most: int) -> st.SearchStrategy[str]:
    return st.integers(least, most).map(quantity.format)


TIMES = amounts(TIME, 0, 10**11)
PERIODS = amounts(TIME, 1, 10**11)
SIZES = amounts(SIZE, 1, 10**9)
QUANTA = amounts(SIZE, 256, 10**6)
RATES = amounts(RATE, 1, 10**11)
COUNTS = amounts(PACKETS, 1, 10**5)
SHARES = st.integers(0, 10**6).map(lambda millionths: format_share(millionths / 10**6))
NAMES = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,10}", fullmatch=True)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


QUEUES = st.one_of(
    COUNTS,
    SIZES,
    some(packets=COUNTS, bytes=SIZES).map(lambda own: {"kind": "drop-tail", **own}),
    some(target=PERIODS, interval=PERIODS, limit=COUNTS, ecn=st.booleans()).map(lambda own: {"kind": "codel", **own}),
    some(
        target=PERIODS,
        tupdate=PERIODS,
        alpha=st.floats(0, 32),
        beta=st.floats(0, 32),
        limit=COUNTS,
        ecn=st.booleans(),
    ).map(lambda own: {"kind": "pie", **own}),
    some(limit=COUNTS, quantum=QUANTA, flows=st.integers(1, 65536)).map(lambda own: {"kind": "drr", **own}),
    some(
        target=PERIODS,
        interval=PERIODS,
        limit=COUNTS,
        quantum=QUANTA,
        flows=st.integers(1, 65536),
        drop_batch=COUNTS,
        ecn=st.booleans(),
    ).map(lambda own: {"kind": "fq-codel", **own}),
    some(
        target=PERIODS,
        tupdate=PERIODS,
        limit=COUNTS,
        quantum=QUANTA,
        flows=st.integers(1, 65536),
        ecn=st.booleans(),
        ecn_prob=SHARES,
    ).map(lambda own: {"kind": "fq-pie", **own}),
    some(
        target=PERIODS,
        step=PERIODS,
        step_from=COUNTS,
        coupling=st.integers(1, 255),
        classic_share=SHARES,
        limit=COUNTS,
        drop_overload=st.booleans(),
    ).map(lambda own: {"kind": "dualpi2", **own}),
    some(probability=SHARES, gentle=st.booleans(), weight=st.floats(1e-6, 1)).map(
        lambda own: {"kind": "red", "min": "5 packets", "max": "50 packets", **own}
    ),
)
LOSSES = st.one_of(
    SHARES,
    st.fixed_dictionaries(
        {"kind": st.just("gilbert-elliott"), "good_to_bad": SHARES, "bad_to_good": SHARES},
        optional={"bad_loss": SHARES},
    ),
    st.fixed_dictionaries({"kind": st.just("periodic"), "every": st.integers(1, 10_000)}),
    st.fixed_dictionaries(
        {"kind": st.just("timed-gilbert-elliott"), "good_time": PERIODS, "bad_time": PERIODS},
        optional={"good_loss": SHARES},
    ),
)
CHANNEL: dict[str, st.SearchStrategy[Any]] = {
    "rate": RATES,
    "delay": TIMES,
    "queue": QUEUES,
    "loss": LOSSES,
    "jitter": TIMES,
    "burst": st.one_of(st.just(0), st.integers(65_535 + 100, 2**30)).map(SIZE.format),
    "reorder": SHARES,
    "duplicate": SHARES,
    "corrupt": SHARES,
    "overhead": st.integers(0, 100),
    "mtu": st.integers(576, 65535),
    "up": st.booleans(),
}
BUFFERS = st.one_of(
    SIZES,
    st.lists(st.integers(1, 10**9), min_size=3, max_size=3).map(lambda sizes: [SIZE.format(n) for n in sorted(sizes)]),
)
STACK: dict[str, st.SearchStrategy[Any]] = {
    "profile": st.sampled_from(["rfc", "linux", "mptcp.org"]),
    "scheduler": st.one_of(
        st.sampled_from(["default", "redundant"]),
        st.integers(1, 255).map(lambda n: {"kind": "roundrobin", "num_segments": n}),
    ),
    "congestion": st.sampled_from(["reno", "olia", {"kind": "lia", "variant": "mptcp.org"}]),
    "receive_buffer": BUFFERS,
    "send_buffer": BUFFERS,
    "mtu": st.integers(576, 9000),
    "nagle": st.booleans(),
    "cork": st.booleans(),
    "rto_min": PERIODS,
    "keepalive": st.booleans(),
    "keepalive_time": PERIODS,
    "keepalive_interval": PERIODS,
    "keepalive_probes": st.integers(1, 127),
    "user_timeout": TIMES,
    "mtu_probing": st.sampled_from(["off", "black-hole", "on"]),
    "recovery": st.sampled_from(["prr", "classic"]),
}
APPLICATIONS = st.one_of(
    some(size=SIZES, duration=PERIODS, transport=st.sampled_from(["tcp", "mptcp"]), stack=some(**STACK)).map(
        lambda own: {"kind": "bulk", **own}
    ),
    st.fixed_dictionaries({"kind": st.just("fetch"), "size": SIZES}, optional={"client_stack": some(**STACK)}),
    st.fixed_dictionaries({"kind": st.just("cbr"), "rate": RATES}, optional={"packet": SIZES}),
)
EVENTS = st.fixed_dictionaries({"at": TIMES, "link": st.just("path0"), "loss": LOSSES}, optional={"rate": RATES})


def without_idle_bursts(link: dict[str, Any]) -> dict[str, Any]:
    """A burst is about a rate, of the same direction."""
    bounded = "rate" in link
    if not bounded:
        link.pop("burst", None)
    if not bounded and "rate" not in link.get("forward", {}):
        link.get("forward", {}).pop("burst", None)
    return link


@st.composite
def scenarios(draw: st.DrawFn) -> dict[str, Any]:
    paths = draw(st.integers(1, 4))
    channel = some(**CHANNEL, forward=some(**CHANNEL)).map(without_idle_bursts)
    return {
        "name": draw(NAMES),
        "description": draw(st.text(max_size=20)),
        "seed": draw(st.integers(0, 2**63 - 1)),
        "duration": "1000 s",
        "defaults": draw(some(**STACK)),
        "host": {"client": draw(some(**STACK)), "server": draw(some(**STACK))},
        "router": {"r": {}},
        "link": {
            **{f"path{number}": {"ends": ["client", "r"], **draw(channel)} for number in range(paths)},
            "server": {"ends": ["r", "server"], "rate": draw(RATES), **draw(some(bypass=SIZES))},
        },
        "application": draw(st.lists(APPLICATIONS, max_size=3)),
        "event": draw(st.lists(EVENTS, max_size=3)),
    }


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(scenarios())
def test_any_scenario_survives_writing_and_resolving(data: dict[str, Any]) -> None:
    scenario = Scenario.from_data(data)
    assert Scenario.parse(scenario.to_toml(), "x") == scenario
    resolved = scenario.resolved()
    assert Scenario.parse(resolved.to_toml(), "x") == resolved
    assert resolved.plan() == scenario.plan()


PICTURE = """\
      |----------------- 20 Mbps, 40 ms RTT -----------------|
client                                                        r ------------------ server
      |-------- 10 Mbps, 80 ms RTT, 1 % loss, backup --------|
"""


def test_a_row_of_nodes_is_drawn(two_paths: str) -> None:
    picture = describe_topology(Scenario.parse(two_paths, "x"))
    assert picture == PICTURE.rstrip("\n")


LIST = """\
o        other:eth0 ------------------ 2 ms RTT ------------------ r:eth0
path0   client:eth0 ------------- 20 Mbps, 40 ms RTT ------------- r:eth1
path1   client:eth1 ---- 10 Mbps, 80 ms RTT, 1 % loss, backup ---- r:eth2
server       r:eth3 ---------------------------------------------- server:eth0
"""


def test_another_topology_is_listed(two_paths: str) -> None:
    more = "[host.other]\n[link.o]\nends = ['other', 'r']\ndelay = '1 ms'"
    text = two_paths.replace("[router.r]", f"[router.r]\n{more}")
    assert describe_topology(Scenario.parse(text, "x")) == LIST.rstrip("\n")


class TestSchema:
    def definitions(self) -> dict[str, Any]:
        found = json_schema()["$defs"]
        assert isinstance(found, dict)
        return found

    def test_every_field_is_described(self) -> None:
        schema = json_schema()
        for name, table in {"Scenario": schema, **schema["$defs"]}.items():
            for key, field in table.get("properties", {}).items():
                if key not in ("kind", "name"):
                    assert field.get("description"), f"{name}.{key}"

    def test_unit_texts_have_pattern_and_examples(self) -> None:
        rate = self.definitions()["Link"]["properties"]["rate"]
        options = [option for each in rate["anyOf"] for option in each.get("oneOf", [each])]
        text = next(option for option in options if option.get("type") == "string")
        assert text["examples"] == ["20 Mbps", "1.5 Gbps", "256 kbps"]
        assert text["pattern"].startswith("^[0-9]+")

    def test_algorithms_come_from_the_registry(self) -> None:
        scheduler = self.definitions()["Host"]["properties"]["scheduler"]
        choice = next(option for option in scheduler["anyOf"] if "anyOf" in option)
        assert choice["anyOf"][0]["enum"] == ["default", "roundrobin", "redundant", "linux"]
        assert choice["anyOf"][2]["properties"]["num_segments"]["minimum"] == 1

    def test_unknown_keys_are_refused(self) -> None:
        assert json_schema()["additionalProperties"] is False


@pytest.mark.parametrize("value", ["{", '"', "[[application"])
def test_half_a_file_is_an_error(value: str, two_paths: str) -> None:
    with pytest.raises(ValueError, match="invalid TOML"):
        Scenario.parse(two_paths + value, "x")
