"""Running sweeps: what is missing is computed, what is there is kept, and all of it becomes tables."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from polypath import engines
from polypath.engines import Captures, EngineError
from polypath.progress import of_points
from polypath.results import folder
from polypath.results import points as tables
from polypath.results.folder import Folder
from polypath.results.points import Axis
from polypath.results.statistics import over_seeds
from polypath.scenario import Scenario
from polypath.sweep import executor, grid, store
from polypath.sweep.executor import WorkerLost
from polypath.sweep.grid import Point
from polypath.sweep.point import Failure, Packed, Save, Task, Wanted, packed, placed, summarised

#: Called with the number of points that are done and that of all.
Progress = Callable[[int, int], None]
_State = Mapping[str, Any] | Failure | None


@dataclass(frozen=True)
class Sweep:
    """A scenario with axes, its points, and where their results go (None: nowhere)."""

    name: str
    scenario: Scenario
    points: Sequence[Point]
    directory: Path | None = None
    #: The files that the scenario was read from; a result never replaces one.
    inputs: Sequence[Path] = ()

    def _repr_html_(self) -> str:
        return str(import_module("polypath.notebook").of_sweep(self))


@dataclass(frozen=True)
class Result:
    """What came of a sweep."""

    name: str
    axes: Sequence[Axis]
    #: A row for each connection of each point that has a result (`polypath.results.points`).
    points: pl.DataFrame
    #: The same over seeds (`polypath.results.statistics`).
    statistics: pl.DataFrame
    #: The points without a result, and why.
    failures: Sequence[tuple[Point, str]]
    #: How many points had their result from an earlier call.
    kept: int

    def _repr_html_(self) -> str:
        return str(import_module("polypath.notebook").of_result(self))


def run(
    sweeps: Sequence[Sweep],
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    engine: str = "sim",
    captures: Captures = "none",
    qlogs: bool = False,
    figures: bool = False,
    save: Save | None = None,
    versions: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> list[Result]:
    """Runs the points of all sweeps on `jobs` cores (None: all of them); the result is the same for any number.

    `progress` is called with the numbers of points done and to do; left out, a notebook shows a bar.
    With `cluster` the workers of a Dask scheduler run them, by its address, or Slurm jobs ("slurm"); the result is the
    same again.

    A point that fails is in `failures` and stops no other. A KeyboardInterrupt leaves every finished point in its
    folder. Raises OutputError where a directory cannot be written, or is not the sweep's own, and
    EngineError where there is no such engine, no such captures, no place for them, no job, or the cluster cannot be
    had or is lost.
    """
    engines.require(engine)
    engines.require_captures(captures)
    if jobs is not None and jobs < 1:
        raise EngineError(f"a sweep needs at least 1 job, not {jobs}")
    wanted = Wanted(captures, qlogs, figures)
    if wanted != Wanted() and (save is None or any(one.directory is None for one in sweeps)):
        raise EngineError("captures, qlogs and figures of a sweep need a directory to go to, and save")
    with ExitStack() as stack:
        held = [None if one.directory is None else stack.enter_context(_claimed(one, one.directory)) for one in sweeps]
        tasks = [[_task(sweep, point, engine, wanted, save) for point in sweep.points] for sweep in sweeps]
        if progress is None:
            progress = stack.enter_context(of_points(sweeps[0].name if len(sweeps) == 1 else f"{len(sweeps)} sweeps"))
        return _run(sweeps, tasks, held, jobs, cluster, engine, dict(versions or {}), progress)


def _run(
    sweeps: Sequence[Sweep],
    tasks: Sequence[Sequence[Task]],
    held: Sequence[Folder | None],
    jobs: int | None,
    cluster: str | None,
    engine: str,
    known: Mapping[str, str],
    progress: Progress,
) -> list[Result]:
    states: list[list[_State]] = [[store.finished(task, known) for task in own] for own in tasks]
    kept = [sum(state is not None for state in own) for own in states]

    def index(which: int) -> dict[str, Any]:
        sweep = sweeps[which]
        return store.index(sweep.name, engine, known, grid.axes(sweep.scenario), sweep.points, states[which])

    for which, own in enumerate(held):
        if own is not None:
            own.commit(index(which), keep=True)
    missing = [(which, place) for which, own in enumerate(states) for place, state in enumerate(own) if state is None]
    total, done = sum(map(len, states)), sum(kept)
    progress(done, total)
    try:
        with closing(_outcomes([tasks[which][place] for which, place in missing], jobs, cluster)) as outcomes:
            for number, outcome in outcomes:
                which, place = missing[number]
                states[which][place] = outcome
                done += 1
                progress(done, total)
    except BaseException:
        _clean(sweeps)
        with suppress(OSError):
            # a point may be complete of which nothing was heard
            states = [
                [
                    store.finished(task, known) if state is None else state
                    for task, state in zip(own, there, strict=True)
                ]
                for own, there in zip(tasks, states, strict=True)
            ]
            progress(sum(state is not None for own in states for state in own), total)
            for which, own in enumerate(held):
                if own is not None:
                    own.commit(index(which), keep=True)
        raise
    _clean(sweeps)
    results = []
    for which, (sweep, own) in enumerate(zip(sweeps, held, strict=True)):
        result = _result(sweep, states[which], kept[which])
        if own is not None:
            store.write(own, index(which), result.points, result.statistics)
        results.append(result)
    return results


def _outcomes(
    tasks: Sequence[Task], jobs: int | None, cluster: str | None
) -> Generator[tuple[int, Mapping[str, Any] | Failure], None, None]:
    """What comes of each task, with its position, written where it is to be."""
    if cluster is None:
        for number, outcome in executor.local(jobs, len(tasks)).map(summarised, tasks):
            yield number, Failure(str(outcome)) if isinstance(outcome, WorkerLost) else outcome
        return
    from polypath.sweep.cluster import Cluster

    for number, found in Cluster(cluster, jobs).map(packed, tasks):
        if isinstance(found, Packed):
            yield number, placed(tasks[number], found)
        else:
            yield number, Failure(str(found)) if isinstance(found, WorkerLost) else found


@contextmanager
def _claimed(sweep: Sweep, directory: Path) -> Iterator[Folder]:
    with folder.claim(directory, folder.SWEEP, sweep.inputs) as held:
        for point in sweep.points:
            folder.require_not_read(directory / point.folder, folder.RUN, sweep.inputs)
        _clean([sweep])
        yield held


def _clean(sweeps: Sequence[Sweep]) -> None:
    """Removes what killed processes left half written in the points' folders."""
    for sweep in sweeps:
        if sweep.directory is not None:
            for path in sorted(sweep.directory.iterdir()):
                folder.clean(path)


def _task(sweep: Sweep, point: Point, engine: str, wanted: Wanted, save: Save | None) -> Task:
    if sweep.directory is None:
        return Task(_title(sweep, point), point.plan, engine=engine)
    directory = sweep.directory / point.folder
    return Task(
        _title(sweep, point),
        point.plan,
        point.scenario.to_toml(),
        engine,
        wanted,
        directory,
        save,
        tuple(sweep.inputs),
    )


def _title(sweep: Sweep, point: Point) -> str:
    return f"{sweep.name} ({point.title})"


def _result(sweep: Sweep, states: Sequence[_State], kept: int) -> Result:
    axes = grid.axes(sweep.scenario)
    pairs = list(zip(sweep.points, states, strict=True))
    found = [
        (point.values, tables.rows(state, point.plan.view))
        for point, state in pairs
        if state is not None and not isinstance(state, Failure)
    ]
    points = tables.table(axes, found)
    statistics = over_seeds(points, axes)
    failures = [(point, state.message) for point, state in pairs if isinstance(state, Failure)]
    return Result(sweep.name, axes, points, statistics, failures, kept)
