"""Running what a bundle holds again, and comparing hash by hash."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import polars as pl

from polypath import engines
from polypath.bundles import layout, tables
from polypath.bundles.errors import BundleError
from polypath.bundles.results import Result, Run, read
from polypath.engines import EngineError
from polypath.measures.summary import summary, to_json
from polypath.recorded import Record
from polypath.results import MetricError, OutputError, Recording, folder, reading
from polypath.results import layout as places
from polypath.results.files import write_table
from polypath.results.recording import AsWritten, write_scenario
from polypath.scenario import Plan, Scenario, ScenarioError, files
from polypath.scenario.carried import code
from polypath.statistics import points
from polypath.statistics.estimate import over_seeds
from polypath.sweeps.point import Failure

#: What is compared of each run, in order.
PARTS: Final = ("plan", "scenario", "recording", "figures")
#: Engines whose runs are no function of their plan, and why.
UNREPEATABLE: Final[Mapping[str, str]] = {
    "live": "engine live runs in real time, and no two runs are alike",
    "capture": "it is what captures tell, and no run makes it",
}


@dataclass(frozen=True)
class Pair:
    """A hash of the bundle, and the same of the rerun; in its place why there is none."""

    before: str
    after: str | None
    reason: str = ""

    @property
    def same(self) -> bool:
        return self.before == self.after


@dataclass(frozen=True)
class Task:
    """A run of an unpacked bundle, and the folder for it."""

    title: str
    engine: str
    run: Run
    into: Path
    #: Whether it is a point of a sweep, which keeps no account.
    of_sweep: bool


@dataclass(frozen=True)
class Again:
    """What came of a run: its hashes by PARTS, and its rows in a sweep's table."""

    pairs: Mapping[str, Pair]
    rows: Sequence[Mapping[str, Any]] = ()


@dataclass
class Outcome:
    """What came of a result."""

    name: str
    #: Why it was not run.
    reason: str = ""
    #: Whether that is as good as can be.
    excused: bool = False
    #: The hashes of each run, by its name.
    runs: dict[str, Mapping[str, Pair]] = field(default_factory=dict)
    tables: dict[str, Pair] = field(default_factory=dict)
    #: Of a sweep, the rows of each point in its table.
    rows: dict[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)

    def note(self, run: str, came: Again) -> None:
        self.runs[run], self.rows[run] = came.pairs, came.rows

    def note_failure(self, run: str, recording_sha256: str, reason: str) -> None:
        self.runs[run] = {"recording": Pair(recording_sha256, None, reason)}

    @property
    def same(self) -> bool:
        """Whether nothing differs that was to be the same."""
        if self.reason:
            return self.excused
        found = [*self.tables.values(), *(pair for pairs in self.runs.values() for pair in pairs.values())]
        return all(each.same for each in found)


def of_index(index: Mapping[str, Any], unpacked: Path) -> list[Result]:
    """The results of an unpacked bundle. Raises OutputError for a folder that is none."""
    found = []
    for each in index["results"]:
        directory = unpacked / each["folder"]
        kind = next((kind for kind in (folder.RUN, folder.SWEEP) if (directory / kind.marker).is_file()), None)
        if kind is None:
            raise OutputError(f"{each['folder']} of the bundle is no result")
        found.append(Result(directory, each["folder"].removeprefix(f"{layout.RESULTS}/"), kind))
    return found


def why_not(result: Result) -> tuple[str, bool]:
    """Why a result cannot be run here, and whether nobody could; empty: it can."""
    if result.engine in UNREPEATABLE:
        return UNREPEATABLE[result.engine], True
    try:
        engines.get(result.engine).versions()
    except EngineError as error:
        return f"engine {result.engine}: {error}", False
    return "", False


def tasks(result: Result, into: Path) -> list[Task]:
    """The runs of a result, each with its folder below `into`."""
    return [
        Task(
            result.name if run.name == "." else f"{result.name}/{run.name}",
            result.engine,
            run,
            into / result.name / run.name,
            not result.is_run,
        )
        for run in result.runs
    ]


def run(task: Task) -> Again | Failure:
    """Runs a plan again and keeps the result. Raises KeyboardInterrupt where it was stopped."""
    try:
        plan = plan_of(task.run)
        engines.check(plan)
        pairs = {"plan": Pair(task.run.manifest.plan_sha256, plan.sha256())}
        pairs |= _scenario(task.run.directory, plan)
        recording = _recording(task, plan)
        figures = summary(recording)
    except (BundleError, EngineError, MetricError, OutputError) as error:
        return Failure(" ".join(str(error).split()))
    pairs["recording"] = Pair(task.run.manifest.recording_sha256, recording.metadata.recording_sha256)
    before = task.run.files.get(places.SUMMARY, "")
    pairs["figures"] = Pair(before, hashlib.sha256(to_json(figures).encode()).hexdigest())
    return Again(pairs, points.of_point(figures, plan.view) if task.of_sweep else ())


def plan_of(run: Run) -> Plan:
    """The plan of a run. Raises OutputError."""
    plan: Plan = read(run.directory, lambda: Plan(reading.data(run.plan)))
    return plan


