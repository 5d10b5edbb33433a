"""Shells complete what the commands themselves define."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from polypath import labs
from polypath.cli import COMMANDS, complete

COMMAND = Path(sysconfig.get_path("scripts")) / "polypath"


def asked(shell: str, line: str, cwd: Path | None = None) -> list[str]:
    """What the installed command answers a shell's script for a line whose last word is incomplete."""
    words = line.split(" ")
    given = {
        "_POLYPATH_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    ran = subprocess.run([COMMAND], env=os.environ | given, capture_output=True, text=True, check=True, cwd=cwd)
    return ran.stdout.split("\n")


def test_commands(tmp_path: Path) -> None:
    assert [name for name in asked("bash", "polypath ") if name] == list(COMMANDS)
    assert [name for name in asked("bash", "polypath val") if name] == ["validate"]


def test_options_of_a_command_that_is_imported_for_it() -> None:
    assert {"--paths", "--profile"} <= set(asked("bash", "polypath new --p"))
    assert {"--listen", "--scheduler"} <= set(asked("bash", "polypath quic serve --"))


def test_labs_and_scenario_files(tmp_path: Path) -> None:
    for name in ("back.toml", "back.txt", ".hidden.toml"):
        (tmp_path / name).touch()
    (tmp_path / "backs").mkdir()
    (tmp_path / "backs" / "inner.toml").touch()
    found = [name for name in asked("bash", "polypath run back", tmp_path) if name]
    assert found == ["backup", "back.toml", "backs/"]
    assert [name for name in asked("bash", "polypath run backs/", tmp_path) if name] == ["backs/inner.toml"]
    assert [name for name in asked("bash", "polypath show agg", tmp_path) if name] == ["aggregation"]


def test_results_and_bundles(tmp_path: Path) -> None:
    for name in ("paper.zip", "paper.toml"):
        (tmp_path / name).touch()
    (tmp_path / "papers").mkdir()
    assert [name for name in asked("bash", "polypath rerun pap", tmp_path) if name] == ["paper.zip", "papers/"]
    assert [name for name in asked("bash", "polypath bundle pap", tmp_path) if name] == ["papers/"]


def test_words_of_options() -> None:
    assert [name for name in asked("bash", "polypath new --transport mp") if name] == ["mptcp", "mpquic"]
    assert [name for name in asked("bash", "polypath run --engine s") if name] == ["sim"]
    assert complete.kinds("sch") == ["scheduler"]
    assert complete.labs("") == list(labs.names())


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_the_summaries_too(shell: str) -> None:
    answer = "\n".join(asked(shell, "polypath val"))
    assert "validate" in answer
    assert COMMANDS["validate"].summary.split(",")[0] in answer


def test_the_script_works_in_bash(polypath: Any) -> None:
    script = polypath("completion", "bash").out
    then = 'COMP_WORDS=(polypath exp); COMP_CWORD=1; _polypath_completion polypath; echo "${COMPREPLY[@]}"'
    path = {"PATH": f"{COMMAND.parent}:{os.environ['PATH']}"}
    ran = subprocess.run(
        ["bash", "--norc", "-c", f"{script}\n{then}"], env=os.environ | path, capture_output=True, text=True
    )
    assert (ran.stdout, ran.stderr) == ("exposure explain export\n", "")


@pytest.mark.parametrize(("shell", "part"), [("zsh", "#compdef polypath"), ("fish", "complete --command polypath")])
def test_scripts_of_the_others(polypath: Any, shell: str, part: str) -> None:
    outcome = polypath("completion", shell)
    assert outcome.code == 0
    assert part in outcome.out
    assert "_POLYPATH_COMPLETE" in outcome.out


def test_an_unknown_shell(polypath: Any) -> None:
    outcome = polypath("completion", "fsh")
    assert (outcome.code, outcome.err) == (2, "polypath: unknown shell 'fsh'; did you mean 'fish'?\n")
