"""A results folder: who may write there, which files belong to the result, and replacing it as a whole or not at all.

A folder is taken if it is new, empty, or holds a result of the same kind. The marker of a result, such as
manifest.json, lists its files with their SHA-256. Only files that are listed, that have a name which results have, and
that still have this content are ever removed or replaced.

    .polypath.lock      held (flock) by the process that writes
    .polypath.partial   a result being written; a killed process leaves it, and the next run removes it
    .polypath.ready     a complete result whose files are being moved into place; the next run finishes that, and
                        readers take a file from here first, so that they see either the old result or the new one
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from polypath.results import layout, locks, reading
from polypath.results.files import OutputError

LOCK = ".polypath.lock"
PARTIAL = ".polypath.partial"
READY = ".polypath.ready"
#: What a Parquet file begins with; another file of that name is not a damaged one.
_PARQUET = b"PAR1"
#: A pattern with this end has every file of its folder, however deep.
_BELOW = "/**/*"
_OWN = frozenset({LOCK, PARTIAL, READY})

Files = Mapping[str, str]
"""Paths below the folder, with the SHA-256 of each."""


@dataclass(frozen=True)
class Kind:
    """What a folder may hold: the file that marks it, and patterns of the names of its other files."""

    name: str
    what: str
    marker: str
    patterns: tuple[str, ...]

    @property
    def folders(self) -> set[str]:
        return {pattern.partition("/")[0] for pattern in self.patterns if "/" in pattern}

    def has(self, name: str) -> bool:
        """Whether a result of this kind can have a file of that name."""
        return _fits(name, self.patterns)


@lru_cache(maxsize=1024)
def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    """Points of a sweep have the same names."""
    path = PurePosixPath(name)
    return (
        str(path) == name
        and ".." not in path.parts
        and any(
            path.parts[0] == pattern.removesuffix(_BELOW) and len(path.parts) > 1
            if pattern.endswith(_BELOW)
            else len(path.parts) == pattern.count("/") + 1 and path.match(pattern)
            for pattern in patterns
        )
    )


RUN = Kind(
    "run",
    "the result of a run",
    layout.MANIFEST,
    (
        layout.PLAN,
        layout.SCENARIO,
        f"{layout.INPUTS}{_BELOW}",
        layout.SUMMARY,
        layout.REPORT,
        f"{layout.EVENTS}.parquet",
        f"{layout.SERIES}/*.parquet",
        f"{layout.CAPTURE}/*.pcapng",
        layout.KEY_LOG,
        f"{layout.QLOG}/*.sqlog",
        f"{layout.PROGRAMS}{_BELOW}",
        *(f"{layout.PLOTS}/*.{form}" for form in layout.FIGURES),
    ),
)
SWEEP = Kind(
    "sweep",
    "a sweep",
    layout.INDEX,
    (
        layout.SCENARIO,
        f"{layout.INPUTS}{_BELOW}",
        layout.POINTS,
        layout.STATISTICS,
        layout.PAIRED,
        layout.ACROSS,
        layout.ALONG,
        layout.REPORT,
        *(f"{layout.PLOTS}/*.{form}" for form in layout.FIGURES),
    ),
)
COMPARISON = Kind("comparison", "a comparison", layout.COMPARISON, (layout.RATES,))
DRAWN = Kind("figures", "figures", layout.DRAWN, tuple(f"*.{form}" for form in layout.FIGURES))
_KINDS = (RUN, SWEEP, COMPARISON, DRAWN)


def files(directory: Path, kind: Kind) -> Files | None:
    """What the marker in a folder lists; None where there is no marker, or none that Polypath wrote."""
    return _listed(located(directory, kind.marker), kind)


def located(directory: Path, name: str) -> Path:
    """Where a file of a folder is to be read."""
    ready = directory / READY / name
    return ready if ready.exists() else directory / name


def intact(directory: Path, kind: Kind, listed: Files | None = None) -> bool:
    """Whether every file that the marker lists, or that is `listed`, exists unchanged."""
    listed = files(directory, kind) if listed is None else listed
    return listed is not None and all(
        (path := located(directory, name)).is_file() and _sha256(path) == digest for name, digest in listed.items()
    )


def fingerprint(directory: Path) -> str:
    """What changes when anything in a folder does: names, sizes, times and numbers of its files, none of which is
    opened. Raises OSError."""
    found = hashlib.sha256()
    waiting = [("", os.fspath(directory))]
    while waiting:
        below, path = waiting.pop()
        with os.scandir(path) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                name = f"{below}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((f"{name}/", entry.path))
                    continue
                of = entry.stat(follow_symlinks=False)
                found.update(
                    f"{name}\0{of.st_mode} {of.st_size} {of.st_ino} {of.st_mtime_ns} {of.st_ctime_ns}\n".encode()
                )
    return found.hexdigest()


@contextmanager
def claim(directory: Path, kind: Kind, inputs: Iterable[Path] = ()) -> Iterator[Folder]:
    """Takes a folder for a result, creates it if it is missing, and locks it against other processes.

    Raises OutputError, in one line, before any change: if another process has the folder, or if it holds anything but a
    result of this kind. It is also raised if a file of that result was changed since, or is among `inputs`.
    """
    made = _create(directory)
    real = directory.resolve()
    try:
        with _locked(real, directory):
            held = Folder(real, directory, kind)
            held.recover()
            held.require_ours(inputs)
            try:
                yield held
            except OutputError as error:
                staged = f"{real / PARTIAL}"
                raise OutputError(str(error).replace(staged, str(directory))) from error
            finally:
                held.discard()
    finally:
        if made:
            with suppress(OSError):
                real.rmdir()


def require_not_read(directory: Path, kind: Kind, inputs: Iterable[Path]) -> None:
    """Raises OutputError where a result that is to be replaced holds one of the files that are read."""
    names = [kind.marker, *(files(directory, kind) or ())]
    for path in inputs:
        for name in names:
            if _same(directory / name, path):
                raise OutputError(
                    f"{directory / name} is an input of this run and would be replaced; name another folder"
                )


def clean(directory: Path) -> None:
    """Removes what killed processes left half written in a folder; leaves one that another process has as it is."""
    if directory.is_symlink() or not directory.is_dir():
        return
    with os.scandir(directory) as entries:
        if _OWN.isdisjoint(entry.name for entry in entries):
            return
    with suppress(OutputError):
        with _locked(directory, directory):
            Folder(directory, directory, RUN).recover()
        if not any(directory.iterdir()):
            directory.rmdir()


class Folder:
    """A folder that this process holds."""

    def __init__(self, path: Path, shown: Path, kind: Kind) -> None:
        self.path = path
        #: As the person wrote it, for messages.
        self.shown = shown
        self.kind = kind

    def data(self) -> dict[str, Any]:
        """What the marker holds; nothing where there is none that can be read."""
        return _data(self.path / self.kind.marker)

    def stage(self) -> Path:
        """An empty folder for the files of a new result."""
        with _writing(self.shown):
            self._remove(PARTIAL)
            (self.path / PARTIAL).mkdir()
        return self.path / PARTIAL

    def commit(self, data: Mapping[str, Any] | None = None, *, keep: bool = False) -> None:
        """Replaces the existing result with the staged files; `data` becomes the marker.

        With `keep`, existing files remain part of the result; without `data`, so does the marker. Raises OutputError;
        the existing result is then unchanged.
        """
        if data is None:
            data = self.data()
        staged = self.path / PARTIAL
        with _writing(self.shown):
            staged.mkdir(exist_ok=True)
            found = {
                path.relative_to(staged).as_posix(): _sha256(path)
                for path in sorted(staged.rglob("*"))
                if path.is_file()
            }
            listed = {**(self._listed() if keep else {}), **found}
            if strange := [name for name in listed if not self.kind.has(name)]:
                raise ValueError(f"no result has a file {strange[0]}")
            text = _text({**data, "polypath": self.kind.name, "files": dict(sorted(listed.items()))})
            (staged / self.kind.marker).write_text(text, encoding="utf-8", newline="\n")
            self._require_folders(self.path)
            self._require_free(found)
            staged.rename(self.path / READY)
            self._place()

    def discard(self) -> None:
        """Removes what was staged."""
        with suppress(OSError, OutputError):
            self._remove(PARTIAL)

    def recover(self) -> None:
        """Finishes what a killed process had completed, and removes what it had not."""
        with _writing(self.shown):
            self._remove(PARTIAL)
            if (self.path / READY).exists():
                self._place()

    def require_ours(self, inputs: Iterable[Path]) -> None:
        """Raises OutputError unless the folder is empty or holds an unchanged result of this kind."""
        with _writing(self.shown):
            there = {path.name for path in self.path.iterdir()} - _OWN
            for other in _KINDS:
                if other is not self.kind and files(self.path, other) is not None:
                    raise OutputError(f"{self.shown} holds {other.what}; name another folder for {self.kind.what}")
            marker = self.path / self.kind.marker
            if there and _listed(marker, self.kind) is None:
                if _earlier(marker):
                    raise OutputError(
                        f"{self.shown} holds {self.kind.what} by an earlier version; remove it, or name another folder"
                    )
                raise OutputError(f"{self.shown} is not empty and is not a Polypath result; name a new or empty folder")
            self._require_folders(self.path)
            self._require_free(self._present())
        require_not_read(self.shown, self.kind, inputs)

    def _listed(self) -> dict[str, str]:
        return dict(_listed(self.path / self.kind.marker, self.kind) or {})

    def _present(self) -> list[str]:
        """The files that stand where a result of this kind has its own."""
        found = [
            path
            for pattern in self.kind.patterns
            for path in sorted(self.path.glob(pattern))
            if not (pattern.endswith(_BELOW) and path.is_dir() and not path.is_symlink())
        ]
        return [path.relative_to(self.path).as_posix() for path in found]

    def _require_free(self, names: Iterable[str]) -> None:
        """Raises OutputError if one of these files is foreign or was changed."""
        listed = self._listed()
        for name in names:
            if not _replaceable(self.path / name, listed.get(name)):
                what = "was changed since it was written" if name in listed else "is not of the result there"
                raise OutputError(f"{self.shown / name} {what}; move it away, or name another folder")

    def _require_folders(self, base: Path) -> None:
        """Raises OutputError where one of a result's folders is a link or a file: nothing is written through it."""
        for name in sorted({name for kind in _KINDS for name in kind.folders}):
            path = base / name
            if path.is_symlink() or (path.exists() and not path.is_dir()):
                raise OutputError(f"{self.shown / name} is not a folder; move it away, or name another folder")

    def _place(self) -> None:
        """Moves a complete result into place, the marker last."""
        ready = self.path / READY
        self._require_folders(self.path)
        self._require_folders(ready)
        kind = next((kind for kind in _KINDS if (ready / kind.marker).is_file()), None)
        if kind is not None:
            new = _listed(ready / kind.marker, kind)
            if new is None:
                raise OutputError(f"{self.shown / READY} exists and is not a Polypath result; move it away")
            old = _listed(self.path / kind.marker, kind) or {}
            for name, digest in new.items():
                if not (ready / name).is_file():
                    continue
                target = self.path / name
                if not _replaceable(target, old.get(name), digest):
                    raise OutputError(f"{self.shown / name} is not of the result there; move it away")
                self._make_folder(target.parent)
                (ready / name).replace(target)
            for name in old.keys() - new.keys():
                self._drop(name, old[name])
            (ready / kind.marker).replace(self.path / kind.marker)
        elif any(path.is_symlink() or not path.is_dir() for path in ready.rglob("*")):
            raise OutputError(f"{self.shown / READY} exists and is not a Polypath result; move it away")
        self._remove(READY)

    def _drop(self, name: str, digest: str) -> None:
        """Removes a file of ours, and its folder if that leaves it empty."""
        path = self.path / name
        if path.exists() and _replaceable(path, digest):
            path.unlink()
            for folder in path.parents:
                if folder == self.path:
                    break
                with suppress(OSError):
                    folder.rmdir()

    def _make_folder(self, path: Path) -> None:
        """Raises OutputError where a link stands on the way: nothing is written through it."""
        if path == self.path:
            return
        self._make_folder(path.parent)
        if path.is_symlink():
            raise OutputError(f"{self.shown / path.relative_to(self.path)} is not a folder; move it away")
        path.mkdir(exist_ok=True)

    def _remove(self, name: str) -> None:
        path = self.path / name
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            raise OutputError(f"{self.shown / name} is not a folder; move it away")
        if path.exists():
            shutil.rmtree(path)


