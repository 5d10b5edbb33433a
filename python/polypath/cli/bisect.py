"""polypath bisect: the first commit of a kernel repository that changes a scenario's figure."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.markup import escape
from rich.table import Table

from polypath import folders
from polypath.bisect import Bisection, Repository, Step, key
from polypath.cli import jobs
from polypath.cli.console import err, out
from polypath.cli.errors import DONE, InputError
from polypath.cli.options import Runs, Settings
from polypath.cli.paired import measure as measured
from polypath.engines import get
from polypath.engines.linux import kernel
from polypath.engines.linux.kernel import named
from polypath.measures import short
from polypath.measures.summary import summary
from polypath.scenario import Scenario
from polypath.statistics import points
from polypath.units import nearest

_NAME: Final = "bisect"
_HEADINGS: Final = ("step", "commit", "figure", "verdict", "subject")


def bisect(
    target: Annotated[str, typer.Argument(metavar="LAB|SCENARIO.toml", show_default=False)],
    source: Annotated[Path, typer.Option("--source", metavar="REPO", help="A git repository of the kernel.")],
    good: Annotated[str, typer.Option("--good", metavar="COMMIT", help="A commit before the change.")],
    bad: Annotated[str, typer.Option("--bad", metavar="COMMIT", help="A commit with it.")],
    measure: Annotated[
        str, typer.Option("--measure", metavar="NAME", help="The figure: the mean over the connections.")
    ] = "goodput",
    hosts: Annotated[
        list[str] | None,
        typer.Option("--host", metavar="NAME", help="Only this host has the kernel (repeatable). Default: every host."),
    ] = None,
    settings: Settings = None,
    runs: Runs = None,
    parallel: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Compilers that run at a time.")] = os.cpu_count()
    or 1,
) -> int:
    """Find the first commit of a kernel repository that changes a scenario's figure.

    Each step checks a commit out, compiles what differs, and runs the scenario on engine `linux`. A commit is bad if
    its figure is nearer to that of --bad. One that does not compile or run is skipped. The same command goes on after
    an interruption.

    REPO has the kernel's source, or only some of its files, which then replace the shipped ones.

    Example: `polypath bisect slow.toml --source linux --good v7.1 --bad v7.2 --measure goodput`.
    """
    job = jobs.only(jobs.of_target(target, runs or (), settings or (), None), "a bisection follows one run")
    job.require_one()
    column = measured(measure)
    scenario = _on_kernel(job.scenario, hosts or ())
    repository = Repository(source)
    parts = {
        "scenario": job.plan.sha256(),
        "source": str(repository.path),
        "ends": [repository.commit(good), repository.commit(bad)],
        "measure": column,
        "hosts": sorted(hosts or ()),
    }
    search = Bisection(repository, good, bad, folders.cache() / "bisect" / key(parts))
    before = len(search.steps)
    if before:
        err.print(f"going on after {before} steps", markup=False)
    steps = []
    try:
        for step in search.run(lambda tree: _figure(scenario, tree, column, parallel)):
            steps.append(step)
            err.print(f"{step.commit[:12]} {_shown(step)} {step.verdict}", markup=False)
    finally:
        search.close()
    _print(steps, short(column))
    found = search.found()
    out.print(escape(f"first bad commit: {found.commit} {found.subject}"))
    if found.others:
        out.print(escape(f"or one of those without a figure: {', '.join(each[:12] for each in found.others)}"))
    return DONE


def _on_kernel(scenario: Scenario, hosts: Sequence[str]) -> Scenario:
    for host in hosts:
        if host not in scenario.host:
            hint = nearest(host, scenario.host)
            raise InputError(
                f"--host: there is no host '{host}'; "
                + (f"did you mean '{hint}'?" if hint else f"there is {', '.join(scenario.host)}")
            )
    return scenario.with_settings([f"host.{host}.kernel={_NAME}" for host in hosts or scenario.host])


def _figure(scenario: Scenario, tree: Path, column: str, parallel: int) -> float | None:
    """Runs on the kernel of a commit's files. Raises EngineError."""
    kernel.supported()
    whole = (tree / "arch" / "um").is_dir()
    request = named.Request(source=str(tree)) if whole else named.Request(over=str(tree))
    named.build(_NAME, request, parallel, None)
    plan = scenario.plan()
    rows = points.rows(summary(get("linux").run(plan)), plan.view)
    values = [row[column] for row in rows if row.get(column) is not None]
    return sum(values) / len(values) if values else None


def _shown(step: Step) -> str:
    return "-" if step.value is None else f"{step.value:.4g}"


def _word(step: Step) -> str:
    """The reason of a skipped one was told with the step."""
    return "skipped" if step.value is None else step.verdict


def _print(steps: Sequence[Step], figure: str) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in _HEADINGS:
        table.add_column(figure if heading == "figure" else heading)
    for number, step in enumerate(steps, 1):
        table.add_row(str(number), step.commit[:12], _shown(step), _word(step), escape(step.subject))
    out.print(table)
