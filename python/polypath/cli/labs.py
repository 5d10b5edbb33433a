"""polypath labs: the catalogue."""

from __future__ import annotations

from rich.markup import escape

from polypath.cli.console import out, table
from polypath.labs import catalogue


def labs() -> None:
    """List the labs.

    Example: `polypath labs`.
    """
    rows = table("lab", "runs", "question")
    for lab in catalogue().values():
        names = ", ".join(run.name for run in lab.runs)
        rows.add_row(f"[bold]{escape(lab.name)}[/bold]", escape(names), escape(lab.question))
    out.print(rows)
