"""Files that are kept for execution: only this user or root can have written them, and they are as recorded."""

from __future__ import annotations

import hashlib
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from polypath.engines.base import EngineError

_CHUNK: Final = 1 << 20
_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


class Untrusted(EngineError):
    """A file that is not executed; the message says which, why, and what to do."""


@dataclass(frozen=True)
class Executable:
    """A file that is to be executed."""

    path: Path
    #: Of what was installed; None: a file of this package.
    sha256: str | None = None
    #: What to do where it is another one.
    remedy: str = ""

    def __fspath__(self) -> str:
        return str(self.path)

    def copy(self, target: Path) -> None:
        """Copies what was installed, to be executed. Raises Untrusted, and OSError."""
        with target.open("wb") as written:
            self._read(written)
        target.chmod(0o755)

    def require_intact(self) -> None:
        """Raises Untrusted where it is not what was installed."""
        with Path(os.devnull).open("wb") as nowhere:
            self._read(nowhere)

    def _read(self, into: IO[bytes]) -> None:
        """One look at the file, so that what is checked is what is copied."""
        found = hashlib.sha256()
        with _opened(self.path, None if self.sha256 is None else self.remedy) as file:
            while chunk := file.read(_CHUNK):
                found.update(chunk)
                into.write(chunk)
        if self.sha256 not in (None, found.hexdigest()):
            raise Untrusted(
                f"{self.path} is not what was installed there: its SHA-256 is {found.hexdigest()}, not {self.sha256}; "
                f"{self.remedy}"
            )


def require_own(path: Path, root: Path, remedy: str) -> None:
    """Raises Untrusted if another user could have put a file or folder there, on the way from `root`, or in place of a
    link. Raises OSError.
    """
    for each in (path, *path.parents):
        _require_owner(each, each.lstat(), remedy)
        _judge(each, each.stat(), remedy)
        if each == root:
            return


def make_folder(path: Path, root: Path) -> None:
    """Makes a folder, and those up to `root`, that others cannot write to, whatever the umask is. Raises OSError."""
    for each in (*reversed([above for above in path.parents if above.is_relative_to(root)]), path):
        each.mkdir(mode=0o755, parents=True, exist_ok=True)


def owner(path: Path) -> str:
    """The name of the user that a file belongs to, or the number. Raises OSError."""
    return _name(path.lstat().st_uid)


@contextmanager
def _opened(path: Path, remedy: str | None) -> Iterator[IO[bytes]]:
    """A plain file; with a remedy, one that no other user can write to."""
    if remedy is None:
        with path.open("rb") as file:
            yield file
        return
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Untrusted(f"{path} cannot be read ({error.strerror}); {remedy}") from error
    with os.fdopen(descriptor, "rb") as file:
        _judge(path, os.fstat(descriptor), remedy)
        yield file


def _judge(path: Path, about: os.stat_result, remedy: str) -> None:
    if not (stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode)):
        raise Untrusted(f"{path} is no plain file; {remedy}")
    _require_owner(path, about, remedy)
    if about.st_mode & _OTHERS:
        raise Untrusted(
            f"others can write to {path} (mode {stat.S_IMODE(about.st_mode):04o}), so that it is not executed; "
            f"remove what is not yours, then `chmod go-w {path}`"
        )


def _require_owner(path: Path, about: os.stat_result, remedy: str) -> None:
    if about.st_uid not in (0, os.geteuid()):
        raise Untrusted(f"{path} belongs to {_name(about.st_uid)}, neither to you nor to root; {remedy}")


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"
