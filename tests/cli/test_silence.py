"""What a person writes without effect is said, and what a name holds does not reach the terminal raw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from polypath import engines
from polypath.engines.sim import Simulator


def one_line(outcome: Any, *words: str) -> None:
    assert outcome.code == 2
    assert outcome.err.startswith("polypath: ")
    assert outcome.err.count("\n") == 1
    for each in words:
        assert each in outcome.err


@pytest.mark.parametrize("text", ["", 'name = "x"\n', "[host.a]\n[host.b]\n[link.l]\nends = ['a', 'b']\n"])
def test_a_scenario_in_which_nothing_runs(polypath: Any, engine: Any, tmp_path: Path, text: str) -> None:
    path = tmp_path / "empty.toml"
    path.write_text(text)
    one_line(polypath("run", path), "the scenario has no application, so nothing runs; add [[application]]")
    left_out = ("run", "aggregation", "--run", "mptcp", "--set", "application.iperf.count=0")
    one_line(polypath(*left_out), "so nothing runs; give one a count above 0")
    assert engine.plans == []


@pytest.mark.parametrize("at", ["4 s", "12 s"])
def test_an_event_after_the_end(polypath: Any, engine: Any, scenario: Path, at: str) -> None:
    scenario.write_text(f'{scenario.read_text()}\n[[event]]\nat = "{at}"\nlink = "path0"\nup = false\n')
    line = f"small.toml:18: the event is at {at}, but the run ends at 4 s; give an earlier time or a longer 'duration'"
    one_line(polypath("run", scenario), line)
    assert engine.plans == []


def test_an_event_that_did_not_happen(polypath: Any, scenario: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "REGISTRY", {"sim": Simulator})
    text = scenario.read_text().replace('kind = "bulk"', 'kind = "bulk"\nsize = "10 kB"')
    scenario.write_text(f'{text}\n[[event]]\nat = "3 s"\nlink = "path0"\nup = false\n')
    outcome = polypath("run", scenario)
    assert outcome.code == 0
    assert outcome.err.startswith("warning: the event at 3 s did not happen: the run ended at 0.")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("axis", ["seeds=3", "seed=4,5", " seeds = 2"])
def test_one_seed_beside_several(polypath: Any, engine: Any, scenario: Path, axis: str) -> None:
    outcome = polypath("run", scenario, "--seed", "7", "--vary", axis)
    one_line(outcome, "--seed gives one seed and --vary several; take one of them")
    assert engine.plans == []


def test_an_axis_that_every_host_overrides(polypath: Any, engine: Any, scenario: Path) -> None:
    text = scenario.read_text()
    for host in ("client", "server"):
        text = text.replace(f"[host.{host}]\n", f'[host.{host}]\nreceive_buffer = "1 MB"\n')
    scenario.write_text(text)
    outcome = polypath("run", scenario, "--vary", "defaults.receive_buffer=300 kB,1 MB")
    one_line(
        outcome,
        "axis 'defaults.receive_buffer' changes nothing: settings of host.client, host.server take precedence; remove",
    )
    assert engine.plans == []


def test_an_axis_that_changes_nothing(polypath: Any, engine: Any, scenario: Path) -> None:
    scenario.write_text(scenario.read_text() + '[vary.what]\none = {}\nother = { description = "other" }\n')
    line = scenario.read_text().splitlines().index("[vary.what]") + 1
    one_line(polypath("run", scenario), f"{scenario}:{line}: axis 'what' changes nothing; remove the axis")


def test_an_axis_that_one_host_overrides(polypath: Any, scenario: Path) -> None:
    scenario.write_text(scenario.read_text().replace("[host.server]\n", '[host.server]\nreceive_buffer = "1 MB"\n'))
    outcome = polypath("run", scenario, "--vary", "defaults.receive_buffer=300 kB,1 MB", "--jobs", "1")
    assert outcome.code == 0
    warning = "axis 'defaults.receive_buffer' does not change host.server: a setting there takes precedence"
    assert outcome.err == f"warning: {warning}\n"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('["client", ', '["client:eth\\u001b[31m", ', "'eth\\x1b[31m' has a character that no interface name has"),
        ('["client", ', '["client:eth\\n0", ', "'eth\\n0' has a character that no interface name has"),
        ('["client", ', '["client:eth/0", ', "'eth/0' has a character that no interface name has"),
        ('kind = "bulk"', 'kind = "bulk"\n[vary."a\\u001b[2J"]\nx = {}\n', "'a\\x1b[2J' has a character that cannot"),
        ('kind = "bulk"', 'kind = "bulk"\n[vary.a]\n"x\\ny" = {}\n', "'x\\ny' has a character that cannot be printed"),
        ('kind = "bulk"', 'kind = "b\\u001b]0;x\\u0007"', "b\\x1b]0;x\\x07"),
        ('kind = "bulk"', 'kind = "bulk"\n"\\u009b31m" = 1', "\\x9b31m"),
    ],
)
def test_names_do_not_reach_the_terminal_raw(
    polypath: Any, engine: Any, scenario: Path, old: str, new: str, words: str
) -> None:
    scenario.write_text(scenario.read_text().replace(old, new))
    outcome = polypath("run", scenario)
    one_line(outcome, words)
    assert outcome.err.rstrip("\n").isprintable()


@pytest.mark.parametrize("name", ["\x1b[31mred.toml", "two\nlines.toml", "\u202etxt.toml", "\udcff.toml"])
@pytest.mark.parametrize("there", [False, True])
def test_file_names_do_not_either(polypath: Any, tmp_path: Path, name: str, there: bool) -> None:
    path = tmp_path / name
    if there:
        path.write_text("x = ")
    outcome = polypath("run", path)
    one_line(outcome)
    assert outcome.err.rstrip("\n").isprintable()


def test_arguments_do_not_either(polypath: Any) -> None:
    for arguments in (["run", "\x1b[2J"], ["\x1b[2J"], ["run", "x", "--\x1b[2J"], ["show", "a\nb"]):
        outcome = polypath(*arguments)
        one_line(outcome)
        assert outcome.err.rstrip("\n").isprintable()


def test_a_route_error_names_its_nodes(polypath: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "REGISTRY", {"sim": Simulator})
    path = tmp_path / "loop.toml"
    path.write_text(
        """
