"""polypath validate shows what would run, and refuses what run refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from polypath.cli import console

BROKEN = """\
duration = "4 s"
[host.client]
[host.server]
[link.path0]
ends = ["client", "server"]
rate = "20 Mbps"
[[application]]
kind = "bulk"
[[event]]
at = "9 s"
link = "path0"
up = false
[[event]]
at = "1 s"
link = "path9"
up = false
"""

SWEPT = """
[vary]
"defaults.receive_buffer" = ["100 kB", "1 MB"]
"""


def test_a_valid_scenario_is_shown_and_nothing_runs(polypath: Any, engine: Any, scenario: Path) -> None:
    outcome = polypath("validate", scenario)
    assert (outcome.code, outcome.err) == (0, "")
    assert engine.plans == []
    rows = [" ".join(line.split()) for line in outcome.out.splitlines()]
    assert "one run: seed 1, ends at 4 s at the latest" in rows
    assert "client eth0 10.0.0.1 path0" in rows
    assert "iperf tcp client server:5001 0 s bulk" in rows or "iperf mptcp client server:5001 0 s bulk" in rows
    assert "iperf 10.0.0.1 10.0.0.2 path0 20 Mbps 40 ms first" in rows


def test_every_fault_is_a_line(polypath: Any, tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text(BROKEN)
    outcome = polypath("validate", path)
    assert (outcome.code, outcome.out) == (2, "")
    ending = "give an earlier time or a longer 'duration'"
    assert outcome.err.splitlines() == [
        f"polypath: {path}:10: the event is at 9 s, but the run ends at 4 s; {ending}",
        f"polypath: {path}:15: unknown link 'path9'; did you mean 'path0'?",
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "the scenario has no application, so nothing runs; add [[application]]"),
        ('[host.client]\nreceive_buffer = "1 MB"\n[host.server]\nreceive_buffer = "1 MB"', "changes nothing"),
    ],
)
def test_what_run_refuses_is_refused_alike(polypath: Any, scenario: Path, text: str, line: str) -> None:
    given = scenario.read_text()
    if text:
        scenario.write_text(given.replace("[host.client]\n[host.server]", text) + SWEPT)
    else:
        scenario.write_text(given.split("[[application]]")[0])
    validated, ran = polypath("validate", scenario), polypath("run", scenario)
    assert validated.code == ran.code == 2
    assert validated.err == ran.err
    assert line in validated.err
    assert validated.err.startswith(f"polypath: {scenario}:")
    assert validated.err.count("\n") == 1


LOOP = """
[router.r]

[link.path1]
ends = ["client", "r"]

[link.path2]
ends = ["r", "server"]

[[route]]
node = "r"
destination = "10.0.2.2/32"
interface = "eth0"

[[application]]
kind = "ping"
source = "10.0.1.1"
destination = "10.0.2.2"
"""


def test_what_an_engine_refuses_is_at_its_application(polypath: Any, scenario: Path) -> None:
    line = scenario.read_text().count("\n") + LOOP.count("\n") - 3
    scenario.write_text(scenario.read_text() + LOOP)
    said = f"{scenario}:{line}: application ping: the path from 'client' to 10.0.2.2 ends at 'client', a host"
    for command in ("validate", "run"):
        outcome = polypath(command, scenario)
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err.startswith(f"polypath: {said}")


def test_a_place_of_another_axis_is_not_that_of_the_last_option(polypath: Any, scenario: Path) -> None:
    until = '[vary]\nseeds = { until = { goodput_mbsp = "2 %" } }\n'
    line = scenario.read_text().count("\n") + 2
    scenario.write_text(scenario.read_text() + until)
    for option in (("--set", "duration=3 s"), ("--vary", "duration=2 s,3 s")):
        outcome = polypath("validate", scenario, *option)
        assert outcome.err.startswith(f"polypath: {scenario}:{line}: vary.seeds.until: unknown measure")


WORK = """
[[application]]
kind = "video"
name = "film"
start = "118.943881 ms"
rates = ["300 kbps", "1.85 Mbps"]
segment = "5 s"
rule = { kind = "buffer", reservoir = "11.25 s" }

