"""A lock on an open file, which the system releases however the process ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

if sys.platform == "win32":
    import msvcrt

    _FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_BINARY | os.O_NOINHERIT

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    _FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def opened(path: Path) -> int:
    """Opens the file, or makes it. Gives its descriptor. Raises OSError, also for a link on Unix."""
    return os.open(path, _FLAGS, 0o644)


def taken(descriptor: int) -> bool:
    """Locks the file for this process. False if another process has it. Raises OSError."""
    try:
        _lock(descriptor)
    except (BlockingIOError, PermissionError):
        return False
    return True