[host.client]
[host.server]
[router.left]
[router.right]
[link.a]
ends = ["client", "left:a"]
rate = "1 Mbps"
[link.b]
ends = ["left:b", "right:b"]
rate = "1 Mbps"
[link.c]
ends = ["right:c", "server"]
rate = "1 Mbps"
[[application]]
kind = "bulk"
[[route]]
node = "right"
destination = "0.0.0.0/0"
interface = "b"
"""
    )
    outcome = polypath("run", path)
    one_line(outcome, "form a loop through 'left', 'right'")
    assert "node " not in outcome.err


@pytest.mark.parametrize("kind", ["pqiuc", "unheard-of", "netperf"])
def test_keys_of_an_unknown_experiment_are_not_guessed(polypath: Any, tmp_path: Path, kind: str) -> None:
    topo, xp = tmp_path / "topo", tmp_path / "xp"
    topo.write_text("topoType:MultiIf\npath_c2r_0:10,40,12\n")
    xp.write_text(f"size:100\nxpType:{kind}\n")
    outcome = polypath("run", "--topo", topo, "--xp", xp)
    one_line(outcome, f"{xp}:2: ", f"xpType '{kind}'")
    assert "pquicSize" not in outcome.err


def test_the_keys_of_other_experiments_are_not_suggested(polypath: Any, tmp_path: Path) -> None:
    topo, xp = tmp_path / "topo", tmp_path / "xp"
    topo.write_text("topoType:MultiIf\npath_c2r_0:10,40,12\n")
    xp.write_text("xpType:http\nquicSize:100\n")
    outcome = polypath("run", "--topo", topo, "--xp", xp)
    assert outcome.code == 0
    assert "unknown key 'quicSize'" in outcome.err
    assert "did you mean" not in outcome.err
