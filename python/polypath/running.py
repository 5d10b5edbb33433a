"""One run with everything that its result folder holds: what `polypath run --out` and `polypath.run(out=..)` share."""

from __future__ import annotations

from dataclasses import replace

from polypath.engines import Engine, Progress, into
from polypath.recorded import Record
from polypath.results import Recording
from polypath.results.folder import Folder
from polypath.results.recording import Written
from polypath.scenario import Plan, Scenario


def run(
    name: str, plan: Plan, scenario: Scenario | None, engine: Engine, record: Record, held: Folder, progress: Progress
) -> Recording:
    """Runs a plan and commits its result to a folder. Raises EngineError and OutputError."""
    # read before the run, which takes longer than to change a file
    frozen = None if scenario is None else of_plan(scenario, plan).stored()
    staged = held.stage()
    recording = named(engine.run(plan, into(record, plan, staged), progress), name, frozen)
    recording.commit(held, staged)
    return named(recording, name, scenario)


def of_plan(scenario: Scenario, plan: Plan) -> Scenario:
    """The scenario with the seed of its plan, which a command may have given."""
    seed = int(plan.view["seed"])
    return scenario if scenario.seed == seed else scenario.model_copy(update={"seed": seed})


def named(recording: Recording, name: str, scenario: Written | None) -> Recording:
    """A recording that knows what was run."""
    metadata = replace(recording.metadata, scenario=name)
    return replace(recording, metadata=metadata, scenario=scenario)
