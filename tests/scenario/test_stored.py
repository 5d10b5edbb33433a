"""A scenario with its files: the same plan wherever both are put."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from polypath.scenario import Scenario, ScenarioError
from polypath.scenario.stored import Stored

SWITCHED = """
name = "switched"
duration = "1 s"
[host.a]
[host.b]
[switch.s]
[link.x]
ends = ["a", "s"]
[link.y]
ends = ["s", "b"]
[[application]]
kind = "bulk"
transport = "tcp"
client = "a"
server = "b"
[controller]
app = "apps/main.py"
"""
PROGRAM = """
name = "program"
duration = "1 s"
[host.a]
[host.b]
[link.x]
ends = ["a", "b"]
[[application]]
kind = "command"
host = "a"
command = ["cat", "notes.txt"]
files = ["notes.txt"]
[[application]]
kind = "command"
host = "b"
command = ["cat", "notes.txt"]
files = ["other/notes.txt"]
"""


@pytest.fixture
def plain() -> str:
    return (Path(__file__).parent / "two_paths.toml").read_text()


def put(place: Path, stored: Stored) -> Scenario:
    """Read from another folder."""
    for name, content in stored.files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    (place / "scenario.toml").write_text(stored.text)
    return Scenario.load(place / "scenario.toml")


def test_an_application_of_a_controller_comes_with_its_modules_alone(tmp_path: Path) -> None:
    apps = tmp_path / "own" / "apps"
    apps.mkdir(parents=True)
    (apps / "main.py").write_text("import helper\n")
    (apps / "helper.py").write_text("import json\n")
    (apps / "unrelated.py").write_text("")
    (tmp_path / "own" / "s.toml").write_text(SWITCHED)
    scenario = Scenario.load(tmp_path / "own" / "s.toml")
    plan, stored = scenario.plan(), scenario.stored()
    assert set(stored.files) == {"inputs/main/main.py", "inputs/main/helper.py"}
    shutil.rmtree(tmp_path / "own")
    again = put(tmp_path / "again", stored)
    assert again.plan() == plan
    assert again.stored() == stored


def test_files_of_programs_keep_their_names(tmp_path: Path) -> None:
    (tmp_path / "own" / "other").mkdir(parents=True)
    (tmp_path / "own" / "notes.txt").write_text("one\n")
    (tmp_path / "own" / "other" / "notes.txt").write_text("two\n")
    (tmp_path / "own" / "s.toml").write_text(PROGRAM)
    scenario = Scenario.load(tmp_path / "own" / "s.toml")
    stored = scenario.stored()
    assert sorted(stored.files.values()) == [b"one\n", b"two\n"]
    assert {Path(name).name for name in stored.files} == {"notes.txt"}
    assert put(tmp_path / "again", stored).plan() == scenario.plan()


def test_a_scenario_is_not_changed_by_it(plain: str, tmp_path: Path) -> None:
    (tmp_path / "a.trace").write_text("5\n")
    table = '[vary]\n"link.path0.rate" = [{ trace = "a.trace" }, "1 Mbps"]\n'
    (tmp_path / "s.toml").write_text(f"{plain}\n{table}")
    scenario = Scenario.load(tmp_path / "s.toml")
    before = scenario.to_toml()
    scenario.stored()
    assert scenario.to_toml() == before
    assert scenario.stored() == scenario.stored()


def test_a_file_that_has_gone_is_one_line(plain: str, tmp_path: Path) -> None:
    (tmp_path / "a.trace").write_text("5\n")
    text = plain.replace('rate = "10 Mbps"', 'rate = { trace = "a.trace" }')
    assert text != plain
    (tmp_path / "s.toml").write_text(text)
    scenario = Scenario.load(tmp_path / "s.toml")
    (tmp_path / "a.trace").unlink()
    with pytest.raises(ScenarioError, match=r"a\.trace: cannot be read: No such file or directory$"):
        scenario.stored()


def test_a_scenario_without_a_name_keeps_the_one_of_its_plan(plain: str, tmp_path: Path) -> None:
    scenario = Scenario.parse(plain.replace('name = "two-paths"\n', "", 1), "x")
    assert "name" not in scenario.to_data()
    (tmp_path / "other").mkdir()
    assert put(tmp_path / "other", scenario.stored()).plan() == scenario.plan()
