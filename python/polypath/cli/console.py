"""Where commands print: results on standard output, everything about the run on standard error."""

from __future__ import annotations

import os
import sys

from rich.console import Console
from rich.table import Table

from polypath.cli.codes import DONE

#: Columns where standard output is not a terminal.
_WIDTH = 120


def discard_output() -> None:
    """Lets what is still to be printed go nowhere, once nobody reads standard output any more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Console(Console):
    def on_broken_pipe(self) -> None:
        discard_output()
        raise SystemExit(DONE)


out = _Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False, soft_wrap=False)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def warn(message: str) -> None:
    err.print(f"warning: {message}", style="yellow", markup=False)


def table(*headings: str, numbers: frozenset[str] = frozenset(), title: str | None = None) -> Table:
    """A table in the house style; the columns named in `numbers` are aligned to the right."""
    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings:
        made.add_column(heading, justify="right" if heading in numbers else "left", header_style="dim", overflow="fold")
    return made
