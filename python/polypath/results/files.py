"""Writing files so that a final name never has half a file."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import polars as pl

from polypath.errors import PolypathError

PARTIAL = ".partial"
#: How a cell begins that spreadsheets calculate (OWASP, "CSV Injection").
_FORMULA = r"^[=+\-@\t\r]"
_OS_ERROR = re.compile(r"\(os error (\d+)\)")


class OutputError(PolypathError, OSError):
    """A result cannot be written or read; the message is one line."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives a temporary name beside `path`, which takes its place when the block ends well."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}{PARTIAL}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.replace(path)
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        # what keeps it from being removed must not take the place of what is told
        with suppress(OSError):
            temporary.unlink()


def write_text(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_with(path: Path, write: Callable[[Path], object]) -> None:
    """Lets `write` fill a temporary file that then becomes `path`."""
    with replacing(path) as temporary:
        write(temporary)


class _File:
    """A file that keeps what the system says of it: of an error in between, polars tells another story or none."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=0)
        self.error: OSError | None = None

    def write(self, data: bytes) -> int:
        left = memoryview(data)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            self.error = self.error or error
            raise
        return len(data)

    def flush(self) -> None:
        """Nothing waits: what is written has been handed to the system."""

    def close(self) -> None:
        self._file.close()


def write_table(path: Path, table: pl.DataFrame) -> None:
    """Writes a table as Parquet."""
    _write_with(path, lambda file: table.write_parquet(file))


def write_csv(path: Path, table: pl.DataFrame) -> None:
    """Writes a table as CSV, in which no text is a formula to a spreadsheet: one that would be begins with an
    apostrophe."""
    texts = pl.col(pl.String)
    safe = pl.when(texts.str.contains(_FORMULA)).then("'" + texts).otherwise(texts)
    _write_with(path, lambda file: table.with_columns(safe.name.keep()).write_csv(file))


def _write_with(path: Path, write: Callable[[Any], object]) -> None:
    with replacing(path) as temporary, closing(_File(temporary)) as file:
        try:
            write(file)
        except (OSError, pl.exceptions.PolarsError) as error:
            if file.error is not None:
                raise file.error from error
            if isinstance(error, OSError):
                raise
            raise OutputError(f"cannot write {path}: {said(error) or str(error).splitlines()[0]}") from error


def said(error: pl.exceptions.PolarsError) -> str | None:
    """What the system said, which polars has in the text only."""
    number = _OS_ERROR.search(str(error))
    return os.strerror(int(number[1])) if number else None


def require_writable(directory: Path) -> None:
    """Creates the directory where it is missing; raises OutputError unless files can be made in it."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe = directory / f".probe.{os.getpid()}{PARTIAL}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OutputError(f"cannot write to {directory}: {error.strerror or error}") from error
