"""A sweep's directory: a folder per point, and files about all of them.

The directory has these files besides:

    sweep.json           name, engine, versions; axes[] name, labels, numbers, unit, of drawn ones settings and
                         properties; points[] folder, values, seed, plan_sha256, state (done, missing, failed),
                         failure; files, the sweep's own with their SHA-256
    scenario.toml        with the axes in its table [vary]; inputs/ has the files that it names
    points.parquet       a row for each connection of each point (`polypath.statistics.points`)
    statistics.parquet   the same over seeds (`polypath.statistics.estimate`)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from polypath.results import Metadata, folder, layout, reading
from polypath.results.axes import Axis
from polypath.results.files import write_table
from polypath.results.folder import Folder
from polypath.results.recording import Contents, write_scenario
from polypath.sweeps.grid import Point
from polypath.sweeps.point import Failure, Task

FORMAT = 1


def finished(task: Task, versions: Mapping[str, str]) -> Mapping[str, Any] | None:
    """The summary of a finished point.

    None if there is none for this plan, engine and version, or if a file is missing or was changed.
    """
    if task.directory is None:
        return None
    try:
        metadata = Metadata.from_data(reading.data(folder.located(task.directory, layout.MANIFEST)))
        summary: Mapping[str, Any] = reading.data(folder.located(task.directory, layout.SUMMARY))
    except (OSError, ValueError):
        return None
    same = metadata.plan_sha256 == task.plan.sha256() and metadata.engine == task.engine
    current = all(metadata.versions.get(name) == version for name, version in versions.items())
    if not (same and current) or metadata.interrupted:
        return None
    listed = folder.files(task.directory, folder.RUN)
    if listed is None or task.lacks(listed):
        return None
    return summary if folder.intact(task.directory, folder.RUN, listed) else None


def index(
    name: str,
    engine: str,
    versions: Mapping[str, str],
    axes: Sequence[Axis],
    points: Sequence[Point],
    states: Mapping[str, int | Failure],
) -> dict[str, Any]:
    """What sweep.json holds; `states` has of points by their folder a failure, or else they are done."""
    return {
        "format": FORMAT,
        "name": name,
        "engine": engine,
        "versions": dict(versions),
        "axes": [
            {
                "name": axis.name,
                "labels": axis.labels,
                "numbers": axis.numbers,
                "unit": axis.unit,
                **({} if axis.settings is None else {"settings": axis.settings, "properties": axis.properties}),
            }
            for axis in axes
        ],
        "points": [
            {
                "folder": point.folder,
                "values": dict(point.values),
                "seed": point.seed,
                "plan_sha256": point.plan_sha256,
                **_state(states.get(point.folder)),
            }
            for point in points
        ],
    }


def begin(held: Folder, index: Mapping[str, Any], scenario: Contents) -> None:
    """Replaces the index and the scenario; tables and figures of changed points are removed.

    Raises OutputError.
    """
    write_scenario(held.stage(), scenario)
    held.commit(index, keep=_done(held.data()) <= _done(index))


def _done(index: Mapping[str, Any]) -> set[tuple[str, str]]:
    points = index.get("points", [])
    return {(point.get("folder"), point.get("plan_sha256")) for point in points if point.get("state") == "done"}


def write(
    held: Folder, index: Mapping[str, Any], scenario: Contents, points: pl.DataFrame, statistics: pl.DataFrame
) -> None:
    """Replaces index, scenario and tables. Raises OutputError."""
    staged = held.stage()
    write_scenario(staged, scenario)
    write_table(staged / layout.POINTS, points)
    write_table(staged / layout.STATISTICS, statistics)
    held.commit(index)


def _state(state: int | Failure | None) -> dict[str, str]:
    if isinstance(state, Failure):
        return {"state": "failed", "failure": state.message}
    return {"state": "missing" if state is None else "done"}
