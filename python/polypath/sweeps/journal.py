"""The journal of a sweep's finished points, one per line, so that resuming reads no result again.

The first line of points.jsonl identifies the file. Each further line is a point, in the order in which they finished.
It has folder, key, plan_sha256, seed, files, rows as in points.parquet, and a checksum. A later line replaces an
earlier one.

A line counts if it is intact, and if its key and its files are unchanged. The key covers everything that determines the
point's plan: the scenario, the point's settings, the scenario's files, the engine, the versions and the package. Files
are identified by names, sizes, times and inode numbers (`folder.fingerprint`) and not opened.

Without a valid line, the point's plan is built and its files are read. The journal may therefore be lost, or be from
another machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Final

from polypath import engines
from polypath.recorded import Record
from polypath.results import folder, layout
from polypath.results.files import OutputError
from polypath.scenario import Scenario
from polypath.sweeps.grid import Point

_FIRST: Final = json.dumps({"polypath": "points of a sweep", "format": 1}) + "\n"
#: What stands before the checksum of a line.
_CHECK: Final = ', "check": "'


@dataclass(frozen=True)
class Line:
    """A finished point."""

    folder: str
    key: str
    plan_sha256: str
    seed: int
    files: str
    rows: Sequence[Mapping[str, Any]]


class Keys:
    """Makes the keys of a sweep's points."""

    def __init__(
        self, scenario: Scenario, engine: str, versions: Mapping[str, str], record: Record, figures: Sequence[str]
    ) -> None:
        base = scenario.model_copy(update={"vary": {}})
        parts: list[Any] = [base.to_toml(), engine, dict(versions), asdict(record), list(figures), _package()]
        parts += [[str(path), _content(path)] for path in scenario.scripts()]
        self._base = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).digest()

    def of(self, point: Point) -> str:
        given = [dict(value.settings) for value in point.combination]
        return hashlib.sha256(self._base + json.dumps(given, default=str).encode()).hexdigest()


class Journal:
    """The file of one sweep, whose folder this process holds. Raises OutputError where somebody else's is there."""

    def __init__(self, directory: Path, keys: Keys) -> None:
        self.directory, self.path, self._keys = directory, directory / layout.JOURNAL, keys
        self._partial = self.path.with_name(f".{self.path.name}.partial")
        self._open: IO[str] | None = None
        self._require_ours()
        with suppress(OSError):
            self._partial.unlink(missing_ok=True)

    def recalled(self, points: Mapping[str, Point]) -> Iterator[tuple[Point, Sequence[Mapping[str, Any]]]]:
        """Those of these points, by their folders, of which a line counts, with their rows. Where half of the lines
        that are of them do not count, these go."""
        self.close()
        left = dict(points)
        old: set[int] = set()
        asked = 0
        for number, line in enumerate(self._lines()):
            point = None if line is None else left.get(line.folder)
            if line is None or point is None:
                if line is None or line.folder in points:
                    old.add(number)
                continue
            asked += 1
            if line.key == self._keys.of(point) and line.files == _files(self.directory / line.folder):
                del left[line.folder]
                point.trust(line.plan_sha256, line.seed)
                yield point, line.rows
            else:
                old.add(number)
        if 2 * len(old) > asked:
            self._rewrite(old)

    def add(self, point: Point, rows: Sequence[Mapping[str, Any]]) -> None:
        """Writes a line of a point that has its result. One that cannot be written costs time later, nothing else."""
        files = _files(self.directory / point.folder)
        if files is None:
            return
        line = Line(point.folder, self._keys.of(point), point.plan_sha256, point.seed, files, rows)
        with suppress(OSError):
            if self._open is None:
                self._open = self._opened()
            self._open.write(_sealed(json.dumps(line.__dict__, ensure_ascii=False)) + "\n")
            self._open.flush()

    def close(self) -> None:
        if self._open is not None:
            with suppress(OSError):
                self._open.close()
            self._open = None

    def _opened(self) -> IO[str]:
        file = self.path.open("a", encoding="utf-8")
        if file.tell() < len(_FIRST):
            file.truncate(0)
            file.write(_FIRST)
        else:  # a killed process may have left half a line; an empty one is skipped
            file.write("\n")
        return file

    def _lines(self) -> Iterator[Line | None]:
        """Each line but the first; None for one that is damaged."""
        try:
            with self.path.open(encoding="utf-8", errors="replace") as file:
                next(file, None)
                for text in file:
                    yield _read(text)
        except OSError:
            return

    def _rewrite(self, without: set[int]) -> None:
        with suppress(OSError):
            old = self.path.open(encoding="utf-8", errors="replace")
            with old, self._partial.open("w", encoding="utf-8") as new:
                new.write(_FIRST)
                next(old, None)
                new.writelines(text for number, text in enumerate(old) if number not in without)
            self._partial.replace(self.path)

    def _require_ours(self) -> None:
        """Raises OutputError for a file of somebody else."""
        ours = not self.path.is_symlink()
        if ours and self.path.exists():
            try:
                with self.path.open(encoding="utf-8", errors="replace") as file:
                    ours = _FIRST.startswith(file.readline(len(_FIRST)))
            except OSError:
                ours = False
        if not ours:
            raise OutputError(f"{self.path} exists and is not a sweep's; move it away, or name another folder")


def _files(directory: Path) -> str | None:
    try:
        return folder.fingerprint(directory)
    except OSError:
        return None


def _sealed(text: str) -> str:
    """An object in JSON with a checksum of itself."""
    return f'{text[:-1]}{_CHECK}{hashlib.sha256(text.encode()).hexdigest()[:16]}"}}'


def _read(text: str) -> Line | None:
    text = text.rstrip("\n")
    written = text.rpartition(_CHECK)[0] + "}"
    try:
        if _sealed(written) != text:
            return None
        line = Line(**json.loads(written))
    except (ValueError, TypeError):
        return None
    sound = isinstance(line.folder, str) and isinstance(line.seed, int) and isinstance(line.rows, list)
    return line if sound else None


def _package() -> list[list[Any]]:
    """The package's files and the native module, by size and time."""
    root = Path(__file__).parents[1]
    files = [*sorted(root.rglob("*.py")), engines.native()[1]]
    return [[str(path), (found := path.stat()).st_size, found.st_mtime_ns] for path in files]


def _content(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        return str(error)
