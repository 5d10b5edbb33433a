"""What a scenario's file brings along: code, and files outside of its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SCHEDULER = "class Own:\n    def select(self, view):\n        return 0\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "polypath" / "code-seen"


def with_scheduler(scenario: Path, source: str = SCHEDULER, name: str = "own.py") -> Path:
    file = scenario.parent / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(source)
    scenario.write_text(scenario.read_text() + f'[defaults]\nscheduler = "{name}:Own"\n')
    return file


def test_validate_shows_which_code_would_run(polypath: Any, scenario: Path) -> None:
    with_scheduler(scenario)
    outcome = polypath("validate", scenario)
    assert (outcome.code, outcome.err) == (0, "")
    assert f"{scenario} runs code with your rights: own.py\n" in outcome.out


def test_a_run_tells_of_code_once_for_each_content(polypath: Any, engine: Any, scenario: Path, home: Path) -> None:
    file = with_scheduler(scenario)
    line = f"polypath: {scenario} runs code with your rights: own.py\n"
    assert polypath("run", scenario).err == line
    assert polypath("run", scenario).err == ""
    scenario.write_text(scenario.read_text() + 'profile = "linux"\n')
    assert polypath("run", scenario).err == ""
    file.write_text(SCHEDULER + "# changed\n")
    assert polypath("run", scenario, "--json").err == line
    assert home.stat().st_mode & 0o777 & ~0o644 == 0
    assert len(home.read_text().split()) == 2
    assert len(engine.plans) == 4


def test_output_for_programs_is_the_same(polypath: Any, engine: Any, scenario: Path) -> None:
    with_scheduler(scenario)
    first, second = polypath("run", scenario, "--json"), polypath("run", scenario, "--json")
    assert first.err != second.err
    assert first.out == second.out
    json.loads(first.out)


def test_it_is_said_again_where_it_cannot_be_remembered(
    polypath: Any, engine: Any, scenario: Path, tmp_path: Path
) -> None:
    with_scheduler(scenario)
    (tmp_path / "state").write_text("a file where the folder would be")
    assert polypath("run", scenario).err == polypath("run", scenario).err != ""


def test_a_lab_of_the_package_and_an_option_bring_nothing(
    polypath: Any, engine: Any, scenario: Path, tmp_path: Path
) -> None:
    assert polypath("run", "python-scheduler", "--run", "python").err == ""
    (tmp_path / "own.py").write_text(SCHEDULER)
    assert polypath("run", scenario, "--set", f"defaults.scheduler={tmp_path}/own.py:Own").err == ""


def test_commands_of_a_scenario_are_code(polypath: Any, engine: Any, scenario: Path) -> None:
    scenario.write_text(scenario.read_text() + '[[application]]\nkind = "command"\ncommand = "true"\n')
    line = f"polypath: {scenario} runs code with your rights: its own commands\n"
    assert polypath("run", scenario).err == line
    assert polypath("run", scenario).err == ""
    scenario.write_text(scenario.read_text().replace('"true"', '"false"'))
    assert polypath("run", scenario).err == line


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A file beside the scenario's folder."""
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "slow.trace").write_text("20\n")
    return other / "slow.trace"


def of_trace(scenario: Path, name: str | Path) -> Path:
    folder = scenario.parent / "own"
    folder.mkdir()
    inner = folder / "inner.toml"
    inner.write_text(scenario.read_text().replace('rate = "20 Mbps"', f'rate = {{ trace = "{name}" }}'))
    return inner


@pytest.mark.parametrize("how", ["absolute", "above", "link"])
def test_files_outside_the_folder_are_named_each_time(
    polypath: Any, engine: Any, scenario: Path, trace: Path, how: str
) -> None:
    names: dict[str, str | Path] = {"absolute": trace, "above": "../elsewhere/slow.trace", "link": "slow.trace"}
    inner = of_trace(scenario, names[how])
    if how == "link":
        (inner.parent / "slow.trace").symlink_to(trace)
    line = f"{inner} reads outside of its folder: {trace}\n"
    for _ in range(2):
        assert polypath("run", inner).err == f"polypath: {line}"
    assert polypath("validate", inner).err == f"warning: small: {line}"


def test_files_in_the_folder_and_those_of_options_are_not_named(
    polypath: Any, engine: Any, scenario: Path, trace: Path
) -> None:
    inner = of_trace(scenario, "below/slow.trace")
    (inner.parent / "below").mkdir()
    (inner.parent / "below" / "slow.trace").write_text("20\n")
    assert polypath("run", inner).err == ""
    assert polypath("run", inner, "--set", f"link.path0.rate.trace={trace}").err == ""


def test_a_folder_that_is_reached_by_a_link_is_the_scenarios_own(
    polypath: Any, engine: Any, scenario: Path, tmp_path: Path
) -> None:
    inner = of_trace(scenario, "slow.trace")
    (inner.parent / "slow.trace").write_text("20\n")
    (tmp_path / "linked").symlink_to(inner.parent)
    assert polypath("run", tmp_path / "linked" / "inner.toml").err == ""


def test_an_axis_names_files_too(polypath: Any, engine: Any, scenario: Path, trace: Path) -> None:
    inner = of_trace(scenario, "slow.trace")
    (inner.parent / "slow.trace").write_text("40\n")
    inner.write_text(inner.read_text() + f'[vary]\n"link.path0.rate.trace" = ["slow.trace", "{trace}"]\n')
    assert f"reads outside of its folder: {trace}" in polypath("validate", inner).err
