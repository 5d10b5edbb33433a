"""The Recording: the tables and the circumstances of one run, in memory and on disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from polypath.results import layout, schema
from polypath.results.files import OutputError, write_text, write_with

if TYPE_CHECKING:
    import pandas
    import pyarrow

FORMAT = 1


@dataclass(frozen=True)
class Metadata:
    """How a Recording came about; becomes manifest.json."""

    #: The scenario's name; of a lab's run, lab/run.
    scenario: str
    seed: int
    engine: str
    plan_sha256: str
    #: Hash of all tables as the engine gives it; equal for equal runs.
    recording_sha256: str
    #: Simulated time at which the run ended.
    end_ns: int
    #: Whether the run was stopped before its end.
    interrupted: bool = False
    #: Time that the run took on a clock on the wall, the only figure here that differs from run to run.
    wall_s: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT} | self.__dict__ | {"versions": dict(self.versions)}, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Metadata:
        """Raises ValueError where the text is not a manifest."""
        data = json.loads(text)
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ValueError(f"not a manifest of format {FORMAT}")
        known = {item.name for item in fields(cls)}
        try:
            return cls(**{name: value for name, value in data.items() if name in known})
        except TypeError as error:
            raise ValueError(f"incomplete manifest: {error}") from error


@dataclass(frozen=True)
class Recording:
    """Tables by name (docs/recording.md), the Plan that was run, and how."""

    tables: Mapping[str, pl.DataFrame]
    plan: Mapping[str, Any]
    metadata: Metadata

    def table(self, name: str) -> pl.DataFrame:
        """A table; without rows where the run did not record it. Raises KeyError for a name that is none."""
        found = self.tables.get(name)
        return schema.empty(name) if found is None else found

    def to_pandas(self) -> dict[str, pandas.DataFrame]:
        """All tables as pandas DataFrames (needs the extra `arrow`)."""
        return {name: table.to_pandas() for name, table in self.tables.items()}

    def to_pyarrow(self) -> dict[str, pyarrow.Table]:
        """All tables as pyarrow Tables (needs the extra `arrow`)."""
        return {name: table.to_arrow() for name, table in self.tables.items()}

    def save(self, directory: Path, extras: Callable[[], None] = lambda: None) -> None:
        """Writes manifest, plan and tables in place of an earlier run's.

        The manifest comes last: a directory that has one is complete. `extras` writes what else belongs to it.
        Raises OutputError.
        """
        layout.clear(directory)
        for name, table in self.tables.items():
            write_with(layout.table_path(directory, name), table.write_parquet)
        write_text(directory / layout.PLAN, json.dumps(self.plan, sort_keys=True, separators=(",", ":")) + "\n")
        extras()
        write_text(directory / layout.MANIFEST, self.metadata.to_json())

    @classmethod
    def load(cls, directory: Path | str) -> Recording:
        """Reads what `save` wrote. Raises OutputError, in one line, where it is not there or broken."""
        folder = Path(directory)
        try:
            metadata = Metadata.from_json((folder / layout.MANIFEST).read_text(encoding="utf-8"))
            plan = json.loads((folder / layout.PLAN).read_text(encoding="utf-8"))
            tables = {name: pl.read_parquet(path) for name, path in _tables_in(folder).items()}
        except OSError as error:
            raise OutputError(f"no recording in {folder}: {error.filename or error}: {error.strerror or ''}") from error
        except (ValueError, pl.exceptions.PolarsError) as error:
            reason = str(error).splitlines()[0]
            raise OutputError(f"no recording in {folder}: {reason}") from error
        return cls(tables, plan, metadata)


def _tables_in(directory: Path) -> dict[str, Path]:
    paths = {name: layout.table_path(directory, name) for name in schema.TABLES}
    return {name: path for name, path in paths.items() if path.exists()}
