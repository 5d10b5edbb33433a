"""The Recording: the tables and the circumstances of one run, in memory and on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import polars as pl

from polypath.plan.shared import encoded
from polypath.results import folder, layout, reading, schema
from polypath.results.errors import UnknownName
from polypath.results.files import OutputError, write_table, write_text, write_with
from polypath.results.groups import Groups
from polypath.results.report_page import Report
from polypath.results.run_plots import RunPlots

if TYPE_CHECKING:
    from types import ModuleType

    import pandas
    import pyarrow

    from polypath.plan.data import PlanData
    from polypath.results.connections import ConnectionFigures, Rows

FORMAT = 1
T = TypeVar("T")


#: What stands before a host's name among the versions, for the kernel that the host chose.
KERNEL_OF = "kernel of "


@dataclass(frozen=True)
class Metadata:
    """How a Recording came about; becomes manifest.json."""

    #: The scenario's name; of a lab's run, lab/run.
    scenario: str
    seed: int
    #: sim, linux, live or noq; capture: what captures tell.
    engine: str
    #: Hash of the Plan's canonical JSON.
    plan_sha256: str
    #: Hash of all tables as the engine gives it; equal for equal runs.
    recording_sha256: str
    #: Simulated time at which the run ended.
    end_ns: int
    #: Whether the run was stopped before its end.
    interrupted: bool = False
    #: Time that the run took on a clock on the wall, the only figure here that differs from run to run.
    wall_s: float = 0.0
    #: Of the parts that took part, polypath among them.
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def kernels(self) -> dict[str, str]:
        """The kernels that hosts chose: name, release, hash, and what each is made of, by host."""
        return {
            name.removeprefix(KERNEL_OF): told for name, told in self.versions.items() if name.startswith(KERNEL_OF)
        }

    def to_data(self) -> dict[str, Any]:
        """What manifest.json holds of it."""
        return {"format": FORMAT} | self.__dict__ | {"versions": dict(self.versions)}

    @classmethod
    def from_data(cls, data: Any) -> Metadata:
        """Raises ValueError where it is not what a manifest holds."""
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ValueError(f"not a manifest of format {FORMAT}")
        known = {item.name for item in fields(cls)}
        try:
            return cls(**{name: value for name, value in data.items() if name in known})
        except TypeError as error:
            raise ValueError(f"incomplete manifest: {error}") from error


class Contents(Protocol):
    """The text of a scenario file, and the files that it names, by their paths relative to it."""

    @property
    def text(self) -> str: ...

    @property
    def files(self) -> Mapping[str, bytes]: ...


class Written(Protocol):
    """What can be written as a scenario file."""

    def to_toml(self) -> str: ...

    def stored(self) -> Contents: ...


@dataclass(frozen=True)
class AsWritten:
    """A scenario of which the text and the files that it names are known."""

    text: str
    files: Mapping[str, bytes] = field(default_factory=dict)

    def to_toml(self) -> str:
        return self.text

    def stored(self) -> AsWritten:
        return self


@dataclass(frozen=True)
class Recording:
    """Tables by name (docs/recording.md), the Plan that was run, and how."""

    #: What the run recorded; `table` gives an empty one for what it did not.
    tables: Mapping[str, pl.DataFrame]
    #: The Plan as data.
    plan: PlanData
    metadata: Metadata
    #: What was run; None where it is not known, as of a capture.
    scenario: Written | None = None

    def __repr__(self) -> str:
        made = self.metadata
        rows = sum(table.height for table in self.tables.values())
        return f"<{made.scenario}: engine {made.engine}, seed {made.seed}, {made.end_ns / 1e9:g} s, {rows} rows>"

    def __getitem__(self, name: str) -> ConnectionFigures:
        """The connection of the application of that name. Raises UnknownName."""
        found: ConnectionFigures = _connections().named(self, name)
        return found

    @property
    def connections(self) -> Rows[ConnectionFigures]:
        """Every application's connection, in the order of the scenario."""
        found: Rows[ConnectionFigures] = _connections().connections(self)
        return found

    @property
    def plot(self) -> RunPlots:
        """The figures of the run by kind: `run.plot.rate()`."""
        return RunPlots(self)

    def table(self, name: str) -> pl.DataFrame:
        """A table; without rows where the run did not record it. Raises UnknownName."""
        found = self.tables.get(name)
        if found is None and name not in schema.TABLES:
            raise UnknownName.of("table", name, schema.TABLES)
        return schema.empty(name) if found is None else found

    def groups(self, name: str, by: tuple[str, ...], then: tuple[str, ...] = ()) -> Groups:
        """A table's rows by the columns `by`, in each group in the order of `then`."""
        key = (name, by, then)
        if key not in self._groups:
            self._groups[key] = Groups(self.table(name), by, then)
        return self._groups[key]

    def once(self, name: str, work: Callable[[], T]) -> T:
        """What `work` gives, worked out at the first call with this name."""
        if name not in self._known:
            self._known[name] = work()
        found: T = self._known[name]
        return found

    @cached_property
    def _known(self) -> dict[str, Any]:
        return {}

    @cached_property
    def _groups(self) -> dict[tuple[str, tuple[str, ...], tuple[str, ...]], Groups]:
        return {}

    def to_pandas(self) -> dict[str, pandas.DataFrame]:
        """All tables as pandas DataFrames. Raises OutputError without the extra `arrow`."""
        with _needing("to_pandas()", "pandas and pyarrow"):
            return {name: table.to_pandas() for name, table in self.tables.items()}

    def to_pyarrow(self) -> dict[str, pyarrow.Table]:
        """All tables as pyarrow Tables. Raises OutputError without the extra `arrow`."""
        with _needing("to_pyarrow()", "pyarrow"):
            return {name: table.to_arrow() for name, table in self.tables.items()}

    def report(self) -> Report:
        """The run's report page (docs/report.md), which a notebook shows; `.save(path)` writes it."""
        page: Report = import_module("polypath.notebook").report(self)
        return page

    def _repr_html_(self) -> str:
        return str(import_module("polypath.notebook").of_recording(self))

    def save(self, directory: Path | str) -> None:
        """Writes manifest, plan and tables into a folder that is new, empty, or holds the result of a run.

        The folder is that of `polypath run --out`. An old result is replaced as a whole, or not at all if that fails.
        Raises OutputError.
        """
        with folder.claim(Path(directory), folder.RUN) as held:
            self.commit(held, held.stage())

    def commit(self, held: folder.Folder, staged: Path) -> None:
        """Writes everything of a result but figures; captures may be in `staged` already. Raises OutputError."""
        self.write(staged)
        if self.scenario is not None:
            write_scenario(staged, self.scenario.stored())
        write_text(staged / layout.SUMMARY, import_module("polypath.measures.summary").text(self))
        held.commit(self.metadata.to_data())

    def write(self, directory: Path) -> None:
        """Writes plan and tables, without the manifest that makes them a result. Raises OutputError."""
        for name, table in self.tables.items():
            write_table(directory / layout.table_name(name), table)
        write_text(directory / layout.PLAN, encoded(self.plan, sort_keys=True, separators=(",", ":")) + "\n")

    @classmethod
    def load(cls, directory: Path | str) -> Recording:
        """Reads what `save` wrote. Raises OutputError, in one line, where it is not there or broken."""
        path = Path(directory)
        try:
            metadata = Metadata.from_data(reading.data(folder.located(path, layout.MANIFEST)))
            plan = reading.checked(folder.located(path, layout.PLAN))
            tables = reading.tables(_tables_in(path))
            _require_applications(plan, tables)
        except OutputError:
            raise
        except OSError as error:
            if folder.files(path, folder.SWEEP) is not None:
                raise OutputError(f"{path} holds a sweep; name the folder of one of its points") from error
            raise OutputError(f"no recording in {path}: {error.filename or error}: {error.strerror or ''}") from error
        except ValueError as error:
            reason = str(error).splitlines()[0]
            raise OutputError(f"no recording in {path}: {reason}") from error
        return cls(tables, plan, metadata, _scenario_in(path))


