"""polypath validate: the content of a scenario, without running it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from polypath import engines
from polypath.cli import complete, figures, jobs, planned
from polypath.cli.console import err, out, printable, warn
from polypath.cli.errors import BAD_INPUT, DONE, InputError
from polypath.cli.options import Axes, Runs, Seed, Settings
from polypath.cli.write import require_new
from polypath.errors import PolypathError
from polypath.plan import lint, routes
from polypath.scenario import ScenarioError


@dataclass(frozen=True)
class _Checked:
    """A target, with the runs that it stands for or what is wrong with it."""

    target: str
    jobs: Sequence[jobs.Job] = ()
    faults: Sequence[PolypathError] = field(default_factory=list)


def validate(
    targets: Annotated[
        list[str], typer.Argument(metavar="LAB|SCENARIO.toml..", show_default=False, autocompletion=complete.targets)
    ],
    settings: Settings = None,
    seed: Seed = None,
    runs: Runs = None,
    axes: Axes = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE.svg", help="Draw the topology into a new SVG, PNG or PDF file."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print plans, routes, warnings and errors as JSON instead of tables.")
    ] = False,
) -> int:
    """Check scenarios without running them, and show what would run.

    It shows hosts, settings, applications and paths, and warns of likely mistakes. It writes only the file of `--plot`.
    It executes no code of a scenario, and checks a class in Python by its text.

    Anything that `run` would refuse is an error here, one line each, with exit code 2. For a sweep, every point is
    checked and the first one is shown. Warnings leave the exit code 0.

    Examples: `polypath validate scenario.toml`, `polypath validate aggregation --run mptcp --plot topology.svg`,
    `polypath validate *.toml --json`.
    """
    if plot is not None:
        require_new(plot)
    found = [_checked(target, settings or (), seed, runs or (), axes or ()) for target in targets]
    if plot is not None:
        _draw(found, plot)
    if as_json:
        out.verbatim(json.dumps([_data(one) for one in found], indent=2) + "\n")
    else:
        for one in found:
            _show(one)
    return BAD_INPUT if any(one.faults for one in found) else DONE


def _checked(
    target: str, settings: Sequence[str], seed: int | None, runs: Sequence[str], axes: Sequence[str]
) -> _Checked:
    try:
        todo = jobs.of_target(target, runs, settings, seed, axes, dry=True)
        for job in todo:
            _require_runnable(job)
    except ScenarioError as error:
        return _Checked(target, faults=error.errors)
    except PolypathError as error:
        return _Checked(target, faults=[error])
    return _Checked(target, todo)


def _require_runnable(job: jobs.Job) -> None:
    """Has the simulator prepare every point. Raises EngineError."""
    for point in job.points:
        try:
            engines.check(point.plan)
        except engines.EngineError as error:
            said = str(job.placed(error))
            which = " ".join(filter(None, (job.name if said == str(error) else "", point.title)))
            raise engines.EngineError(f"{which}: {said}" if which else said) from error


def _warnings(job: jobs.Job) -> list[str]:
    """Warnings about outside files, about its axes, and about doubtful settings that hold at every point."""
    reads = None if job.brought is None else job.brought.reads()
    found: list[str] | None = None
    for point in job.points:
        plan = point.plan.view
        own = point.scenario.unused + lint.warnings(plan, routes.routes(plan))
        found = own if found is None else [line for line in found if line in own]
        if not found:
            break
    return [*([] if reads is None else [reads]), *job.warnings, *(found or ())]


def _show(one: _Checked) -> None:
    for fault in one.faults:
        err.print(f"polypath: {printable(str(fault))}", markup=False)
    for job in one.jobs:
        planned.show(job)
        if job.brought is not None and (runs := job.brought.runs()) is not None:
            out.print(f"{printable(runs)}\n", markup=False)
        for message in _warnings(job):
            warn(f"{job.name}: {message}")


def _data(one: _Checked) -> dict[str, Any]:
    return {
        "target": one.target,
        "valid": not one.faults,
        "errors": [
            {"message": getattr(fault, "message", str(fault))}
            | {key: getattr(fault, key, None) for key in ("file", "line", "hint")}
            for fault in one.faults
        ],
        "runs": [planned.data(job) | {"warnings": _warnings(job)} for job in one.jobs],
    }


def _draw(found: Sequence[_Checked], path: Path) -> None:
    """The first point's network. Raises InputError unless there is one run to draw."""
    chosen = [job for one in found for job in one.jobs]
    if not chosen:
        return
    if len(chosen) > 1:
        raise InputError(f"--plot draws one topology; choose among {', '.join(job.name for job in chosen)}")
    figures.ready()
    from polypath import plots

    plots.save("topology", chosen[0].nothing_yet, path)
