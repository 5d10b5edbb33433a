"""The runs and sweeps that a command's arguments stand for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from polypath import labs
from polypath.cli.brought import Brought
from polypath.cli.errors import InputError
from polypath.engines import EngineError, ScriptFailed, Unplayable
from polypath.labs.lab import SCENARIO
from polypath.results import Metadata, Recording, folder, layout, stored
from polypath.scenario import Plan, Scenario, ScenarioError
from polypath.scenario.settings import overrides
from polypath.scenario.vary import SEED, SEEDS
from polypath.sweeps import Point, points

_APPLICATION = re.compile("application (?P<name>[^ ]+): ")


@dataclass(frozen=True)
class Job:
    """One run or sweep: a scenario with every setting made, and where results go below the output directory."""

    name: str
    scenario: Scenario
    #: The sweep's points, or the run as the only one.
    points: Sequence[Point]
    folder: str = "."
    #: The files that it was read from.
    inputs: Sequence[Path] = ()
    #: What its file brings along, of a scenario that is no lab of the package.
    brought: Brought | None = None

    @property
    def varies(self) -> bool:
        """Whether it is a sweep."""
        return bool(self.scenario.vary)

    @property
    def plans(self) -> Iterator[Plan]:
        """The plan of each point."""
        return (point.plan for point in self.points)

    @property
    def plan(self) -> Plan:
        """The plan of a run. Raises InputError for a sweep."""
        self.require_one()
        return self.points[0].plan

    @property
    def nothing_yet(self) -> Recording:
        """A Recording of the run, or of the sweep's first point, before it has begun."""
        plan = self.points[0].plan
        return Recording({}, plan.view, Metadata(self.name, int(plan.view["seed"]), "none", plan.sha256(), "", 0))

    @property
    def warnings(self) -> list[str]:
        """What of its axes does not reach every host."""
        return [
            f"axis '{axis.name}' does not change {', '.join(own)}: a setting there takes precedence"
            for axis in self.scenario.axes
            if (own := overrides(self.scenario, axis))
        ]

    def placed(self, error: EngineError) -> EngineError:
        """An engine's failure, behind where the scenario names what failed."""
        match error:
            case Unplayable():
                place = self.scenario.where_named(error.application)
            case ScriptFailed():
                place = self.scenario.where_named(error.script, error.source)
            case _:
                of = _APPLICATION.match(str(error))
                place = None if of is None else self.scenario.where_named(of["name"])
        return EngineError(f"{place}: {error}" if place else str(error))

    def require_one(self) -> None:
        """Raises InputError for a sweep."""
        if self.varies:
            names = ", ".join(f"'{axis.name}'" for axis in self.scenario.axes)
            them = "it" if len(self.scenario.axes) == 1 else "them"
            first = " ".join(
                f"--set '{path}={_text(value)}'"
                for place in self.points[0].combination
                for path, value in place.settings.items()
            )
            raise InputError(f"{self.name} varies {names}; this command works on one run: fix {them}, as with {first}")


def _text(value: Any) -> str:
    """As it is written behind --set."""
    return value if isinstance(value, str) else json.dumps(value)


def only(found: Sequence[Job], why: str) -> Job:
    """The one job of a target. Raises InputError, "WHY; choose with --run: ..", where there are several."""
    if len(found) > 1:
        names = ", ".join(job.name.rpartition("/")[2] for job in found)
        raise InputError(f"{why}; choose with --run: {names}")
    return found[0]


def _job(
    name: str,
    scenario: Scenario,
    axes: Sequence[str],
    seed: int | None,
    folder: str = ".",
    *files: Path,
    alone: bool = True,
    later: bool = False,
) -> Job:
    if alone and all(each.is_left_out for each in scenario.application):
        place = files[0] if len(files) == 1 else name
        raise InputError(f"{place}: the scenario has no application, so nothing runs; {_remedy(scenario)}")
    if seed is not None and any(axis.partition("=")[0].strip() in (SEED, SEEDS) for axis in axes):
        raise InputError("--seed gives one seed and --vary several; take one of them")
    varied = scenario.with_axes(axes)
    if seed is not None and varied.axes:
        # One seed takes the place of the axis, in the results' tables, too.
        varied = varied.with_settings([f"{SEED}={seed}"])
    return Job(name, varied, points(varied, seed, later=later), folder, (*files, *scenario.scripts()))


def _remedy(scenario: Scenario) -> str:
    return "give one a count above 0" if scenario.application else "add [[application]]"


def _require_apart(settings: Sequence[str], axes: Sequence[str]) -> None:
    """Raises InputError where a command fixes what it varies."""
    fixed = {setting.partition("=")[0].strip() for setting in settings}
    for axis in axes:
        for path in axis.partition("=")[0].split(","):
            if path.strip() in fixed:
                raise InputError(f"--set fixes {path.strip()}, and the command varies it; take one of both")


