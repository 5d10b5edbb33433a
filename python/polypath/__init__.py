"""Polypath, a multipath transport lab.

scenario = polypath.Scenario.load(Path("scenario.toml"))
recording = polypath.run(scenario)
recording.table("subflows")          # a polars DataFrame
polypath.summary(recording)          # what summary.json holds
polypath.plots.rate(recording)       # matplotlib's axes
"""

from __future__ import annotations

import os
from importlib import import_module

#: That of typing would take longer to import than all of this module.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from polypath import labs, plots, sweep
    from polypath.capture import CaptureError
    from polypath.engines import EngineError
    from polypath.engines.base import Captures, Progress
    from polypath.errors import PolypathError
    from polypath.results import MetricError, OutputError, Recording, summary
    from polypath.scenario import Plan, Scenario, ScenarioError

    #: The version of the package.
    __version__: str

#: Where each name comes from. It is imported when it is first used, as is each of these parts.
_PARTS = {
    "CaptureError": "capture",
    "EngineError": "engines",
    "MetricError": "results",
    "OutputError": "results",
    "Plan": "scenario",
    "PolypathError": "errors",
    "Recording": "results",
    "Scenario": "scenario",
    "ScenarioError": "scenario",
    "summary": "results",
}
#: Parts that are used by their own name.
_MODULES = ("labs", "plots", "sweep")

if _native := os.environ.get("POLYPATH_CORE"):
    import_module("polypath.extension").install(_native)


if not TYPE_CHECKING:  # a module that has this would have every name

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            found = import_module("polypath._core").version()
        elif name in _PARTS.values() or name in _MODULES:
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
    segments: bool = False,
    account: bool = False,
    progress: Progress | None = None,
) -> Recording:
    """Runs a scenario; with `captures`, pcapng files go to `directory`.

    `seed` replaces the scenario's own; a plan has its seed. `qlogs` is a new or empty folder for a qlog of each side of
    each QUIC connection. `segments` records the table of segments, which time-sequence graphs need. `account` keeps an
    account of why connections were not faster (docs/explain.md). `progress` is called with the simulated time and the
    latest end of the run, in ns; by default, a notebook shows a bar.

    Raises ScenarioError for a scenario without a plan, or for a plan together with a seed. Raises EngineError if the
    engine cannot run it, or if captures have no directory.
    """
    from polypath.engines import EngineError, Options, get, require_captures
    from polypath.progress import of_run
    from polypath.scenario import Plan, ScenarioError

    require_captures(captures)
    if captures != "none" and directory is None:
        raise EngineError(f"captures of {captures} need a directory to go to")
    if isinstance(scenario, Plan) and seed is not None:
        raise ScenarioError("a plan has its seed: give this one to the scenario, as scenario.plan(SEED)")
    plan = scenario if isinstance(scenario, Plan) else scenario.plan(seed)
    options = Options(captures, directory, segments, qlogs, account=account)
    if progress is not None:
        return get(engine).run(plan, options, progress)
    with of_run(str(plan.view["name"])) as bar:
        return get(engine).run(plan, options, bar)


def trace(*files: Path | str, interval_ns: int | None = None, segments: bool = False) -> Recording:
    """What captures of real traffic tell, as the Recording of a run.

    Several files may be of the same traffic at different places. `interval_ns` is the time between samples, 100 ms if
    left out; with `segments` there is a row for each segment. What is damaged or missing in the files is said in
    `recording.plan["capture"]["notes"]`. Raises CaptureError.
    """
    from polypath import capture

    interval = capture.INTERVAL_NS if interval_ns is None else interval_ns
    return capture.trace(files, interval_ns=interval, segments=segments).recording


__all__ = [
    "CaptureError",
    "EngineError",
    "MetricError",
    "OutputError",
    "Plan",
    "PolypathError",
    "Recording",
    "Scenario",
    "ScenarioError",
    "__version__",
    "labs",
    "plots",
    "run",
    "summary",
    "sweep",
    "trace",
]
