"""The results that go into a bundle: whole, unchanged, and each under a name of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from polypath.bundles.errors import BundleError
from polypath.results import Metadata, folder, layout, reading, stored
from polypath.results.axes import Axis
from polypath.results.files import OutputError

#: What a rerun makes again: tables and captures of packets.
_RECORDED: Final = (f"{layout.EVENTS}.parquet", f"{layout.SERIES}/", f"{layout.CAPTURE}/", f"{layout.QLOG}/")


@dataclass(frozen=True)
class Run:
    """A run's folder, where it is, and its name below the result's: "." of one that is the result."""

    directory: Path
    name: str

    @cached_property
    def manifest(self) -> Metadata:
        """Raises OutputError where there is none that can be read."""
        found: Metadata = read(self.directory, lambda: Metadata.from_data(_data(self.directory, layout.MANIFEST)))
        texts: list[Any] = [found.scenario, found.plan_sha256, found.recording_sha256, found.engine]
        texts += found.versions.values() if isinstance(found.versions, dict) else [None]
        if not all(isinstance(each, str) for each in texts):
            raise OutputError(f"no result in {self.directory}: {layout.MANIFEST} cannot be read")
        return found

    @cached_property
    def files(self) -> Mapping[str, str]:
        """Its files with their SHA-256. Raises BundleError for a result of a version that lists none."""
        listed = folder.files(self.directory, folder.RUN)
        if listed is None:
            raise BundleError(f"{self.directory} holds a result that does not list its files; run it again")
        return listed

    @property
    def plan(self) -> Path:
        return folder.located(self.directory, layout.PLAN)

    def summary(self) -> Mapping[str, Any]:
        """Raises OutputError."""
        found: Mapping[str, Any] = read(self.directory, lambda: _data(self.directory, layout.SUMMARY))
        return found


@dataclass(frozen=True)
class Result:
    """A run or a sweep, and its name in the bundle."""

    directory: Path
    name: str
    kind: folder.Kind

    @cached_property
    def index(self) -> Mapping[str, Any]:
        """What sweep.json holds. Raises OutputError."""
        found: Mapping[str, Any] = read(self.directory, lambda: _data(self.directory, layout.INDEX))
        return found

    @property
    def axes(self) -> list[Axis]:
        return [
            Axis(each["name"], tuple(each["labels"]), each["numbers"] and tuple(each["numbers"]), each["unit"])
            for each in self.index["axes"]
        ]

    @property
    def is_run(self) -> bool:
        return self.kind is folder.RUN

    @property
    def engine(self) -> str:
        return self.runs[0].manifest.engine if self.is_run else str(self.index["engine"])

    @property
    def scenario(self) -> str:
        """What was run, by its name."""
        return stored.name(self.directory, self.kind)

    @cached_property
    def runs(self) -> Sequence[Run]:
        """The run, or each point that has a result. Raises OutputError."""
        if self.is_run:
            return [Run(self.directory, ".")]
        runs: Sequence[Run] = read(self.directory, self._points)
        return runs

    def _points(self) -> list[Run]:
        done = [each for each in self.index["points"] if each["state"] == "done"]
        return [Run(stored.point(self.directory, each["folder"]), each["folder"]) for each in done]

    @cached_property
    def files(self) -> Mapping[str, str]:
        """Its own files with their SHA-256, without those of the points."""
        listed = folder.files(self.directory, self.kind)
        if listed is None:
            raise BundleError(f"{self.directory} holds a result that does not list its files; run it again")
        return listed

    def require_whole(self) -> None:
        """Raises BundleError for what was stopped before its end, and OutputError for what cannot be read."""
        if not self.is_run:
            missing = sum(each["state"] == "missing" for each in self.index["points"])
            if missing:
                raise BundleError(f"{self.directory} lacks {missing} of its points; the command that began it goes on")
            if layout.POINTS not in self.files:
                raise BundleError(f"{self.directory} lacks its tables; the command that began it makes them")
        for run in self.runs:
            if run.manifest.interrupted:
                raise BundleError(f"the run in {run.directory} was interrupted; run it again")

    def content(self, light: bool) -> Iterator[tuple[str, Path, str]]:
        """Each file's path below the result's folder, where it is, and its SHA-256; markers not among them."""
        for name, digest in self.files.items():
            if not (light and self.is_run and is_recorded(name)):
                yield name, folder.located(self.directory, name), digest
        for run in () if self.is_run else self.runs:
            for name, digest in run.files.items():
                if not (light and is_recorded(name)):
                    yield f"{run.name}/{name}", folder.located(run.directory, name), digest

    def markers(self) -> Iterator[tuple[str, Path]]:
        """Each marker's path below the result's folder, and where it is."""
        yield self.kind.marker, folder.located(self.directory, self.kind.marker)
        for run in () if self.is_run else self.runs:
            yield f"{run.name}/{layout.MANIFEST}", folder.located(run.directory, layout.MANIFEST)


def is_recorded(name: str) -> bool:
    """Whether a run's file is one that a rerun makes again."""
    return name.startswith(_RECORDED)


def named(directories: Sequence[Path]) -> list[Result]:
    """The results in these folders, each with a name of its own. Raises BundleError and OutputError."""
    found: list[Result] = []
    taken: dict[str, Path] = {}
    for directory in directories:
        if not directory.is_dir():
            what = "is a file" if directory.exists() else "does not exist"
            raise BundleError(f"{directory} {what}; name the folder of a run or of a sweep")
        inside = list(stored.found(directory))
        if not inside:
            raise BundleError(f"no results in {directory}; name a folder that `polypath run --out` wrote")
        base = _name(directory)
        if base.casefold() in taken:
            other = taken[base.casefold()]
            raise BundleError(f"{directory} and {other} have the same name, which a bundle keeps; rename one")
        taken[base.casefold()] = directory
        for path, kind in inside:
            found.append(Result(path, base if path == directory else f"{base}/{_name(path)}", kind))
    return found


def read(directory: Path, what: Callable[[], Any]) -> Any:
    """What a reader of a result's files gives. Raises OutputError, in one line, for what cannot be read."""
    try:
        return what()
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"no result in {directory}: {error.filename or error}: {error.strerror or ''}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise OutputError(f"no result in {directory}: {str(error).splitlines()[0]}") from error


def _data(directory: Path, name: str) -> Any:
    return reading.checked(folder.located(directory, name))


def _name(directory: Path) -> str:
    return re.sub(r"[^A-Za-z0-9_.,=+-]", "", directory.resolve().name).strip(".") or "result"
