"""polypath show: a lab's question, topology and expected numbers."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.padding import Padding

from polypath.cli import complete
from polypath.cli.console import out, table
from polypath.labs import get
from polypath.results.expectations import bound
from polypath.scenario import describe_topology


def show(name: Annotated[str, typer.Argument(metavar="LAB", show_default=False, autocompletion=complete.labs)]) -> None:
    """Show a lab's question, its topology and what is expected of it.

    Example: `polypath show aggregation`.
    """
    lab = get(name)
    out.print(f"[bold]{escape(lab.title)}[/bold]  ({escape(lab.name)})\n")
    out.print(escape(lab.question) + "\n")
    out.print(describe_topology(lab.scenario()), markup=False, no_wrap=True, overflow="ignore", crop=False)
    out.print()
    runs = table("run", "settings")
    for run in lab.runs:
        runs.add_row(escape(run.name), escape("  ".join((*run.settings, *run.vary))))
    out.print(runs)
    out.print()
    if lab.expectations:
        rows = table("expected", "published", "bound")
        for expectation in lab.expectations:
            rows.add_row(escape(expectation.name), escape(expectation.published), escape(bound(expectation)))
        out.print(rows)
        out.print()
    out.print(Padding(f"Source: {escape(lab.source)}", 0))
