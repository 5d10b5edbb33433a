"""Polypath, a multipath transport lab.

scenario = polypath.Scenario.load(Path("scenario.toml"))
recording = polypath.run(scenario)
recording.table("subflows")          # a polars DataFrame
polypath.summary(recording)          # what summary.json holds
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polypath.engines import EngineError
    from polypath.engines.base import Captures, Progress
    from polypath.results import OutputError, Recording, summary
    from polypath.scenario import Plan, Scenario, ScenarioError

    __version__: str

#: Where each name comes from. It is imported when it is first used, as is each of these parts.
_PARTS = {
    "EngineError": "engines",
    "OutputError": "results",
    "Plan": "scenario",
    "Recording": "results",
    "Scenario": "scenario",
    "ScenarioError": "scenario",
    "summary": "results",
}


if not TYPE_CHECKING:  # a module that has this would have every name

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            found = import_module("polypath._core").version()
        elif name in _PARTS.values():
            found = import_module(f"polypath.{name}")
        elif name in _PARTS:
            found = getattr(import_module(f"polypath.{_PARTS[name]}"), name)
        else:
            raise AttributeError(f"module 'polypath' has no attribute '{name}'")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def run(
    scenario: Scenario | Plan,
    *,
    seed: int | None = None,
    engine: str = "sim",
    captures: Captures = "none",
    directory: Path | None = None,
    qlogs: Path | None = None,
    progress: Progress | None = None,
) -> Recording:
    """Runs a scenario; with `captures`, pcapng files go to `directory`.

    With `qlogs`, a new or empty folder, a qlog of each side of each connection of QUIC goes there.

    Raises ScenarioError for a scenario that has no plan, EngineError where the engine cannot run it.
    """
    from polypath.engines import Options, get
    from polypath.engines.base import no_progress
    from polypath.scenario import Plan

    plan = scenario if isinstance(scenario, Plan) else scenario.plan(seed)
    return get(engine).run(plan, Options(captures, directory, qlogs=qlogs), progress or no_progress)


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
