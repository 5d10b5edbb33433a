"""polypath check: hold labs against what is published of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from polypath import engines
from polypath.cli import jobs, progress
from polypath.cli.codes import DONE, MISSED
from polypath.cli.console import out, table
from polypath.cli.errors import InputError
from polypath.cli.markdown import validation_page
from polypath.cli.options import Seed, Settings
from polypath.labs import Lab, catalogue, get
from polypath.results import Recording
from polypath.results.expectations import Row, evaluate
from polypath.results.files import require_writable, write_text


def check(
    names: Annotated[list[str] | None, typer.Argument(metavar="LAB..", show_default=False)] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every lab of the catalogue.")] = False,
    settings: Settings = None,
    seed: Seed = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the result as a page.")] = None,
) -> int:
    """Run labs and compare with what is published of them; exit code 1 on a miss whose cause the lab does not state."""
    if bool(names) == everything:
        raise InputError("name the labs to check, or --all")
    chosen = list(catalogue().values()) if everything else [get(name) for name in names or ()]
    todo = {lab.name: jobs.of_lab(lab, (), settings or (), seed) for lab in chosen}
    if markdown is not None:
        require_writable(markdown.parent)
    found = {lab.name: _check(lab, todo[lab.name]) for lab in chosen}
    rows = [(lab, row) for lab in chosen for row in found[lab.name]]
    missed = [(lab, row) for lab, row in rows if not row.ok]
    unexplained = [row for lab, row in missed if not causes(lab).get(row.name)]
    known = len(missed) - len(unexplained)
    out.print(
        f"{len(rows) - len(missed)} of {len(rows)} expectations met in {len(chosen)} labs"
        + (f"; known misses: {known}" if known else "")
    )
    if markdown is not None:
        write_text(markdown, validation_page({lab.name: lab for lab in chosen}, found))
    return MISSED if unexplained else DONE


def _check(lab: Lab, todo: Sequence[jobs.Job]) -> list[Row]:
    recordings = {run.name: _run(job) for run, job in zip(lab.runs, todo, strict=True)}
    rows = [evaluate(expectation, recordings) for expectation in lab.expectations]
    shown = table("expectation", "published", "bound", "measured", "", title=lab.title)
    known = causes(lab)
    for row in rows:
        verdict = (
            "[green]ok[/green]"
            if row.ok
            else "[yellow]known[/yellow]"
            if known.get(row.name)
            else "[bold red]MISS[/bold red]"
        )
        shown.add_row(escape(row.name), escape(row.published), escape(row.bound), escape(row.measured), verdict)
    out.print(shown)
    for row in rows:
        if not row.ok and known.get(row.name):
            out.print(f"{escape(row.name)}: a known miss. {escape(known[row.name])}")
    out.print()
    return rows


def causes(lab: Lab) -> dict[str, str]:
    """Why expectations are known to be missed, by name."""
    return {each.name: " ".join(each.cause.split()) for each in lab.expectations if each.cause}


def _run(job: jobs.Job) -> Recording:
    with progress.shown(job.name) as callback:
        recording = engines.get("sim").run(job.plan, engines.Options(), callback)
    if recording.metadata.interrupted:
        raise KeyboardInterrupt
    return recording
