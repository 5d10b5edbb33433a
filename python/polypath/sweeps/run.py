"""Running sweeps: missing points are computed, existing ones are kept, and all of them become tables."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import polars as pl

from polypath import engines
from polypath.engines import EngineError
from polypath.progress import of_points
from polypath.recorded import Record
from polypath.results import folder, swept
from polypath.results.axes import SEED, Axis
from polypath.results.folder import Folder
from polypath.results.swept import SweptRun
from polypath.scenario import Plan, Scenario
from polypath.scenario.seeds import Seeds
from polypath.statistics import points as tables
from polypath.statistics.estimate import over_seeds
from polypath.sweeps import adaptive, executor, grid, store
from polypath.sweeps.executor import WorkerLost
from polypath.sweeps.grid import Point
from polypath.sweeps.journal import Journal, Keys
from polypath.sweeps.point import UNASKED, Failure, Packed, Save, Task, packed, placed, tabled

if TYPE_CHECKING:
    from polypath.plan.types import Application

#: Called with the number of points that are done and that of all.
Progress = Callable[[int, int], None]
_Rows = Sequence[Mapping[str, Any]]


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
    #: A row for each connection of each point that has a result (`polypath.statistics.points`).
    points: pl.DataFrame
    #: The same over seeds (`polypath.statistics.estimate`).
    statistics: pl.DataFrame
    #: The points without a result, and why.
    failures: Sequence[tuple[Point, str]]
    #: How many points had their result from an earlier call.
    kept: int
    #: All points, with the seeds that the scenario's `until` asked for.
    places: Sequence[Point] = ()
    #: What `until` asked for and is not so, in words.
    unmet: Sequence[str] = ()
    #: Where its points are stored; None: nowhere.
    directory: Path | None = None

    def __iter__(self) -> Iterator[SweptRun]:
        """Every run that has a result."""
        folders = {
            tuple(point.values[axis.name] for axis in self.axes): self.directory / point.folder
            for point in self.places
            if self.directory is not None
        }
        return swept.runs(self.points, self.axes, folders)

    @property
    def applications(self) -> Sequence[Application]:
        """What the plan of the first point says of each application."""
        return self.places[0].plan.view["applications"]

    def _repr_html_(self) -> str:
        return str(import_module("polypath.notebook").of_result(self))


def run(
    sweeps: Sequence[Sweep],
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    engine: str = "sim",
    record: Record = UNASKED,
    figures: Sequence[str] = (),
    save: Save | None = None,
    versions: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> list[Result]:
    """Runs the points of all sweeps on `jobs` cores (None: all of them); the result is the same for any number.

    `figures` are patterns of the files that `save` draws of each point, such as "rate.png" or "*.pdf". `progress` is
    called with the numbers of points done and to do; by default, a notebook shows a bar. With `cluster` the workers of
    a Dask scheduler run them, by its address, or Slurm jobs ("slurm"), with the same result.

    A point that fails is in `failures` and stops no other. A KeyboardInterrupt leaves every finished point in its
    folder. Raises OutputError if a directory cannot be written or is not the sweep's own. Raises EngineError for an
    unknown engine, unsupported captures, captures without a directory, and less than one job. It is also raised if the
    cluster is unreachable or lost.
    """
    engines.require(engine)
    engines.require_known(record)
    if jobs is not None and jobs < 1:
        raise EngineError(f"a sweep needs at least 1 job, not {jobs}")
    if (figures or any(record.in_files())) and (save is None or any(one.directory is None for one in sweeps)):
        raise EngineError("captures, qlogs and figures of a sweep need a directory to go to, and save")
    with ExitStack() as stack:
        if progress is None:
            progress = stack.enter_context(of_points(sweeps[0].name if len(sweeps) == 1 else f"{len(sweeps)} sweeps"))
        progress(0, sum(len(one.points) for one in sweeps))
        held = [None if one.directory is None else stack.enter_context(_claimed(one, one.directory)) for one in sweeps]
        known = {**_beside(engine), **(versions or {})}
        courses = [
            _Course(one, own, engine, known, record, figures, partial(_task, one, engine, record, tuple(figures), save))
            for one, own in zip(sweeps, held, strict=True)
        ]
        return _run(courses, jobs, cluster, progress)


def _run(courses: Sequence[_Course], jobs: int | None, cluster: str | None, progress: Progress) -> list[Result]:
    told = (0, sum(len(course.points) for course in courses))

    def note() -> None:
        nonlocal told
        before, told = told, (sum(course.done for course in courses), sum(len(course.points) for course in courses))
        if told != before:
            progress(*told)

    for course in courses:
        course.begin()
    try:
        growing: Sequence[_Course] = courses
        while growing:
            missing = [(course, place) for course in courses for place in course.missing()]
            note()
            with closing(_outcomes(_Tasks(missing), jobs, cluster)) as outcomes:
                for number, outcome in outcomes:
                    course, place = missing[number]
                    course.note(place, outcome)
                    note()
            growing = [course for course in courses if course.grow()]
    except BaseException:
        for course in courses:
            course.clean()
        with suppress(OSError):
            for course in courses:
                course.look()
            note()
            for course in courses:
                course.commit()
        raise
    for course in courses:
        course.clean()
    return [course.result() for course in courses]


@dataclass
class _Course:
    """A sweep under way: its points so far, and what is known of each."""

    sweep: Sweep
    held: Folder | None
    engine: str
    versions: Mapping[str, str]
    record: Record
    figures: Sequence[str]
    task: Callable[[Point], Task]
    points: Sequence[Point] = ()
    #: Of each point by its folder: its number among those with rows, or why it has none. The others are missing.
    states: dict[str, int | Failure] = field(default_factory=dict)
    rows: tables.Rows = field(default_factory=tables.Rows)
    #: How many points are not missing.
    done: int = 0
    journal: Journal | None = None

    def __post_init__(self) -> None:
        if self.held is not None:
            versions = {**self.versions, **_kernels(self.sweep.scenario)}
            keys = Keys(self.sweep.scenario, self.engine, versions, self.record, self.figures)
            self.journal = Journal(self.held.path, keys)
        self._take(self.sweep.points)
        self.kept = self.done

    def _take(self, points: Sequence[Point]) -> None:
        """Has these points, and looks for those of which nothing is known: in the journal, else in their folders."""
        self.points = points
        unknown = {point.folder: point for point in points if point.folder not in self.states}
        there: Collection[str] = ()
        if self.journal is not None:
            for point, rows in self.journal.recalled(unknown):
                self._finish(point, rows)
            there = {entry.name for entry in os.scandir(self.journal.directory)}
        for point in unknown.values():
            if point.folder in self.states:
                continue
            if point.folder not in there:
                grid.require_plans([point])
                continue
            task = self.task(point)
            if (found := store.finished(task, {**self.versions, **_of_plan(task.plan)})) is not None:
                self._finish(point, tables.of_point(found, task.plan.view), new=True)
        self.done = sum(point.folder in self.states for point in points)

    def _finish(self, point: Point, rows: _Rows, *, new: bool = False) -> None:
        number = len(self.states)
        self.states[point.folder] = number
        self.rows.put(number, rows)
        if new and self.journal is not None:
            self.journal.add(point, rows)

    def note(self, place: int, outcome: _Rows | Failure) -> None:
        """Takes what came of a point that was missing."""
        point = self.points[place]
        if isinstance(outcome, Failure):
            self.states[point.folder] = outcome
        else:
            self._finish(point, outcome, new=True)
        self.done += 1

    def missing(self) -> list[int]:
        return [place for place, point in enumerate(self.points) if point.folder not in self.states]

    def look(self) -> None:
        """A point may be complete of which nothing was heard."""
        self._take(self.points)

    def grow(self) -> bool:
        """Takes more seeds where the scenario asks for them; whether there are any."""
        seeds = self.sweep.scenario.adaptive
        if seeds is None:
            return False
        counts = adaptive.counts(seeds, self._intervals(seeds), Counter(map(_place, self.points)))
        if not counts:
            return False
        before = self.done
        grown = grid.grown(self.sweep.scenario, self.points, counts)
        if self.sweep.directory is not None:
            _require_not_read(self.sweep, self.sweep.directory, grown)
        self._take(grown)
        self.kept += self.done - before
        self.commit()
        return True

    def _intervals(self, seeds: Seeds) -> list[adaptive.Interval]:
        axes = grid.axes(self.sweep.scenario, self.points)
        return adaptive.intervals(seeds, self._table(axes), axes)

    def _table(self, axes: Sequence[Axis]) -> pl.DataFrame:
        found = [
            (point.values, state) for point in self.points if isinstance(state := self.states.get(point.folder), int)
        ]
        return self.rows.table(axes, [values for values, _ in found], [number for _, number in found])

    def _index(self) -> dict[str, Any]:
        axes = grid.axes(self.sweep.scenario, self.points)
        return store.index(self.sweep.name, self.engine, self.versions, axes, self.points, self.states)

    def begin(self) -> None:
        """Has the folder say what is known before anything runs."""
        if self.held is not None:
            store.begin(self.held, self._index(), self.sweep.scenario.stored())

    def commit(self) -> None:
        """Puts what is known into the folder's index."""
        if self.held is not None:
            self.held.commit(self._index(), keep=True)

    def clean(self) -> None:
        if self.journal is not None:
            self.journal.close()
        if self.kept < len(self.points):
            _clean(self.sweep)

    def result(self) -> Result:
        """What came of it, written where it is to be."""
        seeds = self.sweep.scenario.adaptive
        axes = grid.axes(self.sweep.scenario, self.points)
        points = self._table(axes)
        statistics = over_seeds(points, axes)
        failures = [
            (point, state.message)
            for point in self.points
            if isinstance(state := self.states.get(point.folder), Failure)
        ]
        if self.held is not None:
            store.write(self.held, self._index(), self.sweep.scenario.stored(), points, statistics)
        unmet = [] if seeds is None else adaptive.unmet(seeds, self._intervals(seeds))
        return Result(
            self.sweep.name,
            axes,
            points,
            statistics,
            failures,
            self.kept,
            tuple(self.points),
            unmet,
            self.sweep.directory,
        )


