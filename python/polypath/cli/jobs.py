"""What is to be run: the runs that a command's arguments stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from polypath import labs
from polypath.cli.errors import InputError
from polypath.formats import minitopo
from polypath.scenario import Plan, Scenario


@dataclass(frozen=True)
class Job:
    """One run: a scenario with every setting made, its plan, and where results go below the output directory."""

    name: str
    scenario: Scenario
    plan: Plan
    folder: str = "."


def of_lab(lab: labs.Lab, chosen: Sequence[str], settings: Sequence[str], seed: int | None) -> list[Job]:
    """A lab's runs, or those chosen. Raises InputError for a run that the lab has not."""
    known = [run.name for run in lab.runs]
    for name in chosen:
        if name not in known:
            raise InputError(f"lab '{lab.name}' has no run '{name}'; it has {', '.join(known)}")
    several = len(known) > 1
    jobs = []
    for run in lab.runs:
        if not chosen or run.name in chosen:
            scenario = lab.scenario().with_settings([*run.settings, *settings])
            name = f"{lab.name}/{run.name}" if several else lab.name
            jobs.append(Job(name, scenario, scenario.plan(seed), run.name if several else "."))
    return jobs


def of_file(path: Path, settings: Sequence[str], seed: int | None) -> list[Job]:
    scenario = Scenario.load(path).with_settings(list(settings))
    plan = scenario.plan(seed)
    return [Job(str(plan.data["name"]), scenario, plan)]


def of_minitopo(topo: Path, xp: Path, settings: Sequence[str], seed: int | None) -> tuple[list[Job], list[str]]:
    """The run of a minitopo pair, and the importer's warnings."""
    imported, warnings = minitopo.load(topo, xp)
    scenario = imported.with_settings(list(settings))
    plan = scenario.plan(seed)
    return [Job(str(plan.data["name"]), scenario, plan)], warnings


def of_target(target: str, chosen: Sequence[str], settings: Sequence[str], seed: int | None) -> list[Job]:
    """A lab by name, else a scenario file. Raises ScenarioError with the nearest lab where it is neither."""
    if target in labs.catalogue():
        return of_lab(labs.get(target), chosen, settings, seed)
    path = Path(target)
    if path.exists() or path.suffix == ".toml" or path.name != target:
        if chosen:
            raise InputError("--run chooses among a lab's runs; a scenario file is one run")
        return of_file(path, settings, seed)
    return of_lab(labs.get(target), chosen, settings, seed)
