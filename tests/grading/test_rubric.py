"""Rubrics: their faults, what scenarios may not change, points and words; in this process."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from polypath import grading
from polypath.cli import grade as command
from polypath.grading import Grade, Mark, Rubric, work
from polypath.grading.work import Found, Seen
from polypath.scenario import ScenarioError

from ..commands import called
from ..two_paths import fetching

NETWORK = fetching("200 kB")
RUBRIC = """title = "Two paths"
submission = "scenario"
scenario = "network.toml"
free = ["defaults", "host.*.scheduler"]
seeds = [1, 2]

[vary.network]
near = {}
far = { "link.lte.delay" = "100 ms" }

[reference]
plain = "network.toml"

[[points]]
name = "quickly"
points = 3
measure = "completion"
connection = "get"
max = 0.25

[[points]]
name = "as the plain one"
points = 4
measure = "goodput"
connection = "get"
relative_to = { reference = "plain" }
min = 0.5
share = true
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "network.toml").write_text(NETWORK)
    (tmp_path / "rubric.toml").write_text(RUBRIC)
    (tmp_path / "room").mkdir()
    return tmp_path


def rubric(folder: Path, old: str = "", new: str = "") -> Rubric:
    assert old in RUBRIC
    (folder / "rubric.toml").write_text(RUBRIC.replace(old, new, 1))
    return grading.load(folder / "rubric.toml")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("title =", "titel =", "1: unknown key 'titel'; did you mean 'title'?"),
        (
            '"scenario"\n',
            '"schedler"\n',
            "2: submission: 'schedler' is not scenario, scheduler, congestion or path-manager",
        ),
        ("network.toml", "nowhere.toml", "nowhere.toml: no such file"),
        ("link.lte.delay", "link.lta.delay", "7: axis 'network' at far: unknown link 'lta'; did you mean 'lte'?"),
        ('"completion"', '"completon"', "17: unknown measure 'completon'; did you mean 'completion'?"),
        (
            'connection = "get"',
            'conection = "get"',
            "18: unknown key 'conection' in points 1; did you mean 'connection'?",
        ),
        ('connection = "get"', 'connection = "got"', "18: unknown connection 'got'; did you mean 'get'?"),
        ("max = 0.25", "", "14: points 1: points 'quickly' have neither 'min' nor 'max'"),
        ("points = 3", "points = 0", "16: points 1.points: must be greater than 0, not 0"),
        ('reference = "plain"', 'reference = "plane"', "26: unknown reference 'plane'; did you mean 'plain'?"),
        ("max = 0.25", 'max = 0.25\nat = { network = "fra" }', "20: unknown value of network 'fra'"),
        ('"network.toml"\n\n', '"other.toml"\n\n', "12: reference 'plain': no such file"),
        ("[vary.network]", "[vary.seed]", "the seeds of a rubric are its key 'seeds'"),
        ('free = ["defaults", "host.*.scheduler"]', 'class = "mine!"', "4: class: 'mine!' is no name"),
        ('"scenario"\nscenario = "network.toml"\nfree', '"scheduler"\nfree', "'class' is missing"),
    ],
)
def test_a_fault_is_one_line_with_its_place(folder: Path, old: str, new: str, said: str, capsys: Any) -> None:
    (folder / "rubric.toml").write_text(RUBRIC.replace(old, new, 1))
    outcome = called(capsys, "grade", folder / "rubric.toml")
    assert outcome.returncode == 2
    assert said in outcome.stderr
    assert outcome.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("10 Mbps", "100 Mbps", "link.wifi.rate is 100 Mbps, and the exercise fixes 10 Mbps"),
        ("200 kB", "2 kB", "application.get.size is 2 kB, and the exercise fixes 200 kB"),
        ('delay = "10 ms"', 'delay = "10 ms", loss = "1 %"', "and the exercise has none"),
        ("200 kB", "200 kb", "mine.toml:"),
        ("[[application]]", "[[aplication]]", "mine.toml:7: unknown key 'aplication'; did you mean 'application'?"),
        ("duration =", "duration", "mine.toml:2: invalid TOML"),
        ("[[application]]", "vary.seeds = 3\n[[application]]", "the rubric chooses networks and seeds"),
    ],
)
def test_a_scenario_that_is_not_tried(folder: Path, old: str, new: str, said: str) -> None:
    (folder / "mine.toml").write_text(NETWORK.replace(old, new, 1))
    found = work.submitted(rubric(folder), folder / "mine.toml", folder / "room")
    assert found.problem is not None
    assert said in found.problem
    assert str(folder) not in found.problem