def write_scenario(directory: Path, scenario: Contents) -> None:
    """Writes a scenario file and what it names into a folder. Raises OutputError."""
    write_text(directory / layout.SCENARIO, scenario.text)
    for name, content in scenario.files.items():
        write_with(directory / name, partial(_put, content))


def _put(content: bytes, path: Path) -> None:
    path.write_bytes(content)


def _scenario_in(directory: Path) -> AsWritten | None:
    listed = folder.files(directory, folder.RUN) or {}
    inputs = {name: folder.located(directory, name) for name in listed if name.startswith(f"{layout.INPUTS}/")}
    try:
        if inputs:
            reading.require_room(inputs.values(), 1)
        text = folder.located(directory, layout.SCENARIO).read_text(encoding="utf-8")
        return AsWritten(text, {name: path.read_bytes() for name, path in inputs.items()})
    except (OSError, ValueError):
        return None


def _connections() -> ModuleType:
    return import_module("polypath.results.connections")


def _require_applications(plan: Any, tables: Mapping[str, pl.DataFrame]) -> None:
    """Raises ValueError where connections are of applications that the plan does not have."""
    used = tables["connection_ends"]["application"] if "connection_ends" in tables else pl.Series()
    known = len(plan.get("applications", ())) if isinstance(plan, dict) else 0
    if len(used) and not 0 <= min(used) <= max(used) < known:
        raise ValueError(f"{layout.PLAN} does not have the applications that the tables name")


@contextmanager
def _needing(what: str, packages: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise OutputError(f"{what} needs {packages}; install them with: pip install '.[arrow]'") from error


def _tables_in(directory: Path) -> dict[str, Path]:
    """The tables that the manifest lists; those that are there, where it is of a version that lists none."""
    listed = folder.files(directory, folder.RUN)
    names = {name: layout.table_name(name) for name in schema.TABLES}
    return {
        name: folder.located(directory, file)
        for name, file in names.items()
        if (file in listed if listed is not None else (directory / file).exists())
    }
