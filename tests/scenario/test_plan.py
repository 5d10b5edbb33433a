"""The plan that a scenario gives."""

import json
from pathlib import Path
from typing import Any

import pytest

from polypath.scenario import Plan, Scenario, ScenarioError


@pytest.fixture
def scenario(two_paths: str) -> Scenario:
    return Scenario.parse(two_paths, "lab.toml")


@pytest.fixture
def plan(scenario: Scenario) -> Any:
    return scenario.plan().data


def test_nodes_are_hosts_then_routers(plan: dict[str, Any]) -> None:
    assert [(node["name"], node["kind"]) for node in plan["nodes"]] == [
        ("client", "host"),
        ("server", "host"),
        ("r", "router"),
    ]
    assert plan["nodes"][2]["stack"] is None


def test_interfaces_and_addresses_are_made_up_in_the_order_of_links(plan: dict[str, Any]) -> None:
    assert plan["nodes"][0]["interfaces"] == [
        {"name": "eth0", "addresses": ["10.0.0.1"], "backup": False},
        {"name": "eth1", "addresses": ["10.0.1.1"], "backup": True},
    ]
    assert plan["nodes"][1]["interfaces"] == [{"name": "eth0", "addresses": ["10.0.2.2"], "backup": False}]
    assert [interface["name"] for interface in plan["nodes"][2]["interfaces"]] == ["eth0", "eth1", "eth2"]
    assert [(link["a"], link["b"]) for link in plan["links"]] == [
        ({"node": 0, "interface": 0}, {"node": 2, "interface": 0}),
        ({"node": 0, "interface": 1}, {"node": 2, "interface": 1}),
        ({"node": 2, "interface": 2}, {"node": 1, "interface": 0}),
    ]


def test_a_channel_is_complete(plan: dict[str, Any]) -> None:
    assert plan["links"][0]["forward"] == {
        "rate_bps": 20_000_000,
        "delay_ns": 20_000_000,
        "overhead_bytes": 14,
        "burst_bytes": 0,
        "queue": {"kind": "drop-tail", "packets": 80, "bytes": None},
        "loss": {"kind": "none"},
        "jitter_ns": 0,
        "reorder": 0.0,
        "duplicate": 0.0,
        "corrupt": 0.0,
        "mtu": None,
        "icmp": True,
        "up": True,
    }
    assert plan["links"][1]["backward"]["loss"] == {"kind": "random", "probability": 0.01}
    assert plan["links"][1]["backward"]["queue"]["packets"] == 1000
    assert plan["links"][2]["forward"]["rate_bps"] is None
    assert plan["links"][2]["forward"]["queue"] == {"kind": "drop-tail", "packets": None, "bytes": None}


@pytest.mark.parametrize(("direction", "limited"), [("both", (1000, 1000)), ("forward", (1000, None))])
def test_a_link_that_an_event_gives_a_rate_has_the_usual_queue(
    two_paths: str, direction: str, limited: tuple[int | None, ...]
) -> None:
    event = f'\n[[event]]\nat = "1 s"\nlink = "server"\nrate = "5 Mbps"\ndirection = "{direction}"\n'
    link = Scenario.parse(two_paths + event, "lab.toml").plan().data["links"][2]
    assert tuple(link[key]["queue"]["packets"] for key in ("forward", "backward")) == limited


def test_the_profile_gives_what_nobody_says(plan: dict[str, Any]) -> None:
    client, server = plan["nodes"][0]["stack"], plan["nodes"][1]["stack"]
    assert client["scheduler"] == {"name": "roundrobin", "parameters": {"num_segments": 1, "cwnd_limited": True}}
    assert server["scheduler"] == {"name": "default", "parameters": {}}
    assert client["congestion"] == {"name": "olia", "parameters": {}}
    assert client["path_manager"] == {"name": "fullmesh", "parameters": {"num_subflows": 1}}
    assert client["receive_buffer"] == [10240, 87380, 16777216]
    assert client["send_buffer"] == [4096, 16384, 4194304]
    assert (client["profile"], client["mtu"], client["autotuning"]) == ("mptcp.org", 1500, True)
    assert (client["rto_min_ns"], client["rto_initial_ns"]) == (200_000_000, 1_000_000_000)