def test_a_scenario_is_tried_in_each_network_with_each_seed(folder: Path) -> None:
    given = rubric(folder)
    (folder / "mine.toml").write_text(NETWORK.replace('"fullmesh"', '"fullmesh"\ndefaults.scheduler = "roundrobin"'))
    found = work.submitted(given, folder / "mine.toml", folder / "room")
    assert [each.values["network"] for each in found.runs] == ["near", "near", "far", "far"]
    plain = work.tried(given, given.reference("plain"))
    grade = grading.judged(given, "mine", Found.of(json.loads(json.dumps(found.data())), 2), {"plain": plain})
    assert grade.marks[1].points == 4
    assert grading.judged(given, "plain", plain, {"plain": plain}).marks[1].seen == (
        "goodput 1 x plain in 2 networks, at least 0.5 x plain wanted"
    )


@pytest.mark.parametrize(
    "data",
    [
        [],
        {"runs": []},
        {"runs": [{"values": {}, "figures": [1.0]}], "problem": None},
        {"runs": [{"values": {}, "figures": [1.0, None]}], "problem": None},
        {"runs": [{"values": {"network": 1}, "figures": [1.0, 2.0]}], "problem": None},
        {"runs": [{"values": {}, "figures": [1.0, float("nan")]}], "problem": None},
    ],
)
def test_a_result_that_a_submission_wrote_is_none(data: object) -> None:
    with pytest.raises(ValueError, match="no r"):
        Found.of(data, 2)


GENTLE = """
class Mine:
    # four packets in each round trip

    def on_ack(self, path, ack):
        path.cwnd = 4

    def ssthresh(self, path):
        return 4
"""


def test_a_congestion_control_is_tried(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "slow.py").write_text(GENTLE)
    free = 'submission = "scenario"\nscenario = "network.toml"\nfree = ["defaults", "host.*.scheduler"]'
    handed_in = 'submission = "congestion"\nclass = "Mine"\nscenario = "network.toml"\nplace = "host.server.congestion"'
    text = RUBRIC.replace(free, handed_in).replace('plain = "network.toml"', 'plain = "reno"')
    (folder / "rubric.toml").write_text(text)
    given = grading.load(folder / "rubric.toml")
    monkeypatch.chdir(folder / "room")
    found = work.submitted(given, folder / "slow.py", folder / "room")
    plain = work.tried(given, given.reference("plain"))
    grade = grading.judged(given, "slow", found, {"plain": plain})
    assert grade.problem is None
    (near, far) = (each["value"] for each in grade.marks[1].networks)
    assert 0.1 < near < 0.9
    assert 0.1 < far < 0.9


def test_networks_are_drawn(folder: Path) -> None:
    listed = 'near = {}\nfar = { "link.lte.delay" = "100 ms" }\n'
    drawn = 'draw = 3\n[vary.network.set]\n"link.lte.delay" = { log_uniform = ["10 ms", "200 ms"] }\n'
    given = rubric(folder, listed, drawn)
    plain = work.tried(given, given.reference("plain"))
    assert len(plain.runs) == 3 * 2
    grade = grading.judged(given, "plain", plain, {"plain": plain})
    values = [each["value"] for each in grade.marks[0].networks]
    assert len(set(values)) == 3


def test_only_some_parts_are_fixed(folder: Path) -> None:
    given = rubric(folder, 'free = ["defaults", "host.*.scheduler"]', 'fixed = ["link.*.rate"]')
    assert given.fixed is not None
    other = given.base
    assert other is not None
    assert given.fixed.changes(other.with_({"link.lte.delay": "5 ms", "application.get.size": "1 MB"})) == []
    assert given.fixed.changes(other.with_({"link.lte.rate": "6 Mbps"})) == [
        "link.lte.rate is 6 Mbps, and the exercise fixes 5 Mbps"
    ]


def seen(*figures: float | str) -> Found:
    places = (("near", 1), ("near", 2), ("far", 1), ("far", 2))
    runs = [
        Seen({"network": network, "seed": str(seed)}, [figure, figure])
        for (network, seed), figure in zip(places, figures, strict=True)
    ]
    return Found(runs)


