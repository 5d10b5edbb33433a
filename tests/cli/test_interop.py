"""`polypath interop`: stacks of QUIC against each other."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from polypath.interop import networks, page
from polypath.interop.cases import CASES
from polypath.interop.matrix import Cell, play, record
from polypath.interop.participants import PARTICIPANTS
from polypath.sweeps import cluster

FEW = ("--stacks", "polypath,noq", "--case", "handshake", "--case", "mp-backup", "--networks", "1", "--jobs", "1")


def test_two_runs_write_the_same_page(polypath: Any, tmp_path: Path) -> None:
    texts = []
    for _ in range(2):
        outcome = polypath("interop", *FEW, "--markdown", str(tmp_path / "page.md"))
        assert outcome.code == 0, outcome.err
        texts.append((tmp_path / "page.md").read_text(encoding="utf-8"))
    assert texts[0] == texts[1]
    assert "| handshake | passed | passed | passed | passed |" in texts[0]
    assert "| mp-backup | passed | passed | passed | passed |" in texts[0]
    assert "## Performance over 1 network\n" in texts[0]
    assert "polypath interop --stacks polypath,noq --case handshake --case mp-backup --networks 1" in texts[0]


def test_a_call_that_was_killed_goes_on(polypath: Any, tmp_path: Path) -> None:
    """Of twelve rows, two and a part of the third are there: ten are played, and all is as if nothing had happened."""
    kept = tmp_path / "rows"
    outcome = polypath("interop", *FEW, "--kept", str(kept))
    assert outcome.code == 0, outcome.err
    lines = kept.read_text(encoding="utf-8").splitlines(keepends=True)
    assert len(lines) == len(outcome.err.splitlines()) == 12
    kept.write_text("".join(lines[:2]) + lines[2][:20], encoding="utf-8")
    again = polypath("interop", *FEW, "--kept", str(kept))
    assert len(again.err.splitlines()) == 10
    assert again.out == outcome.out
    assert kept.read_text(encoding="utf-8").splitlines(keepends=True) == lines
    last = polypath("interop", *FEW, "--kept", str(kept))
    assert (last.out, last.err) == (outcome.out, "")


def test_rows_of_another_program_are_played_again(
    polypath: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = ("--stacks", "noq", "--case", "handshake", "--networks", "0", "--jobs", "1", "--kept", str(tmp_path / "rows"))
    assert len(polypath("interop", *one).err.splitlines()) == 1
    other = replace(cluster.identity(), package="other")
    monkeypatch.setattr(cluster, "identity", lambda: other)
    assert len(polypath("interop", *one).err.splitlines()) == 1


@pytest.mark.parametrize("notes", ["# My notes\n", "# My notes", "\n# My notes"])
def test_a_file_of_something_else_is_not_taken_for_rows(polypath: Any, tmp_path: Path, notes: str) -> None:
    mine = tmp_path / "notes.md"
    mine.write_text(notes)
    outcome = polypath("interop", *FEW, "--kept", str(mine))
    assert outcome.code == 2
    assert outcome.err == f"polypath: {mine} has no rows of `polypath interop`; name another file, or remove it\n"
    assert mine.read_text() == notes


def test_a_file_that_is_no_such_page_stays(polypath: Any, tmp_path: Path) -> None:
    mine = tmp_path / "notes.md"
    mine.write_text("# My notes\n")
    outcome = polypath("interop", *FEW, "--markdown", str(mine))
    assert outcome.code != 0
    assert outcome.err == f"polypath: {mine} exists and is no such page; name another file, or remove it\n"
    assert mine.read_text() == "# My notes\n"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--stacks", "quiche"), "--stacks quiche: there is no such stack; there are polypath, noq"),
        (("--case", "tea"), "--case tea: there is no such test case; there are handshake"),
    ],
)
def test_names_that_are_not_there_are_one_clear_line(polypath: Any, words: tuple[str, ...], problem: str) -> None:
    outcome = polypath("interop", *words)
    assert outcome.code == 2
    assert problem in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_cell_is_a_result_or_a_reason() -> None:
    case = next(each for each in CASES if each.name == "mp-handshake")
    cell = play(case, "polypath", "aioquic", (1,))
    assert cell.passed is None
    assert cell.reason


def test_a_judge_finds_what_is_wrong() -> None:
    """A path that stays a backup does not pass for one that takes part."""
    backup = next(each for each in CASES if each.name == "mp-backup")
    takes_part = next(each for each in CASES if each.name == "mp-second-path")
    recording = record(backup.scenario("polypath", "polypath", 1))
    assert backup.judge(recording) is None
    assert takes_part.judge(recording) is not None


def test_networks_are_drawn_from_the_seed() -> None:
    one, again, other = (list(networks.drawn(5, seed)) for seed in (1, 1, 2))
    assert one == again
    assert one != other


def test_the_page_numbers_its_reasons() -> None:
    cells = [Cell("handshake", "polypath", "noq", False, "no answer"), Cell("transfer", "polypath", "noq", True)]
    text = page.page([("polypath", "noq")], cells, [], "polypath interop")
    assert "| handshake | failed [1] |" in text
    assert "1. handshake, polypath → noq: no answer" in text
    assert set(PARTICIPANTS) >= {"polypath", "noq", "picoquic", "aioquic"}
