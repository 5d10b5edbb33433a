"""Polypath, a multipath transport lab.

scenario = polypath.Scenario.load(Path("scenario.toml"))
recording = polypath.run(scenario)
recording.table("subflows")          # a polars DataFrame
polypath.summary(recording)          # what summary.json holds
"""

from __future__ import annotations

from pathlib import Path

from polypath import _core
from polypath.engines import EngineError, Options, get
from polypath.engines.base import Captures, Progress, no_progress
from polypath.results import OutputError, Recording, summary
from polypath.scenario import Plan, Scenario, ScenarioError

__version__ = _core.version()


def run(
    scenario: Scenario | Plan,
    *,
    seed: int | None = None,
    engine: str = "sim",
    captures: Captures = "none",
    directory: Path | None = None,
    progress: Progress = no_progress,
) -> Recording:
    """Runs a scenario; with `captures`, pcapng files go to `directory`.

    Raises ScenarioError for a scenario that has no plan, EngineError where the engine cannot run it.
    """
    plan = scenario if isinstance(scenario, Plan) else scenario.plan(seed)
    return get(engine).run(plan, Options(captures, directory), progress)


__all__ = [
    "EngineError",
    "OutputError",
    "Plan",
    "Recording",
    "Scenario",
    "ScenarioError",
    "__version__",
    "run",
    "summary",
]
