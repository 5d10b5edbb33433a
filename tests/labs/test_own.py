"""A lab of one's own: a folder works where a name does, and what is wrong with its lab.toml is one line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import polypath
from polypath import labs
from polypath.playground import of_lab
from polypath.scenario import ScenarioError

from ..commands import called
from ..two_paths import fetching

SCENARIO = fetching("500 kB")
LAB = """title = "Mine"
question = "Is it?"
tries = ["polypath run mine: what then?"]

[[run]]
name = "usual"

[[run]]
name = "first"
set = ["host.server.scheduler=first.py:First"]

[[ask]]
question = "Why?"
hint = "Look."

[[expect]]
name = "quicker-than-first"
measure = "completion"
run = "usual"
connection = "get"
relative_to = { run = "first" }
max = 0.99
unit = "x first"
"""
FIRST = """
class First:
    def select(self, view):
        return 0
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lab in folder `mine` of the working directory, whose algorithm is beside it."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "scenario.toml").write_text(SCENARIO)
    (folder / "lab.toml").write_text(LAB)
    (folder / "first.py").write_text(FIRST)
    return Path("mine")


@pytest.fixture
def ran(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a command printed that ends well."""

    def call(*arguments: str | Path) -> str:
        outcome = called(capsys, *arguments)
        assert outcome.returncode == 0, outcome.stderr
        return outcome.stdout

    return call


class TestCommands:
    def test_run_has_its_runs_and_its_algorithm(self, mine: Path, ran: Callable[..., str]) -> None:
        both = ran("run", mine)
        assert both.index("mine/usual") < both.index("mine/first")
        assert ran("run", "./mine/", "--run", "first") in both

    def test_a_sweep_over_it(self, mine: Path, ran: Callable[..., str]) -> None:
        told = ran("run", mine, "--run", "usual", "--vary", "link.lte.delay=10 ms,50 ms")
        assert "50 ms" in told

    def test_check_holds_it_to_its_claim(self, mine: Path, ran: Callable[..., str], capsys: Any) -> None:
        told = ran("check", mine)
        assert "1 of 1 expectations met in 1 labs" in told
        assert "published" not in told
        (mine / "lab.toml").write_text(LAB.replace("0.99", "0.1"))
        assert called(capsys, "check", mine).returncode == 1

    def test_show_prints_hints_when_asked(self, mine: Path, ran: Callable[..., str]) -> None:
        told = ran("show", mine)
        assert "Hint: Look." not in told
        assert "Hints: polypath show mine --hints" in told
        assert "- polypath run mine: what then?" in told
        assert "Hint: Look." in ran("show", mine, "--hints")

    def test_the_page_judges_by_its_claims(self, mine: Path, ran: Callable[..., str]) -> None:
        ran("report", mine)
        assert "quicker-than-first" in Path("mine-report.html").read_text()
        ran("run", mine, "--out", "out")
        ran("report", "out", "--out", "without.html")
        assert "quicker-than-first" not in Path("without.html").read_text()
        ran("report", "out", "--lab", mine, "--out", "with.html")
        assert "quicker-than-first" in Path("with.html").read_text()
        assert "mine/lab.toml" in Path("with.html").read_text()

    def test_its_files_are_not_overwritten(self, mine: Path, capsys: Any) -> None:
        before = {path.name: path.read_text() for path in mine.iterdir()}
        assert called(capsys, "run", mine, "--run", "usual", "--out", mine).returncode == 0
        assert {path.name: path.read_text() for path in mine.iterdir() if path.is_file()} == before
        one = LAB.partition('[[run]]\nname = "first"')[0]
        (mine / "lab.toml").write_text(one)
        assert called(capsys, "run", mine, "--out", mine).returncode == 2
        assert (mine / "lab.toml").read_text() == one

    def test_explain_runs_it(self, mine: Path, ran: Callable[..., str]) -> None:
        assert "get" in ran("explain", mine, "--run", "usual")

    def test_code_is_told_of(self, mine: Path, capsys: Any) -> None:
        (mine / "first.py").write_text(FIRST + f"# {mine.absolute()}\n")  # told of once per content
        assert "runs code with your rights: first.py" in called(capsys, "check", mine).stderr

    def test_the_playground_has_the_runs_that_it_can(self, mine: Path) -> None:
        (preset,) = of_lab(labs.get(mine))
        assert (preset.name, preset.command) == ("mine/usual", "mine --run usual")


def test_from_python(mine: Path) -> None:
    by_text, by_path = polypath.run("mine/first"), polypath.run(mine / "first")
    assert by_text.metadata.scenario == "mine/first"
    assert by_text.metadata.recording_sha256 == by_path.metadata.recording_sha256
    slow, quick = by_text["get"].completion_s, polypath.run("mine/usual")["get"].completion_s
    assert slow is not None
    assert quick is not None
    assert slow > quick
    result = polypath.sweep("mine/usual", {"link.lte.delay": ["10 ms", "50 ms"]})
    assert len(list(result)) == 2
    with pytest.raises(ScenarioError, match="lab 'mine' has several runs; name one of mine/usual, mine/first"):
        polypath.run("mine")
    with pytest.raises(ScenarioError, match="lab 'mine' has no run 'frist'; did you mean 'first'"):
        polypath.run("mine/frist")


def test_a_lab_of_the_package_comes_before_a_folder(mine: Path) -> None:
    mine.rename("backup")
    assert labs.get("backup").title != "Mine"
    assert labs.get("./backup").title == "Mine"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("question =", "qestion =", "lab.toml:2: unknown key 'qestion'; did you mean 'question'?"),
        ('"completion"', '"compleetion"', "lab.toml:18: unknown measure 'compleetion'; did you mean 'completion'?"),
        ('"get"', '"gett"', "lab.toml:20: unknown connection 'gett'; did you mean 'get'?"),
        ("max =", "mxa =", "lab.toml:22: unknown key 'mxa' in expect 1; did you mean 'max'?"),
        ('run = "usual"', 'run = "usul"', "names run 'usul', which the lab does not define; did you mean 'usual'?"),
        ('connection = "get"\n', "", "lab.toml:16: expect 1: measure 'completion' needs 'connection'"),
        ("server.scheduler", "server.schedler", "lab.toml:8: run 'first': "),
        ("first.py:First", "first.py:Frist", "lab.toml:8: run 'first': "),
        ("max = 0.99", 'max = "few"', "lab.toml:22: expect 1.max: expected a"),
        ("max = 0.99", "", "expectation 'quicker-than-first' has neither 'min' nor 'max'"),
    ],
)
def test_a_fault_is_one_line_with_its_place(mine: Path, old: str, new: str, said: str) -> None:
    text = LAB + "min = 0\n" if new.startswith("mxa") else LAB
    (mine / "lab.toml").write_text(text.replace(old, new, 1))
    with pytest.raises(ScenarioError) as caught:
        labs.get(mine)
    assert said in str(caught.value)
    assert str(caught.value).startswith("mine/lab.toml:")
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_lab_is_told(tmp_path: Path, capsys: Any) -> None:
    missing = "lab.toml is missing; polypath new lab NAME writes one"
    for command, told in (("run", "neither a lab.toml nor results; polypath new lab NAME writes"), ("check", missing)):
        outcome = called(capsys, command, tmp_path)
        assert outcome.returncode == 2
        assert told in outcome.stderr


class TestNew:
    def test_a_new_lab_keeps_its_claim(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: Callable[..., str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        ran("new", "lab", "fresh")
        assert "1 of 1 expectations met in 1 labs" in ran("check", "fresh")
        told = ran("show", "fresh", "--hints")
        for part in ("What to expect", "Things to try", "Could you explain?", "Hint:"):
            assert part in told
        commands = re.findall(r"polypath run fresh (.*?): ", told)
        assert len(commands) == 3

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["lab"], "a lab is written by polypath new lab NAME"),
            (["other", "name"], "a lab is written by polypath new lab NAME"),
            (["lab", "backup"], "lab 'backup' comes with Polypath; choose another name"),
            (["lab", "a b"], "'a b' is no name of a lab"),
            (["lab", "there"], "there exists; name another file, or remove it"),
            (["lab", "x", "--paths", "3"], "--paths is for a scenario; change scenario.toml of the new lab instead"),
        ],
    )
    def test_what_is_refused(
        self, arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
    ) -> None:
        monkeypatch.chdir(tmp_path)
        Path("there").mkdir()
        outcome = called(capsys, "new", *arguments)
        assert outcome.returncode == 2
        assert said in outcome.stderr
        assert [path.name for path in tmp_path.iterdir()] == ["there"]
