"""Making a bundle. The same results, options and machine give the same bytes."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import stat
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from polypath import _core
from polypath.bundles import crate, layout, readme, tables
from polypath.bundles.errors import BundleError
from polypath.bundles.results import Result, named, read
from polypath.bundles.unpacking import is_safe
from polypath.results import reading, stored
from polypath.results.files import OutputError, replacing

#: The earliest time that a zip can say (APPNOTE.TXT section 4.4.6).
_TIME: Final = (1980, 1, 1, 0, 0, 0)
_UNIX: Final = 3
_MODE: Final = (stat.S_IFREG | 0o644) << 16
#: What is compressed already.
_PACKED: Final = frozenset({".parquet", ".png", ".pdf", ".zip", ".gz"})
_LEVEL: Final = 6
_CHUNK: Final = 1 << 20
#: The packages whose versions may show in tables and figures.
_PACKAGES: Final = ("matplotlib", "numpy", "polars", "pydantic", "scipy")
#: A date for reproducible builds, in seconds (reproducible-builds.org/specs/source-date-epoch).
_EPOCH: Final = "SOURCE_DATE_EPOCH"


@dataclass(frozen=True)
class About:
    """What a bundle says of itself."""

    name: str
    description: str = ""
    #: An address or a text.
    licence: str = ""
    authors: Sequence[str] = ()
    #: None: `SOURCE_DATE_EPOCH`, otherwise the day of the newest result.
    date: str | None = None


@dataclass(frozen=True)
class Packed:
    """What was written."""

    results: int
    runs: int
    files: int
    sha256: str
    #: What a person should know.
    warnings: Sequence[str]


@dataclass
class _Contents:
    """Files by their paths in the bundle: where each is, or what is in it, and the SHA-256 of each."""

    files: dict[str, Path | bytes] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)

    def add(self, name: str, content: bytes) -> None:
        self.take(name, content, hashlib.sha256(content).hexdigest())

    def take(self, name: str, content: Path | bytes, digest: str) -> None:
        if not is_safe(name):
            raise BundleError(f"a file cannot be named {name!r} in a bundle; rename it")
        if name.casefold() in self._taken:
            raise BundleError(f"two files have the name {name} in the bundle; rename one")
        self._taken.add(name.casefold())
        self.files[name], self.digests[name] = content, digest


def pack(directories: Sequence[Path], out: Path, about: About, *, added: Sequence[Path] = (), light: bool) -> Packed:
    """Writes the results in these folders, and added files, into a new zip; `light`: without what a rerun makes again.

    Raises BundleError and OutputError, before anything is written.
    """
    results = named(directories)
    for result in results:
        result.require_whole()
    contents = _Contents()
    for result in results:
        _take(result, contents, light)
    for file in added:
        for name, path in _of_added(file):
            contents.add(f"{layout.ADDED}/{name}", path.read_bytes())
    _add_about(results, out.name, about, contents)
    _write(contents, out)
    return Packed(
        len(results),
        sum(len(result.runs) for result in results),
        len(contents.files),
        _sha256(out),
        [*_warnings(results)],
    )


def _take(result: Result, contents: _Contents, light: bool) -> None:
    place = f"{layout.RESULTS}/{result.name}"
    for name, path, digest in result.content(light):
        contents.take(f"{place}/{name}", path, digest)
    for name, path in result.markers():
        contents.add(f"{place}/{name}", read(path.parent, path.read_bytes))
    for name, content in _tables(result):
        contents.add(f"{layout.TABLES}/{result.name}/{name}", content)


def _of_added(path: Path) -> Iterator[tuple[str, Path]]:
    """A file, or those of a folder, but for hidden ones. Raises BundleError where there is neither."""
    if path.is_file():
        yield path.name, path
    elif path.is_dir():
        base = path.resolve()
        for each in sorted(base.rglob("*")):
            below = each.relative_to(base.parent)
            if each.is_file() and not any(part.startswith(".") for part in below.parts):
                yield str(below), each
    else:
        raise BundleError(f"{path} is neither a file nor a folder, so it cannot be added")


def _tables(result: Result) -> Iterator[tuple[str, bytes]]:
    if result.is_run:
        (run,) = result.runs
        yield from tables.of_run(run.summary(), read(run.directory, lambda: reading.checked(run.plan)))
    else:
        yield from tables.of_sweep(stored.StoredSweep.read(result.directory).points, result.axes)
        yield from tables.compared(result.directory, result.files)


def _add_about(results: Sequence[Result], file: str, about: About, contents: _Contents) -> None:
    """The files that say what the others are; the index, which has the hashes of all, last."""
    day = about.date or _day(results)
    contents.add(layout.ENVIRONMENT, _json(_environment()))
    contents.add(layout.README, readme.text(about.name, about.description, file, results).encode())
    described = crate.described(
        about.name, about.description, about.licence, about.authors, day, results, contents.digests
    )
    contents.add(layout.CRATE, _json(described))
    index = {
        "polypath": layout.KIND,
        "format": layout.FORMAT,
        "name": about.name,
        "results": [
            {
                "folder": f"{layout.RESULTS}/{each.name}",
                "tables": f"{layout.TABLES}/{each.name}",
                "kind": each.kind.name,
            }
            for each in results
        ],
        "files": dict(sorted(contents.digests.items())),
    }
    contents.add(layout.INDEX, _json(index))


def _environment() -> Mapping[str, Any]:
    module = Path(str(_core.__file__))
    return {
        "polypath": _core.version(),
        "native_module_sha256": _sha256(module),
        "python": platform.python_version(),
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "packages": {name: metadata.version(name) for name in _PACKAGES},
    }


def _day(results: Sequence[Result]) -> str:
    """ISO 8601, as RO-Crate demands of `datePublished`."""
    given = os.environ.get(_EPOCH)
    if given is not None and not given.isascii():
        raise BundleError(f"{_EPOCH} is a number of seconds, not {given!r}")
    try:
        newest = max(path.stat().st_mtime for each in results for _, path in each.markers())
        return datetime.fromtimestamp(newest if given is None else int(given), UTC).date().isoformat()
    except (ValueError, OverflowError) as error:
        raise BundleError(f"{_EPOCH} is a number of seconds, not {given!r}") from error


def require_date(text: str) -> str:
    """Raises BundleError for what is no date."""
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise BundleError(f"{text!r} is no date; write it as 2026-11-30") from error


def _warnings(results: Sequence[Result]) -> Iterator[str]:
    for result in results:
        if "scenario.toml" not in result.files and result.engine != "capture":
            yield f"{result.directory} has no scenario.toml: its plans run again, and nothing shows where they are from"
        if result.engine == "capture":
            yield f"{result.directory} is what captures tell: it is kept, and no run makes it again"
        elif result.engine == "live":
            yield f"{result.directory} ran in real time on engine 'live': it is kept, and no two such runs are alike"


def _write(contents: _Contents, out: Path) -> None:
    names = [layout.CRATE, layout.README, layout.INDEX]
    names += sorted(contents.files.keys() - set(names))
    with replacing(out) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name in names:
            _put(archive, name, contents.files[name], contents.digests[name])


def _put(archive: zipfile.ZipFile, name: str, content: Path | bytes, digest: str) -> None:
    info = zipfile.ZipInfo(name, _TIME)
    info.create_system, info.external_attr = _UNIX, _MODE
    info.compress_type = zipfile.ZIP_STORED if Path(name).suffix in _PACKED else zipfile.ZIP_DEFLATED
    info._compresslevel = _LEVEL  # type: ignore[attr-defined]
    found = hashlib.sha256()
    size = len(content) if isinstance(content, bytes) else content.stat().st_size
    with archive.open(info, "w", force_zip64=size > zipfile.ZIP64_LIMIT) as file:
        for part in _parts(content):
            found.update(part)
            file.write(part)
    if found.hexdigest() != digest:
        raise OutputError(
            f"{content} was changed since it was written; run it again" if isinstance(content, Path) else name
        )


def _parts(content: Path | bytes) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    with content.open("rb") as file:
        while part := file.read(_CHUNK):
            yield part


def _json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