class _Tasks(Sequence[Task]):
    """The tasks of points, each made when it is wanted: a task holds the point's plan."""

    def __init__(self, of: Sequence[tuple[_Course, int]]) -> None:
        self._of = of

    def __len__(self) -> int:
        return len(self._of)

    @overload
    def __getitem__(self, number: int) -> Task: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Task]: ...
    def __getitem__(self, number: int | slice) -> Task | Sequence[Task]:
        if isinstance(number, slice):
            return _Tasks(self._of[number])
        course, place = self._of[number]
        return course.task(course.points[place])


def _place(point: Point) -> adaptive.Place:
    return tuple(label for axis, label in point.values.items() if axis != SEED)


def _outcomes(
    tasks: Sequence[Task], jobs: int | None, cluster: str | None
) -> Generator[tuple[int, _Rows | Failure], None, None]:
    """The rows of each task's point, with its position, written where it is to be."""
    if cluster is None:
        for number, outcome in executor.local(jobs, len(tasks)).map(tabled, tasks):
            yield number, Failure(str(outcome)) if isinstance(outcome, WorkerLost) else outcome
        return
    from polypath.sweeps.cluster import Cluster

    for number, found in Cluster(cluster, jobs).map(packed, tasks):
        if isinstance(found, Packed):
            task = tasks[number]
            summary = placed(task, found)
            yield number, summary if isinstance(summary, Failure) else tables.of_point(summary, task.plan.view)
        else:
            yield number, Failure(str(found)) if isinstance(found, WorkerLost) else found


