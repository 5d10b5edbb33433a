"""Where commands print: results on standard output, everything about the run on standard error."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

#: Columns where standard output is not a terminal.
_WIDTH = 120

out = Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False, soft_wrap=False)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def warn(message: str) -> None:
    err.print(f"warning: {message}", style="yellow", markup=False)


def table(*headings: str, numbers: frozenset[str] = frozenset(), title: str | None = None) -> Table:
    """A table in the house style; the columns named in `numbers` are aligned to the right."""
    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings:
        made.add_column(heading, justify="right" if heading in numbers else "left", header_style="dim", overflow="fold")
    return made
