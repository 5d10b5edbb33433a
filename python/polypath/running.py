"""One run with everything that its result folder holds: what `polypath run --out` and `polypath.run(out=..)` share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from polypath.engines import Captures, Engine, Options, Progress
from polypath.results import OutputError, Recording, account, layout
from polypath.results.folder import Folder
from polypath.results.recording import Written
from polypath.scenario import Plan, Scenario


@dataclass(frozen=True)
class Kept:
    """What is recorded beside the tables that each run has."""

    #: Where captures are taken.
    captures: Captures = "none"
    #: A qlog of each side of each connection of QUIC.
    qlogs: bool = False
    #: A row for each segment.
    segments: bool = False
    #: The account of why connections were not faster; None: unless there are too many connections to read.
    account: bool | None = None


def run(
    name: str, plan: Plan, scenario: Scenario | None, engine: Engine, kept: Kept, held: Folder, progress: Progress
) -> Recording:
    """Runs a plan and commits its result to a folder. Raises EngineError and OutputError."""
    # read before the run, which takes longer than to change a file
    frozen = None if scenario is None else of_plan(scenario, plan).stored()
    staged = held.stage()
    options = Options(
        kept.captures,
        None if kept.captures == "none" else captures(staged),
        kept.segments,
        staged / layout.QLOG if kept.qlogs and plan.has_quic else None,
        staged / layout.PROGRAMS if plan.view.get("programs") else None,
        account=account.is_read(plan.view) if kept.account is None else kept.account,
    )
    recording = named(engine.run(plan, options, progress), name, frozen)
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


def captures(staged: Path) -> Path:
    """The folder for a run's captures in one for a result. Raises OutputError."""
    folder = staged / layout.CAPTURE
    try:
        folder.mkdir()
    except OSError as error:
        raise OutputError(f"cannot write captures: {error.strerror or error}") from error
    return folder
