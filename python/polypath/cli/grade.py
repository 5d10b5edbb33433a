"""polypath grade: points and feedback for what a class hands in."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from polypath import grading
from polypath.cli import progress
from polypath.cli.console import err, out, printable, table
from polypath.cli.errors import DONE, InputError, require_unix
from polypath.cli.write import require_new
from polypath.grading import Grade, Rubric
from polypath.results.files import require_writable, write_text
from polypath.sweeps import executor
from polypath.sweeps import points as combinations
from polypath.units import SIZE, TIME

#: What a spreadsheet takes for a formula begins so.
_FORMULA = ("=", "+", "-", "@")


def grade(
    rubric: Annotated[Path, typer.Argument(metavar="RUBRIC.toml", show_default=False)],
    submissions: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="SUBMISSION..",
            help="Files, or folders with a file of the name that the rubric gives. Default: only check the rubric.",
            show_default=False,
        ),
    ] = None,
    parallel: Annotated[
        int | None,
        typer.Option("--jobs", min=1, max=1024, help="Submissions that run at a time. Default: one per core."),
    ] = None,
    table_file: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Also write a new file with a row for each submission.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print grades and figures as JSON instead of text.")] = False,
) -> int:
    """Grade submissions of a class by a rubric, each in a process of its own.

    A rubric names what is handed in, networks and seeds that its authors do not see, and points for figures within
    bounds. Submissions are code that runs with your rights. CPU time, memory and the size of files are limited; files
    and the network are not protected.

    Examples: `polypath grade rubric.toml`, `polypath grade rubric.toml submissions/* --csv grades.csv`.
    """
    found = grading.load(rubric)
    if not submissions:
        _describe(found)
        return DONE
    require_unix()
    (first, *others) = submissions
    if not others and first.is_dir() and not (first / found.submitted_file).exists():
        raise InputError(f"{first} has no {found.submitted_file}; if it holds submissions, name these: {first}/*")
    if table_file is not None:
        require_new(table_file)
        require_writable(table_file.parent)
    _warn(found, len(submissions))
    handed_in = grading.found(submissions, found.submitted_file)
    with progress.points(rubric.stem, "submissions") as told:
        references, outcomes = grading.run(found, handed_in, executor.cores() if parallel is None else parallel, told)
    for name, reference in references.items():
        if reference.problem is not None:
            raise InputError(f"{rubric}: reference '{name}': {reference.problem}")
    grades = [
        grading.judged(found, each.name, outcome, references) for each, outcome in zip(handed_in, outcomes, strict=True)
    ]
    if as_json:
        data = {"rubric": found.said.title, "grades": [each.data() for each in grades]}
        out.verbatim(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    else:
        _show(grades)
    if table_file is not None:
        write_text(table_file, _csv(grades))
    return DONE


def _warn(rubric: Rubric, count: int) -> None:
    limits = rubric.said.limits
    what = "submission is code that runs" if count == 1 else "submissions are code that runs"
    err.print(
        f"polypath: {count} {what} on this machine with your rights. Each has {TIME.format(limits.cpu)} of CPU time"
        f" and {SIZE.format(limits.memory)} of memory; files and the network are not protected",
        markup=False,
    )


def _describe(rubric: Rubric) -> None:
    """What the rubric would grade."""
    said = rubric.said
    what = said.submission if said.class_ is None else f"{said.submission}, class {said.class_}"
    out.print(f"[bold]{escape(said.title)}[/bold]  ({escape(what)}, {escape(rubric.submitted_file)} in a folder)")
    if rubric.base is not None:
        runs = len(combinations(rubric.networks(rubric.base)))
        out.print(f"{runs} runs for each submission and reference")
    rows = table("points for", "measure", "bound", "points", numbers=frozenset({"points"}))
    for each in said.points:
        bound = grading.wanted(each)
        rows.add_row(escape(each.name), escape(each.measure), escape(bound), f"{each.points:g}")
    out.print(rows)


def _show(grades: Sequence[Grade]) -> None:
    for number, each in enumerate(grades):
        if number:
            out.print()
        out.print(f"[bold]{escape(printable(each.name))}[/bold]  {each.points:g} of {each.of:g} points")
        if each.problem is not None:
            out.print(f"  {escape(printable(each.problem))}", soft_wrap=True)
            continue
        for mark in each.marks:
            out.print(f"  {escape(printable(f'{mark.name}: {mark.line()}'))}", soft_wrap=True)


def _csv(grades: Sequence[Grade]) -> str:
    """A row for each submission: its points, then those of each criterion with what was seen."""
    names = [mark.name for mark in grades[0].marks]
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(
        _cells(["submission", "points", "of", "problem", *(f"{n}{s}" for n in names for s in ("", ": seen"))])
    )
    for each in grades:
        marks = [cell for mark in each.marks for cell in (f"{mark.points:g}", mark.seen)]
        writer.writerow(_cells([each.name, f"{each.points:g}", f"{each.of:g}", each.problem or "", *marks]))
    return made.getvalue()


def _cells(texts: Sequence[str]) -> list[str]:
    """In one line each, and none of them a formula: what is handed in chooses some of the words."""
    return [f"'{text}" if text.startswith(_FORMULA) else text for text in map(printable, texts)]
