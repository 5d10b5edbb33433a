"""Writing files so that a final name never holds half a file."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import polars as pl

from polypath.errors import PolypathError

PARTIAL = ".partial"
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
        temporary.write_text(text, encoding="utf-8")


def write_with(path: Path, write: Callable[[Path], object]) -> None:
    """Lets `write` fill a temporary file that then becomes `path`."""
    with replacing(path) as temporary:
        write(temporary)


def write_table(path: Path, table: pl.DataFrame) -> None:
    """Writes a table as Parquet."""
    with replacing(path) as temporary:
        try:
            table.write_parquet(temporary)
        except pl.exceptions.PolarsError as error:
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
