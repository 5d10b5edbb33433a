"""Running sweeps: what is missing is computed, what is there is kept, and all of it becomes tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from polypath.engines import Captures
from polypath.results import layout
from polypath.results import points as tables
from polypath.results.points import Axis
from polypath.results.statistics import over_seeds
from polypath.scenario import Scenario
from polypath.sweep import executor, grid, store
from polypath.sweep.executor import WorkerLost
from polypath.sweep.grid import Point
from polypath.sweep.point import Failure, Save, Task, summarised, sweep_partials

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


def run(
    sweeps: Sequence[Sweep],
    *,
    jobs: int | None = None,
    engine: str = "sim",
    captures: Captures = "none",
    save: Save | None = None,
    versions: Mapping[str, str] | None = None,
    progress: Progress = lambda done, total: None,
) -> list[Result]:
    """Runs the points of all sweeps on `jobs` cores (None: all of them); the result is the same for any number.

    A point that fails is in `failures` and stops no other. A KeyboardInterrupt leaves every finished point in its
    folder. Raises OutputError where a directory cannot be written.
    """
    known = dict(versions or {})
    tasks = [[_task(sweep, point, engine, captures, save) for point in sweep.points] for sweep in sweeps]
    for sweep in sweeps:
        if sweep.directory is not None:
            layout.clear(sweep.directory)
            sweep_partials(sweep.directory)
    states: list[list[_State]] = [[store.finished(task, known) for task in own] for own in tasks]
    kept = [sum(state is not None for state in own) for own in states]
    _index(sweeps, engine, known, states)
    missing = [(which, place) for which, own in enumerate(states) for place, state in enumerate(own) if state is None]
    total, done = sum(map(len, states)), sum(kept)
    progress(done, total)
    chosen = executor.local(jobs, len(missing))
    try:
        with closing(chosen.map(summarised, [tasks[which][place] for which, place in missing])) as outcomes:
            for index, outcome in outcomes:
                which, place = missing[index]
                states[which][place] = Failure(str(outcome)) if isinstance(outcome, WorkerLost) else outcome
                done += 1
                progress(done, total)
    finally:
        for sweep in sweeps:
            if sweep.directory is not None:
                sweep_partials(sweep.directory)
    _index(sweeps, engine, known, states)
    return [_result(sweep, own, count) for sweep, own, count in zip(sweeps, states, kept, strict=True)]


def _task(sweep: Sweep, point: Point, engine: str, captures: Captures, save: Save | None) -> Task:
    if sweep.directory is None:
        return Task(_title(sweep, point), point.plan, engine=engine)
    directory = sweep.directory / point.folder
    return Task(_title(sweep, point), point.plan, point.scenario.to_toml(), engine, captures, directory, save)


def _title(sweep: Sweep, point: Point) -> str:
    return f"{sweep.name} ({point.title})"


def _index(
    sweeps: Sequence[Sweep], engine: str, versions: Mapping[str, str], states: Sequence[Sequence[_State]]
) -> None:
    for sweep, own in zip(sweeps, states, strict=True):
        if sweep.directory is not None:
            axes = grid.axes(sweep.scenario)
            store.write_index(sweep.directory, sweep.name, engine, versions, axes, sweep.points, own)


def _result(sweep: Sweep, states: Sequence[_State], kept: int) -> Result:
    axes = grid.axes(sweep.scenario)
    pairs = list(zip(sweep.points, states, strict=True))
    found = [
        (point.values, tables.rows(state, point.plan.data))
        for point, state in pairs
        if state is not None and not isinstance(state, Failure)
    ]
    points = tables.table(axes, found)
    statistics = over_seeds(points, axes)
    if sweep.directory is not None:
        store.write_tables(sweep.directory, points, statistics)
    failures = [(point, state.message) for point, state in pairs if isinstance(state, Failure)]
    return Result(sweep.name, axes, points, statistics, failures, kept)
