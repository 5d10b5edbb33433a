"""One point of a sweep, computed and, where a folder is given, written there whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from polypath import engines
from polypath.engines import Captures, EngineError, Options
from polypath.engines.base import no_progress
from polypath.results import MetricError, OutputError, Recording, layout, summary
from polypath.results.files import PARTIAL
from polypath.scenario import Plan

#: Writes a recording, with its captures where there are some, into a directory.
Save = Callable[[Recording, str, Path | None, Path], None]


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
    partial = task.directory.with_name(f".{task.directory.name}.{os.getpid()}{PARTIAL}")
    try:
        folder = None if task.captures == "none" else partial / layout.CAPTURE
        (partial if folder is None else folder).mkdir(parents=True)
        recording = _finished(task, folder)
        task.save(recording, task.scenario, folder, partial)
        _make_way(task.directory)
        partial.replace(task.directory)
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"cannot write {task.directory}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return recording


def _make_way(directory: Path) -> None:
    """Removes an earlier result, which its manifest or plan tells; an empty directory is replaced by a rename."""
    if any((directory / name).exists() for name in (layout.MANIFEST, layout.PLAN)):
        shutil.rmtree(directory)
    elif directory.exists() and any(directory.iterdir()):
        raise OutputError(f"{directory} is in the way and no result of a run")


def _finished(task: Task, captures: Path | None) -> Recording:
    recording = engines.get(task.engine).run(task.plan, Options(task.captures, captures), no_progress)
    if recording.metadata.interrupted:
        raise KeyboardInterrupt
    return replace(recording, metadata=replace(recording.metadata, scenario=task.name))


def sweep_partials(directory: Path) -> None:
    """Removes what processes that are no more have left half written in the directory."""
    for path in directory.glob(f".*{PARTIAL}"):
        owner = path.name.removesuffix(PARTIAL).rpartition(".")[2]
        if path.is_dir() and owner.isdecimal() and not _alive(int(owner)):
            shutil.rmtree(path, ignore_errors=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