def _beside(engine: str) -> Mapping[str, str]:
    """The versions of what takes part beside Polypath; none where that is not there, as each point then says."""
    try:
        return engines.get(engine).versions()
    except EngineError:
        return {}


def _of_plan(plan: Plan) -> Mapping[str, str]:
    """What takes part in a Plan's run only: kernels that its hosts name."""
    if not plan.view.get("kernels"):
        return {}
    from polypath.engines.linux.kernel import named

    try:
        return named.told(plan.view)
    except EngineError:
        return {}


def _kernels(scenario: Scenario) -> Mapping[str, str]:
    """The hashes of all kernels with names, where the scenario or an axis chooses one: each may be another by now."""
    paths = [path for axis in scenario.axes for path in axis.paths]
    if not any(host.kernel for host in scenario.host.values()) and not any(path.endswith(".kernel") for path in paths):
        return {}
    from polypath.engines.linux.kernel import named

    return {f"kernel {name}": kernel.sha256 for name, kernel in named.names().items()}


@contextmanager
def _claimed(sweep: Sweep, directory: Path) -> Iterator[Folder]:
    with folder.claim(directory, folder.SWEEP, sweep.inputs) as held:
        _require_not_read(sweep, directory, sweep.points)
        _clean(sweep)
        yield held


def _require_not_read(sweep: Sweep, directory: Path, points: Sequence[Point]) -> None:
    """Raises OutputError where a point's result holds an input, which is below `directory` or reached by a link."""
    if not sweep.inputs:
        return
    real = directory.resolve()
    linked = {entry.name for entry in os.scandir(real) if entry.is_symlink()}
    below = {path.resolve().relative_to(real).parts[0] for path in sweep.inputs if path.resolve().is_relative_to(real)}
    several = any(path.exists() and path.stat().st_nlink > 1 for path in sweep.inputs)
    for point in points:
        if several or point.folder in linked or point.folder in below:
            folder.require_not_read(directory / point.folder, folder.RUN, sweep.inputs)


def _clean(sweep: Sweep) -> None:
    """Removes what killed processes left half written in the points' folders."""
    if sweep.directory is not None:
        with os.scandir(sweep.directory) as entries:
            found = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        for name in found:
            folder.clean(sweep.directory / name)


def _task(sweep: Sweep, engine: str, record: Record, figures: tuple[str, ...], save: Save | None, point: Point) -> Task:
    if sweep.directory is None:
        return Task(_title(sweep, point), point.plan, engine=engine)
    directory = sweep.directory / point.folder
    return Task(
        _title(sweep, point),
        point.plan,
        point.scenario.stored(),
        engine,
        replace(record, segments=record.segments or bool(figures)),
        figures,
        directory,
        save,
        tuple(sweep.inputs),
    )


def _title(sweep: Sweep, point: Point) -> str:
    return f"{sweep.name} ({point.title})"
