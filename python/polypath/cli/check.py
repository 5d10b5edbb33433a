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
    """Run labs and compare with what is published of them; exit code 1 on a miss."""
    if bool(names) == everything:
        raise InputError("name the labs to check, or --all")
    chosen = list(catalogue().values()) if everything else [get(name) for name in names or ()]
    todo = {lab.name: jobs.of_lab(lab, (), settings or (), seed) for lab in chosen}
    if markdown is not None:
        require_writable(markdown.parent)
    found = {lab.name: _check(lab, todo[lab.name]) for lab in chosen}
    rows = [row for each in found.values() for row in each]
    missed = sum(not row.ok for row in rows)
    out.print(f"{len(rows) - missed} of {len(rows)} expectations met in {len(chosen)} labs")
    if markdown is not None:
        write_text(markdown, validation_page({lab.name: lab for lab in chosen}, found))
    return MISSED if missed else DONE


def _check(lab: Lab, todo: Sequence[jobs.Job]) -> list[Row]:
    recordings = {run.name: _run(job) for run, job in zip(lab.runs, todo, strict=True)}
    rows = [evaluate(expectation, recordings) for expectation in lab.expectations]
    shown = table("expectation", "published", "bound", "measured", "", title=lab.title)
    for row in rows:
        verdict = "[green]ok[/green]" if row.ok else "[bold red]MISS[/bold red]"
        shown.add_row(escape(row.name), escape(row.published), escape(row.bound), escape(row.measured), verdict)
    out.print(shown)
    out.print()
    return rows


def _run(job: jobs.Job) -> Recording:
    with progress.shown(job.name) as callback:
        recording = engines.get("sim").run(job.plan, engines.Options(), callback)
    if recording.metadata.interrupted:
        raise KeyboardInterrupt
    return recording