def of_lab(
    lab: labs.Lab,
    chosen: Sequence[str],
    settings: Sequence[str],
    seed: int | None,
    axes: Sequence[str] = (),
    *,
    alone: bool = True,
    later: bool = False,
) -> list[Job]:
    """A lab's runs, or those chosen. Raises InputError for a run that the lab does not define, and if none of its
    applications are to run `alone`.
    """
    several = len(lab.runs) > 1
    jobs = []
    for run in runs_of(lab, chosen):
        written = lab.at(run, lab.scenario())
        scenario = written.with_settings(list(settings))
        name = f"{lab.name}/{run.name}" if several else lab.name
        into = run.name if several else "."
        job = _job(name, scenario, axes, seed, into, *lab.inputs, alone=alone, later=later)
        brought = Brought.of(lab.folder / SCENARIO, written, job.scenario) if lab.own else None
        jobs.append(replace(job, brought=brought))
    return jobs


def runs_of(lab: labs.Lab, chosen: Sequence[str]) -> list[labs.LabRun]:
    """A lab's runs, or those chosen, in the lab's order. Raises InputError for a run that the lab does not define."""
    known = [run.name for run in lab.runs]
    for name in chosen:
        if name not in known:
            raise InputError(f"lab '{lab.name}' has no run '{name}'; it has {', '.join(known)}")
    return [run for run in lab.runs if not chosen or run.name in chosen]


def of_file(
    path: Path,
    settings: Sequence[str],
    seed: int | None,
    axes: Sequence[str] = (),
    *,
    alone: bool = True,
    later: bool = False,
) -> list[Job]:
    written = Scenario.load(path)
    scenario = written.with_settings(list(settings))
    job = _job(scenario.name, scenario, axes, seed, ".", path, alone=alone, later=later)
    return [replace(job, brought=Brought.of(path, written, job.scenario))]


def _of_path(
    path: Path, settings: Sequence[str], seed: int | None, axes: Sequence[str], *, alone: bool, later: bool
) -> list[Job]:
    """A scenario file, or that of a stored result by its folder."""
    if not path.is_dir():
        return of_file(path, settings, seed, axes, alone=alone, later=later)
    found = [each for each, _ in stored.found(path)]
    if not found:
        raise InputError(f"{path} has neither a lab.toml nor results; polypath new lab NAME writes a lab")
    if found != [path]:
        raise InputError(f"{path} has several results; name one: {', '.join(map(str, found))}")
    file = folder.located(path, layout.SCENARIO)
    plan = folder.located(path, layout.PLAN)
    if not file.exists():
        remedy = f"polypath run {plan} runs its plan" if plan.exists() else "name the folder of one of its points"
        raise InputError(f"{path} has no {layout.SCENARIO}; {remedy}")
    try:
        return of_file(file, settings, seed, axes, alone=alone, later=later)
    except ScenarioError as error:
        if not plan.exists() or settings or axes or not error.message.endswith("no such file"):
            raise
        raise InputError(f"{error}; polypath run {plan} runs without it") from error


def of_minitopo(
    topo: Path, xp: Path, settings: Sequence[str], seed: int | None, axes: Sequence[str] = ()
) -> tuple[list[Job], list[str]]:
    """The run of a minitopo pair, and the importer's warnings."""
    from polypath.formats import minitopo

    _require_apart(settings, axes)
    imported, warnings = minitopo.load(topo, xp)
    scenario = imported.with_settings(list(settings))
    return [_job(scenario.name, scenario, axes, seed, ".", topo, xp)], warnings


def of_target(
    target: str,
    chosen: Sequence[str],
    settings: Sequence[str],
    seed: int | None,
    axes: Sequence[str] = (),
    *,
    alone: bool = True,
    later: bool = False,
    dry: bool = False,
) -> list[Job]:
    """A lab by name or by its folder, else a scenario file.

    Not `alone`: something else runs beside its applications, if it has any. `later`: points without a plan are found by
    `sweep.run`. Unless `dry`, what a file brings along is told. Raises ScenarioError with the nearest lab where it is
    neither.
    """
    _require_apart(settings, axes)
    path = Path(target)
    lab = labs.find(target)
    if lab is None and (path.exists() or path.suffix == ".toml" or path.name != target):
        if chosen:
            raise InputError("--run chooses among a lab's runs; a scenario file is one run")
        found = _of_path(path, settings, seed, axes, alone=alone, later=later)
    else:
        found = of_lab(lab or labs.get(target), chosen, settings, seed, axes, alone=alone, later=later)
    if not dry:
        tell(found)
    return found


def tell(found: Sequence[Job]) -> None:
    """Says what files bring along, of each once."""
    told: list[Brought] = []
    for job in found:
        if job.brought is not None and job.brought not in told:
            job.brought.tell()
            told.append(job.brought)
