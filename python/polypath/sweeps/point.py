"""One point of a sweep, computed and, if a folder is given, written there as a whole or not at all."""

from __future__ import annotations

import fnmatch
import json
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from polypath import engines
from polypath.engines import EngineError, Options
from polypath.engines.base import no_progress
from polypath.measures.summary import summary
from polypath.recorded import Record
from polypath.results import MetricError, OutputError, Recording, folder, layout
from polypath.results.folder import Folder
from polypath.results.recording import Written
from polypath.scenario import Plan
from polypath.statistics import points

#: Puts a recording and its scenario into a folder, with the captures that were staged there.
Save = Callable[[Recording, Written | None, Folder, Path], None]


#: A sweep keeps no accounts unless they are asked for.
UNASKED: Final = Record(account=False)


@dataclass(frozen=True)
class Task:
    """What a worker needs for one point."""

    name: str
    plan: Plan
    #: The scenario of the point, for its folder.
    scenario: Written | None = None
    engine: str = "sim"
    record: Record = UNASKED
    #: Patterns of files, each of which some figure has.
    figures: tuple[str, ...] = ()
    #: The point's folder; None: nothing is written.
    directory: Path | None = None
    save: Save | None = None
    #: The files that the scenario was read from.
    inputs: Sequence[Path] = ()

    def lacks(self, files: Collection[str]) -> bool:
        """Whether a result, which has these files, lacks some of what is asked for."""
        drawn = all(fnmatch.filter(files, f"{layout.PLOTS}/{figure}") for figure in self.figures)
        return not drawn or engines.missing(self.record, files, self.plan)


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


def tabled(task: Task) -> Sequence[Mapping[str, Any]] | Failure:
    """Runs a point and gives its rows in the sweep's table. Raises KeyboardInterrupt where it was stopped."""
    outcome = summarised(task)
    return outcome if isinstance(outcome, Failure) else points.of_point(outcome, task.plan.view)


@dataclass(frozen=True)
class Packed:
    """A point that was computed elsewhere: its summary, and the files of its folder by name."""

    summary: Mapping[str, Any]
    files: Mapping[str, bytes]


def packed(task: Task) -> Packed | Failure:
    """Runs a point away from its folder, and gives what belongs there."""
    with tempfile.TemporaryDirectory(prefix="polypath-") as place:
        directory = None if task.directory is None else Path(place) / "point"
        outcome = summarised(replace(task, directory=directory, inputs=()))
        if isinstance(outcome, Failure):
            return outcome
        paths = [] if directory is None else sorted(path for path in directory.rglob("*") if path.is_file())
        return Packed(
            outcome, {path.relative_to(place).relative_to("point").as_posix(): path.read_bytes() for path in paths}
        )


def placed(task: Task, outcome: Packed) -> Mapping[str, Any] | Failure:
    """Writes a packed point into its folder, as if it had been computed there; its summary."""
    if task.directory is None:
        return outcome.summary
    try:
        with folder.claim(task.directory, folder.RUN, task.inputs) as held:
            staged = held.stage()
            for name, content in outcome.files.items():
                if name != layout.MANIFEST:
                    path = staged / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)
            held.commit(json.loads(outcome.files[layout.MANIFEST]))
    except OutputError as error:
        return Failure(" ".join(str(error).split()))
    except OSError as error:
        return Failure(f"cannot write to {task.directory}: {error.strerror or error}")
    return outcome.summary


def recorded(task: Task) -> Recording | Failure:
    """Runs a point and gives its Recording. Raises KeyboardInterrupt where it was stopped."""
    try:
        return _run(task)
    except (EngineError, OutputError) as error:
        return Failure(" ".join(str(error).split()))


def _run(task: Task) -> Recording:
    if task.directory is None or task.save is None:
        return _finished(task, Options())
    with folder.claim(task.directory, folder.RUN, task.inputs) as held:
        staged = held.stage()
        recording = _finished(task, engines.into(task.record, task.plan, staged))
        task.save(recording, task.scenario, held, staged)
    return recording


def _finished(task: Task, options: Options) -> Recording:
    recording = engines.get(task.engine).run(task.plan, options, no_progress)
    if recording.metadata.interrupted:
        raise KeyboardInterrupt
    return replace(recording, metadata=replace(recording.metadata, scenario=task.name))