def code_of(run: Run) -> Mapping[str, str]:
    """The code in a run's plan, by the names of its files. Raises OutputError."""
    plan = plan_of(run)
    found: Mapping[str, str] = read(run.directory, lambda: code(plan))
    return found


def _scenario(directory: Path, plan: Plan) -> dict[str, Pair]:
    """Whether the scenario in a folder has this plan; nothing where there is none."""
    path = directory / places.SCENARIO
    if not path.is_file():
        return {}
    try:
        named = files.named(tomllib.loads(path.read_text(encoding="utf-8")))
        if beyond := files.outside((path.parent / each.file for each in named), directory):
            reason = f"it names {beyond[0]}, which is not in the bundle"
            return {"scenario": Pair(plan.sha256(), None, reason)}
        return {"scenario": Pair(plan.sha256(), Scenario.load(path).plan().sha256())}
    except (ScenarioError, OSError, ValueError, RecursionError) as error:
        return {"scenario": Pair(plan.sha256(), None, " ".join(str(error).split()))}


def _recording(task: Task, plan: Plan) -> Recording:
    record = Record(
        segments=any(name.startswith(f"{places.PLOTS}/") for name in task.run.files),
        account=False if task.of_sweep else None,
    )
    with folder.claim(task.into, folder.RUN) as held:
        staged = held.stage()
        recording = engines.get(task.engine).run(plan, engines.into(record, plan, staged))
        if recording.metadata.interrupted:
            raise KeyboardInterrupt
        metadata = replace(recording.metadata, scenario=task.run.manifest.scenario)
        made = replace(recording, metadata=metadata, scenario=_written(task.run.directory, task.run.files))
        made.commit(held, staged)
    return made


def _written(directory: Path, listed: Mapping[str, str]) -> AsWritten | None:
    """The scenario of a folder with its files."""
    path = directory / places.SCENARIO
    if places.SCENARIO not in listed:
        return None
    inputs = [name for name in listed if name.startswith(f"{places.INPUTS}/")]
    contents = {name: read(directory, (directory / name).read_bytes) for name in inputs}
    return AsWritten(read(directory, lambda: path.read_text(encoding="utf-8")), contents)


def finish(result: Result, outcome: Outcome, into: Path, unpacked: Path) -> None:
    """Writes the tables of a sweep that ran again, and compares those of the bundle with the new ones.

    Raises OutputError, also for a bundle's index of a sweep that does not fit its points.
    """
    if outcome.rows:
        read(result.directory, lambda: _finish(result, outcome, into, unpacked))


def _finish(result: Result, outcome: Outcome, into: Path, unpacked: Path) -> None:
    if result.is_run:
        made = into / result.name
        found = tables.of_run(_data(made, places.SUMMARY), _data(made, places.PLAN))
    else:
        table = _table(result, outcome.rows)
        _write_sweep(result, outcome, table, into / result.name)
        found = tables.of_sweep(table, result.axes)
    for name, content in found:
        path = unpacked / layout.TABLES / result.name / name
        if path.is_file():
            outcome.tables[name] = Pair(_sha256(path.read_bytes()), _sha256(content))


def _data(directory: Path, name: str) -> Any:
    return reading.checked(folder.located(directory, name))


def _table(result: Result, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> pl.DataFrame:
    done = [each for each in result.index["points"] if each["folder"] in rows]
    return points.table(result.axes, [(each["values"], rows[each["folder"]]) for each in done])


def begin(result: Result, into: Path) -> None:
    """Makes the folder of a sweep before its points are in it. Raises OutputError."""
    if not result.is_run:
        with folder.claim(into / result.name, folder.SWEEP) as held:
            held.commit(_marker(result, {}))


def _write_sweep(result: Result, outcome: Outcome, table: pl.DataFrame, into: Path) -> None:
    with folder.claim(into, folder.SWEEP) as held:
        staged = held.stage()
        if (scenario := _written(result.directory, result.files)) is not None:
            write_scenario(staged, scenario)
        write_table(staged / places.POINTS, table)
        write_table(staged / places.STATISTICS, over_seeds(table, result.axes))
        held.commit(_marker(result, outcome.rows))


def _marker(result: Result, done: Container[str]) -> dict[str, Any]:
    """The index of the sweep, in which these points are done."""
    points = [
        {**each, "state": "done" if each["folder"] in done else "missing"} if each["state"] == "done" else each
        for each in result.index["points"]
    ]
    kept = {name: value for name, value in result.index.items() if name not in ("polypath", "files")}
    return {**kept, "points": points}


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def data(outcomes: Sequence[Outcome]) -> Iterator[Mapping[str, Any]]:
    """What rerun.json holds of each result."""
    for each in outcomes:
        yield {
            "result": each.name,
            "same": each.same,
            **({"not_run": each.reason} if each.reason else {}),
            "tables": {name: _pair(pair) for name, pair in each.tables.items()},
            "runs": {name: {part: _pair(pair) for part, pair in pairs.items()} for name, pairs in each.runs.items()},
        }


def _pair(pair: Pair) -> Mapping[str, Any]:
    found = {"before": pair.before, "after": pair.after, "same": pair.same}
    return {**found, "reason": pair.reason} if pair.reason else found
