"""Reading a bundle of somebody else's: nothing leaves its folder, and every file is what the index says.

Whoever changes a file can change its hash, so the hashes show damage and prove no origin (docs/bundles.md).
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Final

from polypath.bundles import layout
from polypath.bundles.errors import BundleError
from polypath.results import reading
from polypath.results.files import OutputError

_CHUNK: Final = 1 << 20
#: More files than a sweep of 100,000 points has with all tables.
_MOST_FILES: Final = 3_000_000
_MOST_INDEX_BYTES: Final = 300_000_000
_LONGEST_NAME: Final = 1000
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
#: General purpose bit 0 of a member (APPNOTE.TXT section 4.4.4).
_ENCRYPTED: Final = 1


def unpack(bundle: Path, into: Path) -> Mapping[str, Any]:
    """Puts a bundle's files into an empty folder, and gives its index. Raises BundleError, in one line, for what is no
    bundle, is damaged, has been altered, or is larger than a result may be; OutputError."""
    with _told(bundle), zipfile.ZipFile(bundle) as archive:
        members = _members(bundle, archive)
        index = _index(bundle, archive, members)
        files: Mapping[str, str] = index["files"]
        if lacking := next((name for name in files if name not in members), None):
            raise BundleError(f"{bundle} lacks {lacking}, which its {layout.INDEX} lists")
        if extra := next((name for name in members if name not in files and name != layout.INDEX), None):
            raise BundleError(f"{bundle} has {extra}, which its {layout.INDEX} does not list")
        for name, digest in files.items():
            if _extracted(archive, members[name], into / name) != digest:
                raise BundleError(f"{bundle}: {name} is not what the bundle was made with; get the bundle again")
        _extracted(archive, members[layout.INDEX], into / layout.INDEX)
    return index


@contextmanager
def _told(bundle: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise BundleError(f"{bundle} is no bundle, or is damaged: {' '.join(str(error).split())}") from error
    except OutputError:
        raise
    except OSError as error:
        raise BundleError(f"{error.filename or bundle}: {error.strerror or error}") from error


def _members(bundle: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The files by name. Raises BundleError where one is not a plain file below the folder, or all are too large."""
    found = archive.infolist()
    if len(found) > _MOST_FILES:
        raise BundleError(f"{bundle} has {len(found):,} files, and {_MOST_FILES:,} at most are read")
    reading.require_bytes(str(bundle), sum(each.file_size for each in found))
    members: dict[str, zipfile.ZipInfo] = {}
    taken: set[str] = set()
    for each in found:
        name = each.filename
        kind = stat.S_IFMT(each.external_attr >> 16)
        if not is_safe(name) or name != each.orig_filename or kind not in (0, stat.S_IFREG):
            raise BundleError(f"{bundle} has {name!r}, which is no plain file of a bundle")
        if each.flag_bits & _ENCRYPTED or each.compress_type not in _METHODS:
            raise BundleError(f"{bundle}: {name} is encrypted, or packed as no bundle is")
        if name.casefold() in taken:
            raise BundleError(f"{bundle} has {name} twice")
        taken.add(name.casefold())
        members[name] = each
    return members


def is_safe(name: str) -> bool:
    """Whether a name in a zip is a plain relative path, which cannot lead out of the folder."""
    path = PurePosixPath(name)
    return (
        0 < len(name) <= _LONGEST_NAME
        and name == str(path)
        and not path.is_absolute()
        and ".." not in path.parts
        and "." not in path.parts
        and name.isprintable()
        and not any(letter in name for letter in '\\:"<>|')
    )


def _index(bundle: Path, archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo]) -> Mapping[str, Any]:
    if layout.INDEX not in members:
        raise BundleError(f"{bundle} is no bundle of Polypath: it has no {layout.INDEX}")
    if members[layout.INDEX].file_size > _MOST_INDEX_BYTES:
        raise BundleError(f"{bundle}: {layout.INDEX} is too large")
    try:
        data = json.loads(archive.read(members[layout.INDEX]))
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{bundle}: {layout.INDEX} is damaged") from error
    if not isinstance(data, dict) or data.get("polypath") != layout.KIND:
        raise BundleError(f"{bundle} is no bundle of Polypath: so says its {layout.INDEX}")
    if data.get("format") != layout.FORMAT:
        raise BundleError(f"{bundle} is a bundle of format {data.get('format')!r}; this version reads {layout.FORMAT}")
    files, results = data.get("files"), data.get("results")
    sound = (
        isinstance(files, dict)
        and all(isinstance(each, str) and _SHA256.fullmatch(each) for each in files.values())
        and isinstance(results, list)
        and all(_is_result(each) for each in results)
    )
    if not sound:
        raise BundleError(f"{bundle}: {layout.INDEX} is damaged")
    return data


def _is_result(data: Any) -> bool:
    return isinstance(data, dict) and all(
        isinstance(place := data.get(key), str) and is_safe(place) and place.startswith(f"{top}/")
        for key, top in (("folder", layout.RESULTS), ("tables", layout.TABLES))
    )


def _extracted(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path) -> str:
    """Writes a member into a file, and gives its SHA-256. Raises BundleError where it has more than it says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    found, size = hashlib.sha256(), 0
    with archive.open(member) as packed, path.open("xb") as file:
        while part := packed.read(_CHUNK):
            size += len(part)
            if size > member.file_size:
                raise BundleError(f"{archive.filename}: {member.filename} has more than it says")
            found.update(part)
            file.write(part)
    return found.hexdigest()
