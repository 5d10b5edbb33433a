"""Reading files of a result from unknown sources: their sizes are checked before they are read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import polars as pl

from polypath._core import parquet_size
from polypath.results.files import OutputError, said

#: Memory that the tables of a result may take, as `[record] memory` allows by default; the variable changes it.
VARIABLE: Final = "POLYPATH_RESULT_GB"
OTHERWISE_GB: Final = 4.0
#: A JSON text becomes at most so many times as large in memory: "[]," is a list of 56 bytes and its place of 8.
JSON_GROWS: Final = 32
#: How deep lists and tables of a JSON text lie in each other; what we write needs a tenth.
DEEPEST: Final = 100

#: Bytes of a value in memory, besides the content of texts.
_WIDTHS: Final[Mapping[Any, int]] = {
    pl.Boolean: 1,
    **dict.fromkeys((pl.Int8, pl.UInt8), 1),
    **dict.fromkeys((pl.Int16, pl.UInt16), 2),
    **dict.fromkeys((pl.Int32, pl.UInt32, pl.Float32), 4),
    **dict.fromkeys((pl.Int64, pl.UInt64, pl.Float64), 8),
    **dict.fromkeys((pl.String, pl.Null), 16),
}
#: Bytes of a list besides its values.
_LIST: Final = 16
#: What a Parquet file begins and ends with.
_PARQUET: Final = b"PAR1"


class TooLarge(OutputError):
    """A file of a result would take more memory than a result may."""


def data(path: Path) -> Any:
    """What a JSON file holds. Raises OSError, and ValueError where it is no JSON; TooLarge."""
    most = int(_most_bytes() / JSON_GROWS)
    with _plain(path).open("rb") as file:
        text = file.read(most + 1)
    if len(text) > most:
        raise TooLarge(f"{path} has more than {most / 1e6:g} MB; {_remedy()}")
    try:
        found = json.loads(text.decode("utf-8"))
    except RecursionError:
        raise ValueError(f"{path.name} is nested too deeply") from None
    level: list[Any] = [found]
    for _ in range(DEEPEST):
        level = [part for whole in level for part in _parts(whole)]
        if not level:
            return found
    raise ValueError(f"{path.name} is nested too deeply")


def require_room(paths: Iterable[Path], grows: int) -> None:
    """Raises TooLarge if files take more memory than a result may, each byte of theirs `grows` bytes; ValueError for
    what is no plain file."""
    of = list(paths)
    most, size = _most_bytes() // grows, sum(_plain(path).stat().st_size for path in of)
    if size > most:
        raise TooLarge(f"{of[0].parent} has {size / 1e6:.3g} MB to read, more than {most / 1e6:g} MB; {_remedy()}")


def require_bytes(what: str, size: int) -> None:
    """Raises TooLarge where something has more bytes than a result may take memory."""
    if size > (most := _most_bytes()):
        raise TooLarge(f"{what} has {size / 1e9:.3g} GB, more than {most / 1e9:g} GB; {_remedy()}")


class _Object(dict[str, Any]):
    """An object of a JSON file. What it lacks is an error of the file, wherever it is noticed."""

    where = ""

    def __missing__(self, key: str) -> Any:
        raise OutputError(f"{self.where} has no {key!r} where one belongs")


class _List(list[Any]):
    """The same of a list."""

    where = ""

    def __getitem__(self, at: Any) -> Any:
        try:
            return super().__getitem__(at)
        except (IndexError, TypeError):
            raise OutputError(f"{self.where} has no number {at} where one belongs") from None


def checked(path: Path) -> Any:
    """What a JSON file holds, as `data` reads it. An entry that it lacks raises OutputError when it is asked for."""

    def made(found: Any) -> Any:
        of: _Object | _List
        if isinstance(found, dict):
            of = _Object((key, made(value)) for key, value in found.items())
        elif isinstance(found, list):
            of = _List(map(made, found))
        else:
            return found
        of.where = str(path)
        return of

    return made(data(path))


def table(path: Path) -> pl.DataFrame:
    """A Parquet file's rows. Raises as `tables` does."""
    return tables({"": path})[""]