class TestPoints:
    def judged(self, folder: Path, found: Found, old: str = "", new: str = "") -> Mark:
        return grading.judged(rubric(folder, old, new), "x", found, {"plain": seen(2.0, 2.0, 2.0, 2.0)}).marks[0]

    def test_each_network_has_the_mean_of_its_seeds(self, folder: Path) -> None:
        mark = self.judged(folder, seen(0.1, 0.3, 0.25, 0.25))
        assert mark.line() == "completion 0.2 to 0.25 s in 2 networks, at most 0.25 s wanted: 3 of 3 points"

    def test_all_networks_have_to_keep_the_bounds(self, folder: Path) -> None:
        mark = self.judged(folder, seen(0.1, 0.1, 0.4, 0.4))
        assert mark.line() == ("completion 0.1 to 0.4 s in 2 networks, at most 0.25 s wanted, kept in 1: 0 of 3 points")
        assert [each["kept"] for each in mark.networks] == [True, False]

    def test_or_each_brings_its_share(self, folder: Path) -> None:
        found = seen(0.1, 0.1, 0.4, 0.4)
        assert self.judged(folder, found, "max = 0.25", "max = 0.25\nshare = true").points == 1.5

    def test_only_some_networks_count(self, folder: Path) -> None:
        found = seen(0.1, 0.1, 0.4, 0.4)
        mark = self.judged(folder, found, "max = 0.25", 'max = 0.25\nat = { network = "near" }')
        assert mark.line() == "completion 0.1 s, at most 0.25 s wanted: 3 of 3 points"

    def test_a_run_without_a_figure_keeps_no_bound(self, folder: Path) -> None:
        mark = self.judged(folder, seen(0.1, 0.1, 0.1, "x.py:3: it broke"))
        assert mark.line() == (
            "completion 0.1 s, x.py:3: it broke in 2 networks, at most 0.25 s wanted, kept in 1: 0 of 3 points"
        )

    def test_a_difference_to_a_reference(self, folder: Path) -> None:
        relative = 'max = -1\nrelative_to = { reference = "plain", by = "difference" }'
        mark = self.judged(folder, seen(0.1, 0.1, 0.1, 0.1), "max = 0.25", relative)
        assert mark.line() == "completion -1.9 s in 2 networks, at most -1 s wanted: 3 of 3 points"


def test_a_table_has_no_formulas() -> None:
    text = command._csv([Grade("=1+1", [Mark("a", 1, 2, "@x")], "-p\nq")])
    (row,) = csv.DictReader(text.splitlines())
    assert (row["submission"], row["problem"], row["a: seen"]) == ("'=1+1", "'-p\\nq", "'@x")


def test_submissions_are_in_the_order_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    paths = [tmp_path / "c.py", tmp_path / "b", tmp_path / "a.py", tmp_path / "b" / "c.py", tmp_path / "c.py"]
    found = grading.found(paths, "mine.py")
    assert [(each.name, each.file) for each in found] == sorted(
        [
            ("a", tmp_path / "a.py"),
            ("b", tmp_path / "b" / "mine.py"),
            (str(tmp_path / "b" / "c.py"), tmp_path / "b" / "c.py"),
            (str(tmp_path / "c.py"), tmp_path / "c.py"),
        ]
    )


def test_a_rubric_alone_is_described(folder: Path, capsys: Any) -> None:
    told = called(capsys, "grade", folder / "rubric.toml").stdout
    assert "4 runs for each submission and reference" in told
    assert "at least 0.5 x plain" in told


def test_a_folder_of_submissions_is_no_submission(folder: Path, capsys: Any) -> None:
    outcome = called(capsys, "grade", folder / "rubric.toml", folder / "room")
    assert outcome.returncode == 2
    assert f"has no scenario.toml; if it holds submissions, name these: {folder / 'room'}/*" in outcome.stderr


def test_a_table_is_not_overwritten(folder: Path, capsys: Any) -> None:
    outcome = called(capsys, "grade", folder / "rubric.toml", folder / "network.toml", "--csv", folder / "network.toml")
    assert outcome.returncode == 2
    assert (folder / "network.toml").read_text() == NETWORK


def test_a_reference_that_is_wrong_is_the_rubrics_fault(folder: Path) -> None:
    (folder / "other.toml").write_text(NETWORK.replace("lte", "dsl"))
    with pytest.raises(ScenarioError, match=r"rubric\.toml:12: reference 'plain': "):
        rubric(folder, '"network.toml"\n\n', '"other.toml"\n\n')
