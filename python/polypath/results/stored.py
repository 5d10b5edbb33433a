"""Results in folders: their runs and sweeps, and a sweep's tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from polypath.results import folder, layout, reading, swept
from polypath.results.axes import Axis
from polypath.results.files import OutputError
from polypath.results.recording import Recording
from polypath.results.settled import OLD
from polypath.results.swept import SweptRun

if TYPE_CHECKING:
    from polypath.plan.types import Application


def found(directory: Path) -> Iterator[tuple[Path, folder.Kind]]:
    """The runs and sweeps of a folder: itself, or those in it."""
    for kind in (folder.RUN, folder.SWEEP):
        if folder.located(directory, kind.marker).is_file():
            yield directory, kind
            return
    for path in sorted(each for each in directory.iterdir() if each.is_dir() and not each.name.startswith(".")):
        for kind in (folder.RUN, folder.SWEEP):
            if folder.located(path, kind.marker).is_file():
                yield path, kind
                break


def name(directory: Path, kind: folder.Kind) -> str:
    """What a run or a sweep is called. Raises OutputError where it cannot be read."""
    return _said(directory, kind, "scenario" if kind is folder.RUN else "name")


def engine(directory: Path, kind: folder.Kind) -> str:
    """What made a run or a sweep. Raises OutputError where it cannot be read."""
    return _said(directory, kind, "engine")


def _said(directory: Path, kind: folder.Kind, key: str) -> str:
    path = folder.located(directory, kind.marker)
    try:
        return str(reading.data(path)[key])
    except OutputError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OutputError(f"{path} cannot be read") from error


def point(directory: Path, name: object) -> Path:
    """The folder of a point, as a sweep's index names it. Raises OutputError for one that is not in the sweep's own."""
    if not isinstance(name, str) or name in ("", ".", "..") or "/" in name or "\0" in name:
        raise OutputError(f"{directory / layout.INDEX} names {name!r}, which is no folder of a point")
    return directory / name


def _settled(points: pl.DataFrame, statistics: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tables with the present names of their figures."""
    columns = {name: now for name, now in OLD.items() if name in points.columns}
    return points.rename(columns), statistics.with_columns(pl.col("measure").replace(dict(OLD)))


@dataclass(frozen=True)
class StoredSweep:
    """A sweep as its folder has it."""

    name: str
    axes: Sequence[Axis]
    points: pl.DataFrame
    statistics: pl.DataFrame
    #: The labels of each point that has a result, and its folder.
    places: Sequence[tuple[Mapping[str, str], Path]]
    #: The labels of each point that has none, and why.
    without: Sequence[tuple[Mapping[str, str], str]] = ()

    @classmethod
    def read(cls, directory: Path) -> StoredSweep:
        """Raises OutputError, in one line, where it is not there, broken or without its tables."""
        try:
            index = reading.data(folder.located(directory, layout.INDEX))
            axes = [
                Axis(
                    each["name"],
                    tuple(each["labels"]),
                    each["numbers"] and tuple(each["numbers"]),
                    each["unit"],
                    each.get("settings") and tuple(each["settings"]),
                    {path: (unit, numbers) for path, (unit, numbers) in each.get("properties", {}).items()},
                )
                for each in index["axes"]
            ]
            places = [
                (dict(each["values"]), point(directory, each["folder"]))
                for each in index["points"]
                if each["state"] == "done"
            ]
            without = [
                (dict(each["values"]), str(each.get("failure", "has not run")))
                for each in index["points"]
                if each["state"] != "done"
            ]
            points, statistics = (
                reading.table(folder.located(directory, name)) for name in (layout.POINTS, layout.STATISTICS)
            )
            return cls(str(index["name"]), axes, *_settled(points, statistics), places, without)
        except OutputError:
            raise
        except FileNotFoundError as error:
            files = (layout.INDEX, layout.POINTS, layout.STATISTICS)
            lacking = next((name for name in files if not folder.located(directory, name).exists()), files[0])
            remedy = "" if lacking == layout.INDEX else "; the command that began it goes on, and makes it at the end"
            raise OutputError(f"no sweep in {directory}: there is no {lacking}{remedy}") from error
        except OSError as error:
            raise OutputError(f"no sweep in {directory}: {error.filename}: {error.strerror or error}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise OutputError(f"no sweep in {directory}: {layout.INDEX} cannot be read") from error

    def __iter__(self) -> Iterator[SweptRun]:
        """Every run that has a result."""
        names = [axis.name for axis in self.axes]
        folders = {tuple(values[name] for name in names): path for values, path in self.places}
        return swept.runs(self.points, self.axes, folders)

    @property
    def applications(self) -> Sequence[Application]:
        """What the plan of the first run says of each application. Raises OutputError where none is stored."""
        if not self.places:
            raise OutputError(f"the sweep {self.name} has no run that is stored")
        return Recording.load(self.places[0][1]).plan["applications"]

    def load(self, axes: Sequence[Axis]) -> dict[tuple[str, ...], Recording]:
        """The recordings of the places on these axes, of several points on one the first. Raises OutputError."""
        made: dict[tuple[str, ...], Recording] = {}
        for values, path in self.places:
            place = tuple(values[axis.name] for axis in axes)
            if place not in made:
                made[place] = Recording.load(path)
        return made
