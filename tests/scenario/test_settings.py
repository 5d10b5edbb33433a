"""Single settings, as --set gives them."""

from typing import Any

import pytest

from polypath.scenario import Scenario, ScenarioError


@pytest.fixture
def scenario(two_paths: str) -> Scenario:
    return Scenario.parse(two_paths, "lab.toml")


def dig(data: Any, *path: str | int) -> Any:
    for step in path:
        data = data[step]
    return data


@pytest.mark.parametrize(
    ("setting", "path", "value"),
    [
        ("seed=7", ("seed",), 7),
        ("duration=5 min", ("duration_ns",), 300_000_000_000),
        ("link.path0.rate=10 Mbps", ("links", 0, "forward", "rate_bps"), 10_000_000),
        ('link.path0.rate = "10 Mbps"', ("links", 0, "backward", "rate_bps"), 10_000_000),
        ("link.path0.forward.delay=1 ms", ("links", 0, "forward", "delay_ns"), 1_000_000),
        ("link.path1.up=false", ("links", 1, "forward", "up"), False),
        ("link.path0.queue=213 kB", ("links", 0, "forward", "queue", "bytes"), 213_000),
        ('link.path0.queue={kind="codel", target="10 ms"}', ("links", 0, "forward", "queue", "target_ns"), 10_000_000),
        ("application.iperf.transport=tcp", ("applications", 0, "transport"), "tcp"),
        ("application.1.size=3 MB", ("applications", 0, "work", "size_bytes"), 3_000_000),
        (
            "application.iperf.client_stack.congestion=reno",
            ("applications", 0, "client_stack", "congestion", "name"),
            "reno",
        ),
        ("event.1.at=4 s", ("events", 0, "at_ns"), 4_000_000_000),
        ("host.client.scheduler=redundant", ("nodes", 0, "stack", "scheduler", "name"), "redundant"),
        ("host.client.scheduler.num_segments=3", ("nodes", 0, "stack", "scheduler", "parameters", "num_segments"), 3),
        (
            "host.server.path_manager.num_subflows=4",
            ("nodes", 1, "stack", "path_manager", "parameters", "num_subflows"),
            4,
        ),
        ("defaults.path_manager=ndiffports", ("nodes", 0, "stack", "path_manager", "parameters", "num_subflows"), 2),
        ("defaults.receive_buffer=1 MB", ("nodes", 0, "stack", "receive_buffer"), [10**6] * 3),
        ('defaults.send_buffer=["1 kB", "2 kB", "3 kB"]', ("nodes", 1, "stack", "send_buffer"), [1000, 2000, 3000]),
        ("host.client.interface.eth1.backup=false", ("nodes", 0, "interfaces", 1, "backup"), False),
        ("host.client.interface.eth0.address=192.0.2.1", ("nodes", 0, "interfaces", 0, "addresses"), ["192.0.2.1"]),
        ("routing=ecmp", ("routing",), "ecmp"),
        ("record.segments=true", ("record", "segments"), True),
        ("record.interval=10 ms", ("record", "interval_ns"), 10_000_000),
    ],
)
def test_every_kind_of_path_can_be_set(
    scenario: Scenario, setting: str, path: tuple[str | int, ...], value: object
) -> None:
    before = dig(scenario.plan().data, *path[:-1]) if "queue" not in path and "client_stack" not in path else {}
    assert before is None or not isinstance(before, dict) or before.get(path[-1]) != value
    assert dig(scenario.with_settings([setting]).plan().data, *path) == value


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("link.pth0.rate=1 Mbps", "unknown link 'pth0'; did you mean 'path0'?"),
        ("link.path0.rat=1 Mbps", "unknown key 'rat' in link.path0; did you mean 'rate'?"),
        ("link.path0.rate=20", 'link.path0.rate: 20 has no unit; write for example "20 Mbps"'),
        ("link.path0.rate=", "link.path0.rate: '' is not a rate; write for example \"20 Mbps\""),
        ("lnk.path0.rate=1 Mbps", "unknown key 'lnk' in a scenario; did you mean 'link'?"),
        ("application.ipref.size=1 MB", "unknown application 'ipref'; did you mean 'iperf'?"),
        ("application.2.size=1 MB", "unknown application '2'; there is iperf"),
        ("host.nobody.mtu=1400", "unknown host 'nobody'; there is client, server"),
        ("route.1.node=r", "the scenario has no route"),
        ("event.2.at=1 s", "there is no event 2; they are counted from 1 to 1"),
        ("host.clinet.mtu=1400", "unknown host 'clinet'; did you mean 'client'?"),
        ("host.client.mtu=10", "host.client.mtu: must be at least 576, not 10"),
        ("host.client.interface.eth9.backup=true", "no link ends at client:eth9; name it in the link's ends"),
        (
            "host.client.congestion.varient=rfc",
            "host.client.congestion: congestion control 'olia' has no parameter 'varient'",
        ),
        ("seed.x=1", None),
        ("seed", "a setting is PATH=VALUE, such as link.path0.rate=10 Mbps"),
        ("=3", "a setting is PATH=VALUE, such as link.path0.rate=10 Mbps"),
        ("link..rate=3", "a setting is PATH=VALUE, such as link.path0.rate=10 Mbps"),
        ("link.path0.rate.x=3", "link.path0.rate is '20 Mbps', not a table: there is nothing to set in it"),
    ],
)
def test_a_bad_setting_is_named(scenario: Scenario, setting: str, message: str | None) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario.with_settings([setting])
    if message is None:
        assert str(caught.value).startswith(f"--set {setting}: ")
    else:
        assert str(caught.value) == f"--set {setting}: {message}"


def test_settings_apply_in_order_and_leave_the_original(scenario: Scenario) -> None:
    changed = scenario.with_settings(["link.path0.rate=1 Mbps", "seed=3", "link.path0.rate=2 Mbps"])
    assert changed.link["path0"].rate == 2_000_000
    assert scenario.link["path0"].rate == 20_000_000
    assert scenario.with_settings([]) == scenario


def test_one_more_event_or_application_is_given_whole(scenario: Scenario) -> None:
    more = [
        'event.2={at="1 s", link="path1", up=false}',
        'application.2={name="back", kind="bulk", duration="1 s", client="client", server="server"}',
    ]
    plan = scenario.with_settings(more).plan().data
    assert [event["at_ns"] for event in plan["events"]][:1] == [1_000_000_000]
    assert len(plan["events"]) == len(scenario.plan().data["events"]) + 1
    assert plan["applications"][1]["name"] == "back"
    assert not any(event["at_ns"] == 1_000_000_000 for event in scenario.plan().data["events"])
    with pytest.raises(ScenarioError, match="there is no event 3; they are counted from 1 to 1"):
        scenario.with_settings(['event.3={at="1 s", link="path1", up=false}'])


def test_the_setting_at_fault_is_named_among_several(scenario: Scenario) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario.with_settings(["seed=3", "link.path0.rate=0 bps", "duration=4 s"])
    assert str(caught.value).startswith("--set link.path0.rate=0 bps: link.path0.rate: a rate must be")
