"""polypath check: hold labs to their claims, most of them published figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from polypath.cli import complete, jobs, progress
from polypath.cli.console import out, table
from polypath.cli.errors import DONE, MISSED, InputError
from polypath.cli.markdown import validation_page
from polypath.cli.options import Jobs, Seed, Settings
from polypath.engines import EngineError
from polypath.labs import Lab, catalogue, get
from polypath.labs.expectations import Row, Sample, evaluate
from polypath.results import Recording
from polypath.results.files import require_writable, write_text
from polypath.sweeps import executor, point


def check(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="LAB..", show_default=False, autocompletion=complete.labs)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every lab of the catalogue.")] = False,
    settings: Settings = None,
    seed: Seed = None,
    parallel: Jobs = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the result as a Markdown page.")
    ] = None,
) -> int:
    """Run labs and compare the results with published figures, or labs of your own with their claims.

    Exit code 1 means an unexplained miss, or a stale explanation: a cause of a miss that no longer occurs. The second
    is checked only with the lab's own settings and seeds.

    Examples: `polypath check aggregation backup`, `polypath check --all --markdown validation.md`.
    """
    if bool(names) == everything:
        raise InputError("name the labs to check, or --all")
    chosen = list(catalogue().values()) if everything else [get(name) for name in dict.fromkeys(names or ())]
    for lab in chosen:
        if [other.name for other in chosen].count(lab.name) > 1:
            raise InputError(f"two labs are named '{lab.name}'; check one after the other")
    todo = {lab.name: jobs.of_lab(lab, (), settings or (), seed) for lab in chosen}
    jobs.tell([job for each in todo.values() for job in each])
    if markdown is not None:
        require_writable(markdown.parent)
    found = {}
    for lab, own in _measured(chosen, todo, parallel):
        _show(lab, own)
        found[lab.name] = own
        if out.unread and markdown is None:
            return DONE
    rows = [(lab, row) for lab in chosen for row in found[lab.name]]
    missed = [(lab, row) for lab, row in rows if not row.ok]
    unexplained = [row for lab, row in missed if not causes(lab).get(row.name)]
    known = len(missed) - len(unexplained)
    as_it_stands = not settings and seed is None
    stale = [row for lab, row in rows if as_it_stands and is_stale(lab, row)]
    out.print(
        f"{len(rows) - len(missed)} of {len(rows)} expectations met in {len(chosen)} labs"
        + (f"; known misses: {known}" if known else "")
        + (f"; met, though a cause is given: {len(stale)}" if stale else "")
    )
    if markdown is not None:
        write_text(markdown, validation_page({lab.name: lab for lab in chosen}, found))
    return MISSED if unexplained or stale else DONE


def _measured(
    labs: Sequence[Lab], todo: Mapping[str, Sequence[jobs.Job]], parallel: int | None
) -> Iterator[tuple[Lab, list[Row]]]:
    """Each lab's rows, in order, as soon as all of its points have run. Raises EngineError where one fails."""
    tasks = [
        (lab.name, which, place, point.Task(f"{job.name} {at.title}".strip(), at.plan))
        for lab in labs
        for which, job in enumerate(todo[lab.name])
        for place, at in enumerate(job.points)
    ]
    found: dict[str, dict[tuple[int, int], Recording]] = {lab.name: {} for lab in labs}
    wanted = {lab.name: sum(len(job.points) for job in todo[lab.name]) for lab in labs}
    waiting = list(labs)
    chosen = executor.local(parallel, len(tasks))
    with (
        progress.points("check") as shown,
        closing(chosen.map(point.recorded, [task for *_, task in tasks])) as outcomes,
    ):
        for done, (index, outcome) in enumerate(outcomes, start=1):
            name, which, place, task = tasks[index]
            if not isinstance(outcome, Recording):
                raise EngineError(f"{task.name}: {outcome}")
            found[name][which, place] = outcome
            shown(done, len(tasks))
            while waiting and len(found[waiting[0].name]) == wanted[waiting[0].name]:
                lab = waiting.pop(0)
                own = found.pop(lab.name)
                runs = {
                    run.name: [Sample(at.values, own[which, place]) for place, at in enumerate(job.points)]
                    for which, (run, job) in enumerate(zip(lab.runs, todo[lab.name], strict=True))
                }
                yield lab, [evaluate(expectation, runs) for expectation in lab.expectations]


def _show(lab: Lab, rows: Sequence[Row]) -> None:
    published = any(row.published for row in rows)
    shown = table("claim", *(["published"] if published else []), "bound", "measured", "", title=lab.title)
    known = causes(lab)
    for row in rows:
        verdict = (
            "[yellow]ok, cause given[/yellow]"
            if is_stale(lab, row)
            else "[green]ok[/green]"
            if row.ok
            else "[yellow]known[/yellow]"
            if known.get(row.name)
            else "[bold red]MISS[/bold red]"
        )
        cells = (row.name, *([row.published] if published else []), row.bound, row.measured)
        shown.add_row(*map(escape, cells), verdict)
    out.print(shown)
    for row in rows:
        if not row.ok and known.get(row.name):
            out.print(f"{escape(row.name)}: a known miss. {escape(known[row.name])}")
        elif is_stale(lab, row):
            said = "met, though a cause is given, which would permit a miss"
            out.print(f"{escape(row.name)}: {said}. {escape(known[row.name])}")
    out.print()


def causes(lab: Lab) -> dict[str, str]:
    """Why expectations are known to be missed, by name."""
    return {each.name: " ".join(each.cause.split()) for each in lab.expectations if each.cause}


def is_stale(lab: Lab, row: Row) -> bool:
    """Whether an expectation is met for which a cause is given, and that not by chance."""
    return row.ok and any(each.name == row.name and each.cause and not each.chance for each in lab.expectations)