@pytest.mark.parametrize(
    ("profile", "scheduler", "congestion", "receive"),
    [("rfc", "default", "lia", [4096, 131072, 6291456]), ("linux", "linux", "cubic", [4096, 131072, 6291456])],
)
def test_profiles(scenario: Scenario, profile: str, scheduler: str, congestion: str, receive: list[int]) -> None:
    stack = scenario.with_settings([f"defaults.profile={profile}"]).plan().data["nodes"][1]["stack"]
    assert (stack["congestion"]["name"], stack["receive_buffer"]) == (congestion, receive)
    assert stack["scheduler"]["name"] == scheduler


def test_a_fixed_receive_buffer_switches_autotuning_off(scenario: Scenario) -> None:
    stack = scenario.with_settings(["defaults.receive_buffer=1 MB"]).plan().data["nodes"][1]["stack"]
    assert (stack["receive_buffer"], stack["autotuning"]) == ([1_000_000] * 3, False)
    both = ["defaults.receive_buffer=1 MB", "defaults.autotuning=true"]
    assert scenario.with_settings(both).plan().data["nodes"][1]["stack"]["autotuning"] is True
    wider = ["defaults.receive_buffer=1 MB", 'host.client.receive_buffer=["4 kB", "5 kB", "6 MB"]']
    assert (
        scenario.with_settings([*wider, "host.client.autotuning=true"]).plan().data["nodes"][0]["stack"]["autotuning"]
    )


def test_three_sizes_below_a_fixed_one_have_autotuning_as_it_was(scenario: Scenario) -> None:
    sizes = 'host.client.receive_buffer=["4 kB", "100 kB", "1 MB"]'
    assert _autotuning(scenario, "defaults.receive_buffer=1 MB", sizes) == (True, False)
    assert _autotuning(scenario, "defaults.receive_buffer=1 MB", "defaults.autotuning=false", sizes) == (False, False)


def _autotuning(scenario: Scenario, *settings: str) -> tuple[bool, bool]:
    """Of client and server."""
    nodes = {node["name"]: node["stack"] for node in scenario.with_settings(list(settings)).plan().data["nodes"]}
    return nodes["client"]["autotuning"], nodes["server"]["autotuning"]


def test_levels_go_from_general_to_specific(scenario: Scenario) -> None:
    settings = [
        "defaults.congestion=lia",
        "host.client.congestion=cubic",
        "application.iperf.stack.mtu=1400",
        "application.iperf.client_stack.congestion=reno",
    ]
    data = scenario.with_settings(settings).plan().data
    assert data["nodes"][0]["stack"]["congestion"]["name"] == "cubic"
    assert data["nodes"][1]["stack"]["congestion"]["name"] == "lia"
    client, server = data["applications"][0]["client_stack"], data["applications"][0]["server_stack"]
    assert (client["congestion"]["name"], client["mtu"]) == ("reno", 1400)
    assert (client["scheduler"]["name"], server["scheduler"]["name"]) == ("roundrobin", "default")
    assert (server["congestion"]["name"], server["mtu"]) == ("lia", 1400)


def test_an_application_without_settings_of_its_own_has_its_hosts(plan: dict[str, Any]) -> None:
    assert plan["applications"] == [
        {
            "name": "iperf",
            "client": 0,
            "server": 1,
            "transport": "mptcp",
            "source": "10.0.0.1",
            "destination": "10.0.2.2",
            "port": 5001,
            "start_ns": 0,
            "client_stack": None,
            "server_stack": None,
            "work": {"kind": "bulk", "duration_ns": 10_000_000_000, "size_bytes": None, "reverse": False},
        }
    ]


