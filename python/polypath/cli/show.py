"""polypath show: a lab's question, what to expect and to try, or the figures of a stored result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.padding import Padding

from polypath.cli import complete, prose, result, sweeps
from polypath.cli.console import err, out, table
from polypath.cli.errors import InputError
from polypath.labs import Lab, find, get
from polypath.labs.expectations import bound
from polypath.results import OutputError, Recording, folder, stored
from polypath.results.names import of_folders, of_place
from polypath.scenario import describe_topology


def show(
    name: Annotated[
        str, typer.Argument(metavar="LAB|DIR", show_default=False, autocompletion=complete.labs_and_results)
    ],
    hints: Annotated[bool, typer.Option("--hints", help="Print a hint below each of the lab's questions.")] = False,
) -> None:
    """Show a lab's question, what to expect and what to try, or the figures of a stored result.

    Examples: `polypath show aggregation`, `polypath show aggregation --hints`, `polypath show results`.
    """
    directory = Path(name)
    if (lab := find(name)) is not None:
        _show_lab(lab, hints)
    elif hints:
        raise InputError(f"--hints needs a lab with questions, and {name} is no lab")
    elif directory.is_dir():
        _show_results(directory)
    elif directory.is_file():
        raise InputError(f"{name} is a file, no lab and no folder of results; polypath validate shows a scenario")
    else:
        get(name)


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


def _show_lab(lab: Lab, hints: bool) -> None:
    out.print(f"[bold]{escape(lab.title)}[/bold]  ({escape(lab.name)})\n")
    out.print(escape(lab.question) + "\n")
    out.print(describe_topology(lab.scenario()), markup=False, no_wrap=True, overflow="ignore", crop=False)
    out.print()
    runs = table("run", "settings")
    for run in lab.runs:
        runs.add_row(escape(run.name), escape("  ".join((*run.settings, *run.vary))))
    out.print(runs)
    out.print()
    if lab.expectation:
        out.print("[bold]What to expect[/bold]")
        prose.show(lab.expectation)
        out.print()
    if lab.expectations:
        _show_claims(lab)
    if lab.tries:
        out.print("[bold]Things to try[/bold]")
        for item in lab.tries:
            out.print(prose.item(item))
        out.print()
    if lab.questions:
        _ask(lab, hints)
    elif hints:
        raise InputError(f"--hints: lab '{lab.name}' asks no questions")
    if lab.source:
        out.print(Padding(f"Source: {escape(lab.source)}", 0))


def _show_claims(lab: Lab) -> None:
    """What `polypath check` holds the runs to; figures were published for none of one's own labs or for some."""
    published = any(each.published for each in lab.expectations)
    rows = table("claim", *(["published"] if published else []), "bound")
    for each in lab.expectations:
        cells = (each.name, *([each.published] if published else []), bound(each))
        rows.add_row(*map(escape, cells))
    out.print(rows)
    out.print()


def _ask(lab: Lab, hints: bool) -> None:
    out.print("[bold]Could you explain?[/bold]")
    for number, each in enumerate(lab.questions, start=1):
        out.print(prose.item(each.question, f"{number}."))
        if hints and each.hint:
            out.print(Padding(prose.item(each.hint, "Hint:"), (0, 0, 0, 3)))
    if not hints and any(each.hint for each in lab.questions):
        out.print(f"Hints: polypath show {escape(str(lab.folder) if lab.own else lab.name)} --hints")
    out.print()
