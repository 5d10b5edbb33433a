"""One point of a sweep, computed and, where a folder is given, written there whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from polypath import engines
from polypath.engines import Captures, EngineError, Options
from polypath.engines.base import no_progress
from polypath.results import MetricError, OutputError, Recording, folder, layout, summary
from polypath.results.folder import Folder
from polypath.scenario import Plan

#: Puts a recording and its scenario into a folder, with the captures that were staged there.
Save = Callable[[Recording, str, Folder, Path], None]


@dataclass(frozen=True)
class Task:
    """What a worker needs for one point."""

    name: str
    plan: Plan
    #: The scenario of the point, for its folder.
    scenario: str = ""
    engine: str = "sim"
    captures: Captures = "none"
    #: The point's folder; None: nothing is written.
    directory: Path | None = None
    save: Save | None = None
    #: Whether figures belong to the result.
    figures: bool = False
    #: The files that the scenario was read from.
    inputs: Sequence[Path] = ()


@dataclass(frozen=True)
class Failure:
    """Why a point has no result, in one line."""

    message: str

    def __str__(self) -> str:
        return self.message


def summarised(task: Task) -> Mapping[str, Any] | Failure:
    """Runs a point and gives its summary, as summary.json holds it. Raises KeyboardInterrupt where it was stopped."""
    try:
        recording = _run(task)
    except (EngineError, OutputError, MetricError) as error:
        return Failure(" ".join(str(error).split()))
    return summary(recording)


def recorded(task: Task) -> Recording | Failure:
    """Runs a point and gives its Recording. Raises KeyboardInterrupt where it was stopped."""
    try:
        return _run(task)
    except (EngineError, OutputError) as error:
        return Failure(" ".join(str(error).split()))


def _run(task: Task) -> Recording:
    if task.directory is None or task.save is None:
        return _finished(task, None)
    with folder.claim(task.directory, folder.RUN, task.inputs) as held:
        staged = held.stage()
        captures = None if task.captures == "none" else staged / layout.CAPTURE
        if captures is not None:
            captures.mkdir()
        recording = _finished(task, captures)
        task.save(recording, task.scenario, held, staged)
    return recording


def _finished(task: Task, captures: Path | None) -> Recording:
    options = Options(task.captures, captures, segments=task.figures)
    recording = engines.get(task.engine).run(task.plan, options, no_progress)
    if recording.metadata.interrupted:
        raise KeyboardInterrupt
    return replace(recording, metadata=replace(recording.metadata, scenario=task.name))
