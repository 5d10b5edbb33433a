"""polypath show: a lab's question, topology and expected numbers, or the figures of a stored result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.padding import Padding

from polypath.cli import complete, result, sweeps
from polypath.cli.console import err, out, table
from polypath.cli.errors import InputError
from polypath.labs import Lab, get, names
from polypath.results import OutputError, Recording, folder, stored
from polypath.results.expectations import bound
from polypath.results.names import of_folders, of_place
from polypath.scenario import describe_topology


def show(
    name: Annotated[
        str, typer.Argument(metavar="LAB|DIR", show_default=False, autocompletion=complete.labs_and_results)
    ],
) -> None:
    """Show a lab's question, topology and expected figures, or the figures of a stored result.

    Examples: `polypath show aggregation`, `polypath show results`.
    """
    directory = Path(name)
    if name not in names() and directory.is_dir():
        _show_results(directory)
    elif name not in names() and directory.is_file():
        raise InputError(f"{name} is a file, no lab and no folder of results; polypath validate shows a scenario")
    else:
        _show_lab(get(name))


def _show_results(directory: Path) -> None:
    found = list(stored.found(directory))
    if not found:
        raise OutputError(f"no results in {directory}; name a folder that `polypath run --out` wrote, or a lab")
    names = [stored.name(path, kind) for path, kind in found]
    if len(set(names)) < len(names):
        names = of_folders([path for path, _ in found])
    for number, ((path, kind), title) in enumerate(zip(found, names, strict=True)):
        if number:
            out.print()
        if kind is folder.RUN:
            result.show(Recording.load(path), title)
        else:
            _show_sweep(replace(stored.StoredSweep.read(path), name=title))


def _show_sweep(found: stored.StoredSweep) -> None:
    """Prints it, and which points have no result, as `run` does."""
    sweeps.show(found)
    for values, reason in found.without:
        err.print(f"polypath: {found.name} at {of_place(values)}: {reason}", markup=False)


def _show_lab(lab: Lab) -> None:
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
    if lab.tries:
        out.print("Things to try")
        for item in lab.tries:
            out.print(Padding(f"- {escape(item.replace('`', ''))}", 0))
        out.print()
    out.print(Padding(f"Source: {escape(lab.source)}", 0))