[[application]]
kind = "page"
objects = [{ name = "a", size = "1 kB" }, { name = "b", size = "1 kB", after = ["a"] }]
"""


def test_work_is_shown_as_a_scenario_writes_it(polypath: Any, scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console.out, "width", 250)
    scenario.write_text(scenario.read_text().replace('delay = "20 ms"', 'delay = "10.001 ms"') + WORK)
    printed = polypath("validate", scenario).out
    assert " 118.943881 ms  video, buffer 30 s, rates [300 kbps, 1.85 Mbps], rule buffer (" in printed
    assert "reservoir 11.25 s)" in printed
    assert " page, 2 objects" in printed
    assert " 20.002 ms  first" in printed
    assert ", 20.002 ms RTT" in printed


def test_an_axis_that_one_host_overrides_is_a_warning(polypath: Any, scenario: Path) -> None:
    text = scenario.read_text().replace("[host.client]", '[host.client]\nreceive_buffer = "1 MB"')
    scenario.write_text(text + SWEPT)
    outcome = polypath("validate", scenario)
    assert outcome.code == 0
    assert "a sweep of 2 points over defaults.receive_buffer (2)" in outcome.out
    axis = "axis 'defaults.receive_buffer' does not change host.client"
    assert outcome.err == f"warning: small: {axis}: a setting there takes precedence\n"


def test_a_sweep_warns_of_what_holds_at_every_point(polypath: Any) -> None:
    one = polypath("validate", "settings-grid", "--set", "defaults.path_manager=default")
    assert "link 'path1' stays idle" in one.err
    assert polypath("validate", "settings-grid").err == ""


def test_json_has_plan_routes_and_errors(polypath: Any, scenario: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text(BROKEN)
    outcome = polypath("validate", scenario, broken, "--json")
    assert (outcome.code, outcome.err) == (2, "")
    good, bad = json.loads(outcome.out)
    assert (good["valid"], good["errors"], bad["valid"], bad["runs"]) == (True, [], False, [])
    assert [(error["line"], error["hint"]) for error in bad["errors"]] == [(10, None), (15, "path0")]
    (run,) = good["runs"]
    assert run["plan"]["duration_ns"] == 4_000_000_000
    assert run["warnings"] == []
    (route,) = run["routes"]
    assert (route["links"], route["links_back"], route["rate_bps"]) == (["path0"], ["path0"], 20_000_000)
    assert route["rtt_s"] == pytest.approx(0.04)


def test_the_simulator_has_its_say(polypath: Any, tmp_path: Path, scenario: Path) -> None:
    (tmp_path / "broken.py").write_text("class Broken:\n    pass\n")
    outcome = polypath("validate", scenario, "--set", f"defaults.scheduler={tmp_path}/broken.py:Broken")
    assert outcome.code == 2
    assert outcome.err.startswith("polypath: ")
    assert "select" in outcome.err
    assert outcome.err.count("\n") == 1


SCHEDULER = "class Own:\n    def select(self, view):\n        return 0\n"
#: Each would be noticed if it were executed: it leaves a file, ends the process, or never ends.
HOSTILE = {
    "module": 'import pathlib\npathlib.Path("{mark}").touch()\n' + SCHEDULER,
    "end": "import os\nos._exit(0)\n" + SCHEDULER,
    "endless": "while True:\n    pass\n" + SCHEDULER,
    "constructor": SCHEDULER + '    def __init__(self):\n        open("{mark}", "w")\n',
    "default": SCHEDULER + '    def more(self, to=open("{mark}", "w")): ...\n',
}
SWITCHED = """
[router.r]
[link.path1]
ends = ["client", "r"]
rate = "1 Mbps"
[controller]
"""


@pytest.mark.parametrize("kind", HOSTILE)
def test_nothing_of_a_scheduler_is_executed(polypath: Any, scenario: Path, tmp_path: Path, kind: str) -> None:
    mark = tmp_path / "mark"
    (tmp_path / "own.py").write_text(HOSTILE[kind].replace("{mark}", str(mark)))
    scenario.write_text(scenario.read_text() + '[defaults]\nscheduler = "own.py:Own"\n')
    outcome = polypath("validate", scenario)
    assert (outcome.code, outcome.err) == (0, "")
    assert not mark.exists()


@pytest.mark.parametrize("table", ['routing = "own.py:Own"\nmode = "reactive"', 'app = "own.py"'])
def test_nothing_of_a_controller_is_executed(polypath: Any, scenario: Path, tmp_path: Path, table: str) -> None:
    mark = tmp_path / "mark"
    (tmp_path / "own.py").write_text(f'open("{mark}", "w")\nclass Own:\n    def choose(self, flow, paths): ...\n')
    scenario.write_text(scenario.read_text() + SWITCHED + table + "\n")
    outcome = polypath("validate", scenario)
    assert (outcome.code, outcome.err) == (0, "")
    assert not mark.exists()


def test_arguments_that_a_class_does_not_take_are_said(polypath: Any, scenario: Path, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(SCHEDULER)
    scenario.write_text(scenario.read_text() + '[defaults]\nscheduler = { kind = "own.py:Own", k = 1 }\n')
    outcome = polypath("validate", scenario)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("polypath: ")
    assert "own.py:1: class 'Own' takes no argument 'k'; it takes none" in outcome.err
    assert outcome.err.count("\n") == 1


def test_plot_draws_the_topology_into_a_new_file(polypath: Any, scenario: Path, tmp_path: Path) -> None:
    target = tmp_path / "net.svg"
    assert polypath("validate", scenario, "--plot", target).code == 0
    drawn = target.read_text()
    assert "<svg" in drawn
    again = polypath("validate", scenario, "--plot", target)
    assert (again.code, again.err) == (2, f"polypath: {target} exists; name another file, or remove it\n")
    assert target.read_text() == drawn
    several = polypath("validate", "aggregation", "--plot", tmp_path / "other.svg")
    assert several.code == 2
    assert "choose among aggregation/tcp, aggregation/mptcp" in several.err
    assert not (tmp_path / "other.svg").exists()


def test_labs_are_valid_and_have_routes(polypath: Any) -> None:
    outcome = polypath("validate", "backup", "multipath-quic", "switch-failure", "--json")
    assert outcome.code == 0
    told = {run["name"]: run for one in json.loads(outcome.out) for run in one["runs"]}
    assert [len(told[name]["routes"]) for name in ("backup/backup", "multipath-quic/quic")] == [2, 1]
    assert told["backup/backup"]["routes"][1]["backup"]
    assert not told["switch-failure/spread"]["routes_determined"]
    assert told["switch-failure/spread"]["routes"][0]["links"] is None


def test_the_documentation_shows_what_is_printed(polypath: Any) -> None:
    page = (Path(__file__).parents[2] / "docs" / "validate.md").read_text(encoding="utf-8")
    command, _, shown = page.split("```console\n$ polypath validate ")[1].split("```")[0].partition("\n")
    assert shown.split() == polypath("validate", *command.split()).out.split()