def _create(directory: Path) -> bool:
    """Whether the folder had to be created. Raises OutputError."""
    if directory.is_symlink() and not directory.exists():
        raise OutputError(f"cannot write to {directory}: it is a dangling symbolic link")
    if directory.exists() and not directory.is_dir():
        raise OutputError(f"cannot write to {directory}: it is a file; name a folder")
    made = not directory.exists()
    with _writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
    return made


@contextmanager
def _locked(real: Path, shown: Path) -> Iterator[None]:
    """Holds the folder's lock, which the system releases however this process ends."""
    path = real / LOCK
    with _writing(shown):
        descriptor = _lock(path, shown)
    try:
        yield
    finally:
        try:
            with suppress(OSError):
                path.unlink()
        finally:
            os.close(descriptor)


def _lock(path: Path, shown: Path) -> int:
    while True:
        descriptor = locks.opened(path)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_size:
                raise OutputError(f"{shown / LOCK} exists and is not a Polypath lock; move it away")
            if not locks.taken(descriptor):
                raise OutputError(
                    f"another process is writing to {shown}; wait until it has ended, or name another folder"
                )
            # The process that had the lock removes the file before it lets go of it.
            with suppress(FileNotFoundError):
                if path.stat().st_ino == found.st_ino:
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


@contextmanager
def _writing(shown: Path) -> Iterator[None]:
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"cannot write to {shown}: {error.strerror or error}") from error


