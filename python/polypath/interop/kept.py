"""What was played, kept in a file line by line: the same command goes on where an interruption left it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Generic, TypeVar

from polypath.results.files import OutputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Row = TypeVar("_Row", bound="DataclassInstance")
_TITLE = "polypath interop"
#: How a row begins.
_BEGIN = f'{{"{_TITLE}": '


@dataclass(frozen=True)
class Kind(Generic[_Row]):
    """Rows of one table, and what makes one from its fields."""

    name: str
    load: Callable[..., _Row]


class Kept:
    """The rows of a file. One is found again only by the same program with the same stacks, of the same task."""

    def __init__(self, path: Path, program: str) -> None:
        """Raises OutputError for a file that has other content."""
        self._path, self._program = path, program
        self._rows: dict[str, dict[str, Any]] = {}
        self._whole = self._read()

    def _read(self) -> str:
        """The lines that are whole."""
        if not self._path.exists():
            return ""
        try:
            whole, end, cut = self._path.read_text(encoding="utf-8").rpartition("\n")
            if not (cut.startswith(_BEGIN) or _BEGIN.startswith(cut)):
                raise ValueError(cut)
            for line in whole.splitlines():
                row = json.loads(line)
                self._rows[row[_TITLE]] = row["row"]
        except (UnicodeDecodeError, ValueError, KeyError, TypeError) as error:
            raise OutputError(f"{self._path} has no rows of `{_TITLE}`; name another file, or remove it") from error
        return whole + end

    def find(self, kind: Kind[_Row], task: object) -> _Row | None:
        """The row of a task, if it is there."""
        row = self._rows.get(self._key(kind, task))
        return None if row is None else kind.load(**row)

    @contextmanager
    def open(self) -> Iterator[IO[str]]:
        """The file with its whole lines, to add rows to. Raises OutputError."""
        try:
            self._path.write_text(self._whole, encoding="utf-8")
            with self._path.open("a", encoding="utf-8") as file:
                yield file
        except OSError as error:
            if isinstance(error, OutputError):
                raise
            raise OutputError(f"cannot write {self._path}: {error.strerror or error}") from error

    def add(self, file: IO[str], kind: Kind[_Row], task: object, row: _Row) -> None:
        """Writes the row of a task to the file that is open."""
        line = json.dumps({_TITLE: self._key(kind, task), "row": asdict(row)}) + "\n"
        self._whole += line
        file.write(line)
        file.flush()

    def _key(self, kind: Kind[Any], task: object) -> str:
        return sha256(f"{self._program} {kind.name} {task!r}".encode()).hexdigest()
