"""What is in a file as an argument of a class: a plan carries it, and a result keeps the file."""

from __future__ import annotations

from pathlib import Path

import pytest

import polypath
from polypath.engines.sim import Simulator
from polypath.scenario import Plan, Scenario, ScenarioError

SCENARIO = """
name = "learned"
duration = "5 s"

[host.client]
scheduler = { kind = "learned.py:Learned", policy = { file = "policy.json" } }
[host.server]
[router.r]
[link.a]
ends = ["client", "r"]
rate = "10 Mbps"
[link.b]
ends = ["client", "r"]
rate = "10 Mbps"
delay = "10 ms"
[link.s]
ends = ["r", "server"]

[[application]]
name = "file"
kind = "bulk"
size = "1 MB"
"""

LEARNED = """
class Learned:
    def __init__(self, policy):
        self.order = policy if isinstance(policy, list) else list(map(int, policy.split()))

    def select(self, view):
        ready = [path.index for path in view.paths if path.ready]
        return min(ready, key=self.order.index) if ready else None
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "learned.py").write_text(LEARNED)
    (tmp_path / "policy.json").write_text("[1, 0]")
    made = tmp_path / "learned.toml"
    made.write_text(SCENARIO)
    return made


def test_a_class_gets_the_data_of_a_file_in_json(file: Path) -> None:
    plan = Scenario.load(file).plan()
    first = polypath.run(Scenario.load(file))
    file.with_name("policy.json").write_text("[0, 1]")
    other = Scenario.load(file).plan()
    assert plan.sha256() != other.sha256()
    assert polypath.run(Scenario.load(file)).metadata.recording_sha256 != first.metadata.recording_sha256


def test_a_plan_carries_the_file(file: Path) -> None:
    plan = Scenario.load(file).plan()
    saved = file.with_name("plan.json")
    plan.save(saved)
    file.with_name("policy.json").unlink()
    file.with_name("learned.py").unlink()
    carried = next(node["stack"]["scheduler"] for node in plan.data["nodes"] if node["name"] == "client")
    assert carried["parameters"]["arguments"] == {"policy": {"file": "policy.json", "text": "[1, 0]"}}
    assert Plan.load(saved) == plan
    assert Simulator().run(Plan.load(saved)).metadata.plan_sha256 == plan.sha256()


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("a.txt", b"1 0\n", "'1 0\\n'"),
        ("a.npy", b"\x93NUMPY\xff\0", "b'\\x93NUMPY\\xff\\x00'"),
        ("a.json", b"{}", "{}"),
    ],
)
def test_a_file_is_data_text_or_bytes(file: Path, name: str, content: bytes, wanted: str) -> None:
    file.with_name(name).write_bytes(content)
    file.with_name("learned.py").write_text(
        "class Learned:\n"
        "    def __init__(self, policy):\n"
        f"        assert repr(policy[0]['deep']) == {wanted!r}, policy\n\n"
        "    def select(self, view):\n"
        "        return next((path.index for path in view.paths if path.ready), None)\n"
    )
    file.write_text(SCENARIO.replace('{ file = "policy.json" }', f'[{{ deep = {{ file = "{name}" }} }}]'))
    assert polypath.run(file)["file"].finished


def test_a_result_keeps_the_file_and_runs_again(file: Path, tmp_path: Path) -> None:
    first = polypath.run(file, out=tmp_path / "one")
    assert (tmp_path / "one" / "inputs" / "policy.json").read_text() == "[1, 0]"
    file.with_name("policy.json").unlink()
    again = polypath.run(tmp_path / "one" / "scenario.toml")
    assert again.metadata.recording_sha256 == first.metadata.recording_sha256


def test_an_axis_may_vary_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    file.with_name("other.json").write_text("[0, 1]")
    scenario = Scenario.load(file).with_axes(["host.client.scheduler.policy.file=policy.json,other.json"])
    assert [axis.labels for axis in scenario.axes] == [["policy.json", "other.json"]]
    assert {path.name for path in scenario.scripts()} == {"learned.py", "policy.json", "other.json"}


def test_an_argument_named_file_is_a_text_as_it_is(file: Path) -> None:
    file.with_name("learned.py").write_text(LEARNED.replace("policy", "file"))
    file.write_text(SCENARIO.replace('policy = { file = "policy.json" }', 'file = "1 0"'))
    assert {path.name for path in Scenario.load(file).scripts()} == {"learned.py"}
    assert polypath.run(file)["file"].finished


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [("policy.json", "[1,\n 0", "policy.json:2: this is no JSON"), ("policy.json", None, "policy.json: no such file")],
)
def test_a_file_that_cannot_be_used_is_one_line(file: Path, name: str, content: str | None, message: str) -> None:
    place = file.with_name(name)
    place.unlink()
    if content is not None:
        place.write_text(content)
    with pytest.raises(ScenarioError, match=message) as told:
        Scenario.load(file)
    assert "\n" not in str(told.value)
