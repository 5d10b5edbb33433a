"""Every command's help has examples, and what they show is what the command takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from polypath.cli import commands


def every() -> Iterator[tuple[str, Any]]:
    """Each command with its words, those of groups too."""
    for words, command in commands.walk():
        yield " ".join(words), command


COMMANDS = dict(every())
LEAVES = {name: command for name, command in COMMANDS.items() if not commands.inner(command)}


def examples(text: str) -> list[str]:
    """What stands in backticks after "Example" and is a command."""
    _, _, shown = text.partition("Example")
    return [" ".join(each.split()) for each in re.findall(r"`(polypath [^`]+)`", shown)]


def test_groups_are_walked() -> None:
    assert {"polypath", "polypath run", "polypath quic", "polypath quic serve", "polypath kernel wheel"} <= set(
        COMMANDS
    )


@pytest.mark.parametrize("name", list(LEAVES))
def test_examples_are_there_and_are_understood(name: str) -> None:
    shown = examples(LEAVES[name].help or "")
    assert shown
    for example in shown:
        words = shlex.split(example)
        assert example.startswith(name)
        context = LEAVES[name].make_context(name, words[len(name.split()) :])
        assert not context.args


@pytest.mark.parametrize("name", list(LEAVES))
def test_paragraphs_are_broken_where_the_terminal_ends(name: str) -> None:
    assert all("\n" not in paragraph for paragraph in (LEAVES[name].help or "").split("\n\n"))


def test_an_example_with_a_wrong_option_is_noticed() -> None:
    with pytest.raises(typer.TyperException):
        LEAVES["polypath labs"].make_context("labs", ["--frobnicate"])


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version_has_a_short_option(polypath: Any, option: str) -> None:
    outcome = polypath(option)
    assert outcome.code == 0
    assert re.fullmatch(r"polypath \d+\.\d+\.\d+\n", outcome.out)