def _text(data: Mapping[str, Any]) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _data(marker: Path) -> dict[str, Any]:
    try:
        data = reading.data(marker)
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _listed(marker: Path, kind: Kind) -> Files | None:
    """None for a marker that Polypath has not written: it lists nothing, or names that no result has."""
    data = _data(marker)
    listed = data.get("files")
    if data.get("polypath") != kind.name or not isinstance(listed, dict) or marker.is_symlink():
        return None
    sound = all(isinstance(digest, str) and kind.has(name) for name, digest in listed.items())
    return listed if sound else None


def _earlier(marker: Path) -> bool:
    """Whether a marker is of a version that listed no files."""
    data = _data(marker)
    return data.get("format") == 1 and "polypath" not in data and "versions" in data


def _replaceable(path: Path, *digests: str | None) -> bool:
    """Whether nothing is lost with a file: it is not there, has content of ours, or none that can be read."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return True
    if not stat.S_ISREG(mode):
        return False
    known = [digest for digest in digests if digest is not None]
    return bool(known) and (_sha256(path) in known or _broken(path))


def _broken(path: Path) -> bool:
    """Whether a file of ours is empty, or a damaged table: what a full disk or a crash leaves."""
    with path.open("rb") as file:
        start = file.read(len(_PARQUET))
    return not start or (path.suffix == ".parquet" and start == _PARQUET and not reading.is_readable(path))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False
