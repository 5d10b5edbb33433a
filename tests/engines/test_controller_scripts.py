"""Controllers in Python: the same bytes as in Rust, and what goes wrong with its place."""

from pathlib import Path

import pytest

from polypath import Recording, Scenario, ScenarioError, run
from polypath.engines import ScriptFailed

FAT_TREE = """
duration = "20 s"
[controller]
routing = "ROUTING"
delay = "1 ms"
[topology]
kind = "fat-tree"
k = 4
rate = "10 Mbps"
queue = "100 packets"
[[application]]
kind = "bulk"
matrix = "permutation"
size = "200 kB"
[[event]]
at = "100 ms"
switch = "core1"
up = false
"""
BY_HASH = """
class ByHash:
    def choose(self, flow, paths):
        return flow.hash % len(paths)
"""
OVER_CORE = """
class OverCore:
    def __init__(self, core):
        self.core = core

    def choose(self, flow, paths):
        assert flow.protocol == "tcp" and flow.destination.startswith("10.") and flow.time < 20
        for index, path in enumerate(paths):
            if self.core in path:
                return index
        return 0
"""


def ruled(folder: Path, source: str, routing: str = '"own.py:Own"') -> Recording:
    (folder / "own.py").write_text(source)
    (folder / "scenario.toml").write_text(FAT_TREE.replace('"ROUTING"', routing))
    return run(Scenario.load(folder / "scenario.toml"))


def carried(recording: Recording, core: str) -> int:
    ends = recording.table("link_ends")
    return int(ends.filter(ends["name"].str.ends_with(f"-{core}"))["sent_packets"].sum())


def test_the_same_rule_in_python_gives_the_same_bytes(tmp_path: Path) -> None:
    own = ruled(tmp_path, BY_HASH, '"own.py:ByHash"')
    assert own.metadata.recording_sha256 == ruled(tmp_path, "", '"hashed"').metadata.recording_sha256


def test_it_sees_the_names_of_switches_and_has_arguments(tmp_path: Path) -> None:
    recording = ruled(tmp_path, OVER_CORE, '{ kind = "own.py:OverCore", core = "core2" }')
    assert carried(recording, "core2") > 0
    assert [carried(recording, f"core{number}") for number in (0, 1, 3)] == [0, 0, 0]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return 1 / 0", r"own\.py:3: ZeroDivisionError: .*\(Own\.choose, 0\.00"),
        ("return 99", r"own\.py:2: ValueError: choose returned 99; it must return the index of a path, 0 to"),
        ("return 'core0'", "choose returned 'core0'"),
        ("return True", "choose returned True"),
    ],
)
def test_what_goes_wrong_is_said_with_its_place(tmp_path: Path, body: str, said: str) -> None:
    with pytest.raises(ScriptFailed, match=said):
        ruled(tmp_path, f"class Own:\n    def choose(self, flow, paths):\n        {body}\n")


def test_a_controller_that_drops_everything(tmp_path: Path) -> None:
    recording = ruled(tmp_path, "class Own:\n    def choose(self, flow, paths):\n        pass\n")
    assert recording.table("connection_ends")["established_ns"].null_count() == 16


@pytest.mark.parametrize(
    ("source", "mode", "said"),
    [
        ("class Own: ...", "reactive", r"class 'Own' has no method 'choose\(self, flow, paths\)'"),
        ("class Own:\n    def choose(self, flow, paths): ...", "hybrid", "has to see each flow begin"),
    ],
)
def test_what_cannot_be_is_refused_before_the_run(tmp_path: Path, source: str, mode: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        ruled(tmp_path, source, f'"own.py:Own"\nmode = "{mode}"')
