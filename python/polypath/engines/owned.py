"""Folders of Polypath's own. They are removed with their process, or at the next one's start.

A folder is ours where its marker names it and its inode: a copy or another folder of such a name is a person's. Who
made it holds the marker's lock (flock), which the system releases however a process ends. A process's number says
nothing: it is another in a container, and comes again.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

MARKER: Final = ".polypath-folder"
_LAYOUT: Final = 1
#: A marker is shorter.
_MOST_BYTES: Final = 4096


@contextmanager
def made(parent: Path, prefix: str) -> Iterator[Path]:
    """A new folder there; afterwards it is removed with what is in it. Raises OSError."""
    path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    folder = _opened(path)
    marker = None
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        marker = os.open(MARKER, flags, 0o600, dir_fd=folder)
        # where files cannot be locked the marker stays empty, and the folder is nobody's to remove but this process's
        with suppress(OSError):
            fcntl.flock(marker, fcntl.LOCK_EX)
            os.write(marker, _text(path.name, folder))
        yield path
    finally:
        _remove(path, folder)
        for descriptor in (folder, marker):
            if descriptor is not None:
                os.close(descriptor)


def clear(parent: Path, prefix: str) -> None:
    """Removes folders of this user that processes made there which are gone; all else stays as it is."""
    for path in parent.glob(f"{prefix}*"):
        with suppress(OSError):
            folder = _opened(path)
            try:
                _clear(path, folder)
            finally:
                os.close(folder)


def replace(new: Path, old: Path, place: Path) -> None:
    """Moves `new` out of `place`, a folder of this process, to where `old` may be, which goes with `place`. Raises
    OSError, for a folder of another user as well."""
    with suppress(FileNotFoundError):
        if old.lstat().st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "it belongs to another user; move it away", str(old))
        old.rename(place / "old")
    new.replace(old)


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """One process at a time. Raises OSError, also for a link instead of the file."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _clear(path: Path, folder: int) -> None:
    if os.fstat(folder).st_uid != os.geteuid():
        return
    marker = os.open(MARKER, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        about = os.fstat(marker)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
            return
        fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.read(marker, _MOST_BYTES) == _text(path.name, folder):
            _remove(path, folder)
    finally:
        os.close(marker)


def _text(name: str, folder: int) -> bytes:
    about = {"polypath": "folder of a process", "layout": _LAYOUT, "name": name, "inode": os.fstat(folder).st_ino}
    return json.dumps(about).encode()


def _remove(path: Path, folder: int) -> None:
    """Empties the folder that is open, follows no link, and removes it; the marker goes last."""
    with suppress(OSError):
        with os.scandir(folder) as entries:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries if entry.name != MARKER]
        for name, below in found:
            if below:
                shutil.rmtree(name, ignore_errors=True, dir_fd=folder)
            else:
                with suppress(OSError):
                    os.unlink(name, dir_fd=folder)
        if set(os.listdir(folder)) == {MARKER}:
            os.unlink(MARKER, dir_fd=folder)
        path.rmdir()
