"""Plans turned back into the scenarios that give them."""

import json
from pathlib import Path

import pytest

from polypath import engines
from polypath.engines import EngineError
from polypath.engines.namespaces import commands
from polypath.formats import plan as plans
from polypath.scenario import Plan, Scenario, ScenarioError

#: Of the campaign's generator: over TCP, with nodes in another order than a scenario's, over QUIC.
DRAWN = sorted(Path(__file__).with_name("plans").glob("*.json"))

TWO_PATHS = """
[host.client]
scheduler = "roundrobin"
keepalive = true
[host.server]
[router.r]
[link.wifi]
ends = ["client", "r"]
rate = "20 Mbps"
delay = "10 ms"
queue = { kind = "red", min = "5 packets", max = "15 packets" }
loss = "1 %"
backward = { rate = "2 Mbps" }
[link.lte]
ends = ["client", "r"]
rate = "8 Mbps"
middlebox = [{ kind = "strip-options", direction = "both" }, "proxy"]
queue = { kind = "fq-codel", quantum = "300 B", drop_batch = "8 packets", ecn = false }
backward = { queue = { kind = "pie", beta = 1.5, tupdate = "20 ms" } }
[link.core]
ends = ["r", "server"]
[[application]]
kind = "bulk"
size = "1 MB"
client_stack = { profile = "linux", receive_buffer = "64 kB" }
[[event]]
at = "1 s"
link = "wifi"
up = false
[[event]]
at = "1500 ms"
link = "lte"
queue = { kind = "drr", limit = "90 packets" }
[[event]]
at = "2 s"
interface = "client:eth1"
backup = true
"""


@pytest.fixture(autouse=True)
def small_registry() -> None:
    """The engine's own registry, in place of the importers' small one."""


@pytest.mark.parametrize("path", DRAWN, ids=lambda path: path.stem)
def test_the_scenario_of_a_drawn_plan_runs_as_the_plan_does(path: Path) -> None:
    scenario = plans.load(path)
    assert Scenario.parse(scenario.to_toml(), "x.toml").plan() == scenario.plan()
    simulator = engines.get("sim")
    given, made = (simulator.run(plan).metadata.recording_sha256 for plan in (Plan.load(path), scenario.plan()))
    assert made == given


def test_a_scenario_comes_back_with_what_differs_from_its_defaults() -> None:
    made = plans.scenario_of(Scenario.parse(TWO_PATHS, "x.toml").plan(), "plan.json")
    text = made.to_toml()
    assert made.plan().data["applications"][0]["client_stack"]["receive_buffer"] == [64_000] * 3
    for line in ('profile = "linux"', 'rate = "2 Mbps"', 'loss = "1 %"', "backup = true"):
        assert line in text
    assert "window_scaling" not in text
    assert "jitter" not in text


PROGRAM = """
[[application]]
kind = "command"
name = "server"
host = "server"
command = ["python3", "-m", "http.server"]
background = true
environment = { ANSWER = "a b" }
[[application]]
kind = "command"
command = "curl http://server:8000/ | wc -c"
start = "1 s"
transport = "tcp"
ends_run = true
"""


def test_programs_come_back_but_for_the_files_that_they_are_given(tmp_path: Path) -> None:
    made = Scenario.parse(TWO_PATHS + PROGRAM, "x.toml").plan()
    assert plans.scenario_of(made, "plan.json").plan() == made
    (tmp_path / "server.py").write_text("")
    given = Scenario.parse(TWO_PATHS + PROGRAM + 'files = ["server.py"]\n', "x.toml", folder=tmp_path).plan()
    with pytest.raises(ScenarioError, match="program 'command' is given files, which stand beside a scenario"):
        plans.scenario_of(given, "plan.json")


@pytest.mark.parametrize("change", [{"name": "../out"}, {"files": {"../../x": ""}}, {"files": {"/etc/x": ""}}])
def test_a_program_of_a_plan_writes_nowhere_else(change: dict[str, object]) -> None:
    data = Scenario.parse(TWO_PATHS + PROGRAM, "x.toml").plan().data
    data["programs"][0] |= change
    with pytest.raises(EngineError, match="is no name of a file"):
        commands.files(data)


@pytest.mark.parametrize(
    "settings",
    [
        ["defaults.control_path=scheduler", "application.1.client_stack.control_path=fastest"],
        ["host.client.stack=noq"],
        ["host.server.retry=true", "host.client.ack_path=fastest"],
        ["defaults.ack_frequency=10", "application.1.client_stack.ack_frequency=0"],
        ["host.server.ack_frequency={packets=20,max_delay='50 ms',reordering=0}"],
    ],
)
def test_settings_that_a_plan_seldom_has_come_back(settings: list[str]) -> None:
    quic = """
[host.client]
[host.server]
[link.wifi]
ends = ["client", "server"]
rate = "20 Mbps"
[link.lte]
ends = ["client", "server"]
rate = "8 Mbps"
[[application]]
kind = "bulk"
transport = "mpquic"
size = "1 MB"
"""
    plan = Scenario.parse(quic, "x.toml").with_settings(settings).plan()
    assert plans.scenario_of(plan, "plan.json").plan().data | {"name": ""} == plan.data | {"name": ""}


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("delay_ns", None, "the simulator cannot run this plan: not a plan: invalid type: null, expected u64"),
        ("reorder", None, "the simulator cannot run this plan: not a plan: invalid type: null, expected f64"),
        ("reorder", "x", "this is no whole plan: something in it is not of its kind"),
    ],
)
def test_a_plan_that_the_simulator_refuses_is_none(key: str, value: object, words: str) -> None:
    text = '[host.client]\n[host.server]\n[link.l]\nends = ["client", "server"]\n'
    data = Scenario.parse(text, "x.toml").plan().data
    plans.scenario_of(Plan(data), "plan.json")
    data["links"][0]["forward"][key] = value
    with pytest.raises(ScenarioError, match=words):
        plans.scenario_of(Plan(data), "plan.json")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"routing": "nearest"}, "routing"),
        ({"controller": {"mode": "reactive"}}, "its controller is not turned into a scenario"),
        ({"events": [{"at_ns": 1}]}, "this is no whole plan: 'action' is missing"),
        ({"capture": {}}, "captures tell neither rates nor delays of links"),
        ({"links": 3}, "this is no whole plan: something in it is not of its kind"),
        ({"version": 2}, "this is no plan of version 1"),
    ],
)
def test_what_no_scenario_gives_is_refused_in_one_line(tmp_path: Path, change: dict[str, object], words: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(Scenario.parse(TWO_PATHS, "x.toml").plan().data | change))
    with pytest.raises(ScenarioError) as caught:
        plans.load(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_number_that_a_scenario_cannot_say_is_named(tmp_path: Path) -> None:
    plan = Scenario.parse(TWO_PATHS, "x.toml").plan().data
    plan["links"][0]["forward"]["queue"]["max"] = 15.5
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan))
    with pytest.raises(ScenarioError, match=r"links\[0\]\.forward\.queue\.max is 15\.5, and would be 15\.0"):
        plans.load(file)
