"""polypath manual: the manual page, generated from the commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from polypath.cli import commands
from polypath.cli.options import OutFile
from polypath.cli.write import write


def manual(out: OutFile = None) -> None:
    """Print the manual page, generated from the commands.

    Examples: `polypath manual --out polypath.1`, which `man ./polypath.1` shows.
    """
    write(page(), out)


def page() -> str:
    """The page in roff, with the macros of man(7)."""
    from polypath import _core

    every = list(commands.walk())
    (_, whole), *rest = every
    lines = [
        f'.TH POLYPATH 1 "" "Polypath {_core.version()}" "User Commands"',
        ".SH NAME",
        f"polypath \\- {_escaped(_first(whole.help).removeprefix('Polypath, ').rstrip('.'))}",
        ".SH SYNOPSIS",
        *_synopsis(("polypath",), whole),
        ".SH DESCRIPTION",
        *_paragraphs(whole.help),
        ".SH OPTIONS",
        *_parameters(("polypath",), whole),
        ".SH COMMANDS",
        *(line for words, command in rest for line in _command(words, command)),
        ".SH EXIT STATUS",
        *_entry("0", "Done."),
        *_entry("1", "A figure is outside its bounds, or a stated cause is stale (check, compare)."),
        *_entry("2", "Bad input, or what was asked for cannot be done; one line on standard error says why."),
        *_entry("130, 143, 129", "Ended by Ctrl-C, SIGTERM or SIGHUP."),
    ]
    return "\n".join(lines) + "\n"


def _command(words: tuple[str, ...], command: Any) -> Iterator[str]:
    yield f".SS {_escaped(' '.join(words))}"
    yield from _synopsis(words, command)
    yield from _paragraphs(command.help)
    yield from _parameters(words, command)


def _context(words: tuple[str, ...], command: Any) -> Any:
    return command.make_context(" ".join(words), [], resilient_parsing=True)


def _synopsis(words: tuple[str, ...], command: Any) -> Iterator[str]:
    pieces = " ".join(command.collect_usage_pieces(_context(words, command)))
    yield f"\\fB{_escaped(' '.join(words))}\\fR {_escaped(pieces)}"


def _parameters(words: tuple[str, ...], command: Any) -> Iterator[str]:
    context = _context(words, command)
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            yield from _entry(*record)


def _entry(name: str, text: str) -> Iterator[str]:
    yield ".TP"
    yield f"\\fB{_escaped(name)}\\fR"
    yield _escaped(" ".join(text.split())) or "\\&"


def _paragraphs(text: str | None) -> Iterator[str]:
    for part in (text or "").split("\n\n"):
        yield ".PP"
        yield _escaped(" ".join(part.split()))


def _first(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split())


def _escaped(text: str) -> str:
    """Text that roff shows as it is: backslashes and hyphens, quotes, and dots where a line begins."""
    shown = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return re.sub(r"^\.", r"\\&.", shown)