def tables(paths: Mapping[str, Path]) -> dict[str, pl.DataFrame]:
    """The tables in Parquet files, which together take no more memory than a result may.

    Raises FileNotFoundError; OutputError, which names a file that cannot be read, is damaged or is none of a result;
    TooLarge.
    """
    most = _most_bytes()
    needed = sum(_needed(path, most) for path in paths.values())
    if needed > most:
        where = os.path.commonpath(paths.values())
        raise TooLarge(f"{where}: the tables take {needed / 1e9:.3g} GB of memory or more; {_remedy()}")
    found = {name: _read(path) for name, path in paths.items()}
    # Equal texts lie in memory once, until something is made of each.
    texts = sum(_of_texts(each) for each in found.values())
    if texts > most:
        where = os.path.commonpath(paths.values())
        raise TooLarge(f"{where}: the texts of the tables have {texts / 1e9:.3g} GB; {_remedy()}")
    return found


def is_readable(path: Path) -> bool:
    """Whether a Parquet file is whole; one that is too large to find out counts as such."""
    try:
        table(path)
    except TooLarge:
        return True
    except OSError:
        return False
    return True


def _read(path: Path) -> pl.DataFrame:
    with _told(path):
        return pl.read_parquet(path, glob=False)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Says in one line which file cannot be read, and why. polars names none, and speaks of Thrift if the end lacks."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise OutputError(f"cannot read {path}: {error.strerror or error}") from error
    except (pl.exceptions.PolarsError, ValueError) as error:
        # said of polars' own, whose text speaks to its developers
        own = (said(error) or "it is damaged") if isinstance(error, pl.exceptions.PolarsError) else str(error)
        raise OutputError(f"cannot read {path}: {'it is cut short' if _is_cut(path) else own}") from error


def _is_cut(path: Path) -> bool:
    """Whether a file begins as Parquet does, and does not end so."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        begin = file.read(len(_PARQUET))
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(_PARQUET)))
        end = file.read()
    return begin == _PARQUET[: len(begin)] and (size <= 2 * len(_PARQUET) or end != _PARQUET)


def _of_texts(found: pl.DataFrame) -> int:
    """Bytes of all texts in a table, each of equal ones counted."""
    texts = found.select(
        pl.col(pl.String).str.len_bytes().cast(pl.UInt64).sum(),
        pl.col(pl.List(pl.String)).explode().str.len_bytes().cast(pl.UInt64).sum().name.suffix(" of all"),
    )
    return sum(texts.row(0)) if texts.width else 0


def _needed(path: Path, most: int) -> int:
    with _told(path):
        values, content = parquet_size(_plain(path), most)
        columns = pl.scan_parquet(path, glob=False).collect_schema()
        if values and len(values) != len(columns):
            raise ValueError("it is no table of a result")
        widths = [_width(name, kind) for name, kind in columns.items()]
    return sum(width * count for width, count in zip(widths, values, strict=False)) + content


def _width(column: str, kind: pl.DataType) -> int:
    """Bytes of a value, each row having one, and some lists none or several."""
    inner = kind.inner if isinstance(kind, pl.List) else kind
    if inner not in _WIDTHS:
        raise ValueError(f"column {column!r} is of a type that no table of a result has")
    return _WIDTHS[inner] + (_LIST if inner is not kind else 0)


def _plain(path: Path) -> Path:
    """The path; reading anything but a file could take for ever."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path.name} is not a plain file")
    return path


def _parts(whole: Any) -> Any:
    return whole.values() if isinstance(whole, dict) else whole if isinstance(whole, list) else ()


def _most_bytes() -> int:
    given = os.environ.get(VARIABLE)
    try:
        limit = float(given) if given else OTHERWISE_GB
    except ValueError:
        limit = -1.0
    if not 0 < limit <= 1e6:
        raise OutputError(f"{VARIABLE} is a number of gigabytes, not {given!r}")
    return int(limit * 1e9)


def _remedy() -> str:
    return f"a result may take {_most_bytes() / 1e9:g} GB, and {VARIABLE} changes that"
