"""A lab's text on a terminal: paragraphs, items, tables and pictures of its Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from polypath.cli.console import out, table

_MARKS = re.compile(r"\*\*|`")
_LINK = re.compile(r"\[([^]]+)\]\([^)]*\)")
_ITEM = re.compile(r"(?:- |\d+\. )", re.MULTILINE)


def show(text: str) -> None:
    """Prints a section of Markdown without its marks."""
    for number, block in enumerate(re.split(r"\n\s*\n", text.strip())):
        if number:
            out.print()
        lines = block.splitlines()
        if lines[0].startswith("```"):
            out.print("\n".join(line for line in lines if not line.startswith("```")), markup=False, no_wrap=True)
        elif lines[0].startswith("|"):
            out.print(_table(lines))
        else:
            for each in _parts(block):
                out.print(each)


def item(text: str, mark: str = "-") -> Table:
    """An item of a list, whose further lines stand below its text."""
    made = Table.grid(padding=(0, 1, 0, 0))
    made.add_row(mark, escape(_plain(text)))
    return made


def _parts(block: str) -> Iterator[Table | Padding]:
    """A paragraph, and the items of a list."""
    first, *rest = re.split(r"^(?:- |\d+\. )", f"\n{block}", flags=re.MULTILINE)
    if first.strip():
        yield Padding(escape(_plain(first.lstrip("# \n"))), 0)
    for number, mark in enumerate(_ITEM.findall(block)[: len(rest)]):
        yield item(rest[number], mark.strip())


def _table(lines: list[str]) -> Table:
    head, _, *rest = ([_plain(cell) for cell in _cells(line)] for line in lines)
    made = table(*head)
    for row in rest:
        made.add_row(*map(escape, row))
    return made


def _cells(line: str) -> list[str]:
    return [cell.replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def _plain(text: str) -> str:
    """Words in one line, without marks; a link is its text."""
    return " ".join(_MARKS.sub("", _LINK.sub(r"\1", text)).split())
