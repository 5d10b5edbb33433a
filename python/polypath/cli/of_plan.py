"""A run of which only the plan is known: `polypath run plan.json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from polypath import engines
from polypath.cli.brought import tell_of
from polypath.cli.errors import InputError
from polypath.engines import EngineError
from polypath.results import layout, reading
from polypath.results.files import OutputError
from polypath.scenario import Plan, Scenario, ScenarioError
from polypath.scenario.carried import code
from polypath.scenario.plan import VERSION

SUFFIX: Final = ".json"


@dataclass(frozen=True)
class PlanJob:
    """A run of a plan, and its scenario where that stands beside it and has this plan."""

    name: str
    plan: Plan
    scenario: Scenario | None
    inputs: Sequence[Path]
    folder: str = "."

    @property
    def plans(self) -> Iterator[Plan]:
        yield self.plan

    def placed(self, error: EngineError) -> EngineError:
        return error


def read(path: Path) -> Plan:
    """The plan in a file. Raises ScenarioError where it is none that runs, OutputError for one that is too large."""
    try:
        data = reading.data(path)
    except OutputError:
        raise
    except OSError as error:
        raise ScenarioError(error.strerror or str(error), str(path)) from error
    except ValueError as error:
        raise ScenarioError("this is no plan: not JSON", str(path)) from error
    if not isinstance(data, dict) or data.get("version") != VERSION:
        raise ScenarioError(f"this is no plan of version {VERSION}, as a result's {layout.PLAN} is", str(path))
    if "capture" in data:
        raise ScenarioError("this plan tells what captures show, and nothing can run it", str(path))
    try:
        plan = Plan(data)
        engines.check(plan)
    except (EngineError, ValueError, TypeError, AttributeError) as error:
        raise ScenarioError(f"the simulator cannot run this plan: {' '.join(str(error).split())}", str(path)) from error
    return plan


def job(path: Path, given: Mapping[str, bool]) -> PlanJob:
    """The run of a plan's file; `given` says which options were, none of which a plan takes. Tells of the code in it.

    Raises InputError, ScenarioError and OutputError.
    """
    for option, is_given in given.items():
        if is_given:
            raise InputError(f"{option} changes a scenario, and {path} is a plan; run the scenario that it was made of")
    plan = read(path)
    tell_of(path, code(plan))
    return PlanJob(str(plan.view["name"]), plan, _beside(path, plan), [path])


def _beside(path: Path, plan: Plan) -> Scenario | None:
    """The scenario in the same folder, if the plan is made of it."""
    try:
        found = Scenario.load(path.with_name(layout.SCENARIO))
        return found if not found.vary and found.plan() == plan else None
    except ScenarioError:
        return None