def test_multihomed_hosts_route_by_source(plan: dict[str, Any]) -> None:
    assert plan["routes"] == [
        {
            "node": 0,
            "source": {"address": f"10.0.{number}.1", "length": 32},
            "destination": {"address": "0.0.0.0", "length": 0},
            "interface": number,
        }
        for number in (0, 1)
    ]


def test_every_kind_of_application_has_its_work(two_paths: str) -> None:
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "stream": (
            'rate = "5 Mbps"',
            {"rate_bps": 5_000_000, "block_bytes": 131072, "duration_ns": None, "reverse": False},
        ),
        "request-response": (
            'count = 3\nrequest = "1 kB"\nresponse = "2 kB"\ninterval = "250 ms"',
            {
                "count": 3,
                "interval_ns": 250_000_000,
                "request_bytes": 1000,
                "response_bytes": 2000,
                "think_ns": 0,
            },
        ),
        "fetch": (
            'size = "10 MiB"',
            {"size_bytes": 10485760, "count": 1, "tls": None, "parallel": 1, "streams": "each"},
        ),
        "ping-pong": ('size = "64 B"\ncount = 5', {"bytes": 64, "count": 5, "duration_ns": None}),
        "ping": ("count = 2", {"interval_ns": 10**9, "payload_bytes": 56, "count": 2, "duration_ns": None}),
        "cbr": (
            'rate = "1 Mbps"\nstart = "10 s"',
            {"rate_bps": 1_000_000, "packet_bytes": 1200, "duration_ns": 20 * 10**9},
        ),
        "on-off": (
            'rate = "1 Mbps"\non = "1 s"\noff = "2 s"\nduration = "3 s"',
            {
                "rate_bps": 1_000_000,
                "packet_bytes": 1200,
                "on_ns": 10**9,
                "off_ns": 2 * 10**9,
                "duration_ns": 3 * 10**9,
            },
        ),
    }
    tables = "".join(f'[[application]]\nkind = "{kind}"\n{keys}\n' for kind, (keys, _) in kinds.items())
    applications = Scenario.parse(two_paths + tables, "x").plan().data["applications"][1:]
    assert [application["name"] for application in applications] == list(kinds)
    assert [application["port"] for application in applications] == list(range(5002, 5009))
    assert [application["transport"] for application in applications] == ["mptcp"] * 4 + ["icmp", "udp", "udp"]
    for application, (kind, (_, work)) in zip(applications, kinds.items(), strict=True):
        assert application["work"] == {"kind": kind, **work}


