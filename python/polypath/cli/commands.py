"""Every command as it is defined, for completion, the manual page and tests of the help."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer


def walk(words: tuple[str, ...] = ("polypath",), command: Any = None) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each command with the words that call it, a group before its own commands; all are imported for it."""
    if command is None:
        from polypath.cli import app

        command = typer.main.get_command(app)
    yield words, command
    for name in inner(command):
        yield from walk((*words, name), loaded(command, name))


def inner(command: Any) -> list[str]:
    """The names of a group's commands; none of what is no group."""
    return list(getattr(command, "commands", {}))


def loaded(group: Any, name: str) -> Any:
    """A command of a group, imported where it was not."""
    load = getattr(group, "load", None)
    return group.commands[name] if load is None else load(name)
