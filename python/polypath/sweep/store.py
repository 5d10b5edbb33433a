"""A sweep's directory: a folder a point, and what is said of all of them.

sweep.json           name, engine, versions; axes[] name, labels, numbers, unit; points[] folder, values, seed,
                     plan_sha256, state (done, missing, failed), failure
points.parquet       a row for each connection of each point (`polypath.results.points`)
statistics.parquet   the same over seeds (`polypath.results.statistics`)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from polypath.results import Metadata, layout
from polypath.results.files import write_text, write_with
from polypath.results.points import Axis
from polypath.scenario import Plan
from polypath.sweep.grid import Point
from polypath.sweep.point import Failure, Task

FORMAT = 1
INDEX = "sweep.json"
POINTS = "points.parquet"
STATISTICS = "statistics.parquet"


def finished(task: Task, versions: Mapping[str, str]) -> Mapping[str, Any] | None:
    """The summary of a point that is done already; None where there is none of this plan, engine and version."""
    if task.directory is None:
        return None
    try:
        metadata = Metadata.from_json((task.directory / layout.MANIFEST).read_text(encoding="utf-8"))
        summary = json.loads((task.directory / layout.SUMMARY).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    same = metadata.plan_sha256 == task.plan.sha256() and metadata.engine == task.engine
    current = all(metadata.versions.get(name) == version for name, version in versions.items())
    captured = task.captures == "none" or (task.directory / layout.CAPTURE).is_dir()
    return summary if same and current and captured and not metadata.interrupted else None


def write_index(
    directory: Path,
    name: str,
    engine: str,
    versions: Mapping[str, str],
    axes: Sequence[Axis],
    points: Sequence[Point],
    states: Sequence[Mapping[str, Any] | Failure | None],
) -> None:
    """Writes sweep.json; `states` has for each point its summary, its failure, or None while it is missing."""
    data = {
        "format": FORMAT,
        "name": name,
        "engine": engine,
        "versions": dict(versions),
        "axes": [
            {"name": axis.name, "labels": axis.labels, "numbers": axis.numbers, "unit": axis.unit} for axis in axes
        ],
        "points": [
            {
                "folder": point.folder,
                "values": dict(point.values),
                "seed": _seed(point.plan),
                "plan_sha256": point.plan.sha256(),
                **_state(state),
            }
            for point, state in zip(points, states, strict=True)
        ],
    }
    write_text(directory / INDEX, json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def write_tables(directory: Path, points: pl.DataFrame, statistics: pl.DataFrame) -> None:
    write_with(directory / POINTS, points.write_parquet)
    write_with(directory / STATISTICS, statistics.write_parquet)


def _seed(plan: Plan) -> int:
    return int(plan.data["seed"])


def _state(state: Mapping[str, Any] | Failure | None) -> dict[str, str]:
    if isinstance(state, Failure):
        return {"state": "failed", "failure": state.message}
    return {"state": "missing" if state is None else "done"}