def test_events_become_actions_in_order_of_time(two_paths: str) -> None:
    more = """
[[event]]
at = "1 s"
interface = "client:eth1"
up = false
backup = true
[[event]]
at = "2 s"
link = "path1"
direction = "backward"
rate = "5 Mbps"
queue = "10 packets"
"""
    events = Scenario.parse(two_paths + more, "x").plan().data["events"]
    assert [event["at_ns"] // 10**9 for event in events] == [1, 1, 2, 3]
    assert events[0]["action"] == {"kind": "priority", "node": 0, "interface": 1, "backup": True}
    assert events[1]["action"] == {"kind": "interface", "node": 0, "interface": 1, "up": False}
    assert events[2]["action"] == {
        "kind": "link",
        "link": 1,
        "direction": "backward",
        "rate_bps": 5_000_000,
        "delay_ns": None,
        "loss": None,
        "queue": {"kind": "drop-tail", "packets": 10, "bytes": None},
        "up": None,
    }
    assert events[3]["action"]["loss"] == {"kind": "random", "probability": 1.0}


def test_an_event_can_end_losses(scenario: Scenario) -> None:
    changed = scenario.with_settings(["event.1.loss=0 %"])
    assert changed.plan().data["events"][0]["action"]["loss"] == {"kind": "none"}


def test_ipv6_and_mixed_addresses(two_paths: str) -> None:
    text = two_paths.replace("backup = true", 'address = ["10.7.0.1", "2001:db8::1"]')
    text = text.replace("[host.server]", '[host.server.interface.eth0]\naddress = "2001:db8:1::1"')
    data = Scenario.parse(text, "x").plan().data
    assert data["applications"][0]["source"] == "2001:db8::1"
    assert data["applications"][0]["destination"] == "2001:db8:1::1"
    assert data["routes"][-1]["source"] == {"address": "2001:db8::1", "length": 128}
    assert data["routes"][-1]["destination"] == {"address": "::", "length": 0}


def test_made_up_addresses_avoid_given_ones(two_paths: str) -> None:
    text = two_paths.replace("backup = true", 'address = "10.0.0.1"')
    nodes = Scenario.parse(text, "x").plan().data["nodes"]
    assert nodes[0]["interfaces"][0]["addresses"] == ["10.0.0.2"]


def test_static_routes_come_first(two_paths: str) -> None:
    more = '[[route]]\nnode = "r"\nsource = "10.0.0.0/24"\ndestination = "10.0.2.2/32"\ninterface = "eth2"\n'
    route = Scenario.parse(two_paths + more, "x").plan().data["routes"][0]
    assert route == {
        "node": 2,
        "source": {"address": "10.0.0.0", "length": 24},
        "destination": {"address": "10.0.2.2", "length": 32},
        "interface": 2,
    }


class TestSaved:
    def test_canonical_json_and_hash(self, scenario: Scenario) -> None:
        plan = scenario.plan()
        assert plan.json() == json.dumps(plan.data, sort_keys=True, separators=(",", ":"))
        assert plan.sha256() == scenario.plan().sha256()
        assert plan.sha256() != scenario.plan(seed=2).sha256()
        assert scenario.plan(seed=2).data["seed"] == 2

    @pytest.mark.parametrize(
        ("seed", "message"),
        [
            (-1, "seed: must be at least 0, not -1"),
            (2**63, f"seed: must be less than {2**63}, not {2**63}"),
            (2.5, "seed: expected a whole number, not 2.5"),
            (True, "seed: expected a whole number, not True"),
        ],
    )
    def test_a_seed_is_a_whole_number_of_63_bits(self, scenario: Scenario, seed: Any, message: str) -> None:
        with pytest.raises(ScenarioError) as caught:
            scenario.plan(seed=seed)
        assert str(caught.value) == message

    def test_data_is_a_copy(self, scenario: Scenario) -> None:
        plan = scenario.plan()
        plan.data["seed"] = 99
        assert plan.data["seed"] == 1

    def test_save_and_load(self, scenario: Scenario, tmp_path: Path) -> None:
        path = tmp_path / "plan.json"
        scenario.plan().save(path)
        assert Plan.load(path) == scenario.plan()
        assert [entry.name for entry in tmp_path.iterdir()] == ["plan.json"]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("{", ":1: this is no plan: not JSON"),
            ("[]", ": this is no plan of version 1"),
            ('{"version": 2}', ": this is no plan of version 1"),
            ('{"version": 1, "seed": NaN}', ": this is no plan: a number is not finite"),
        ],
    )
    def test_what_is_no_plan(self, tmp_path: Path, text: str, message: str) -> None:
        path = tmp_path / "plan.json"
        path.write_text(text)
        with pytest.raises(ScenarioError) as caught:
            Plan.load(path)
        assert str(caught.value) == f"{path}{message}"


@pytest.mark.parametrize("deep", [False, True])
def test_a_copy_with_another_value_has_a_plan_of_its_own(scenario: Scenario, deep: bool) -> None:
    before = scenario.plan()
    copy = scenario.model_copy(update={"name": "other", "seed": 9}, deep=deep)
    assert (copy.plan().data["name"], copy.plan().data["seed"]) == ("other", 9)
    assert scenario.plan() == before
