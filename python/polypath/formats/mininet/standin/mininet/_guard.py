"""Limits of the process in which a topology runs, and what it may not do there.

The limits are the kernel's. The rest is a hook on Python's own events: it stops what a script would do by habit or by
mistake, and says so; it does not stop a program that is written to get around it.
"""

from __future__ import annotations

import os
import resource
import sys
from typing import Any

from . import _place
from ._place import Refused

#: Events of Python (docs.python.org, "Audit events table") that change something outside of the process.
_FORBIDDEN = (
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.fork",
    "os.kill",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.mkdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
    "os.chown",
    "os.setxattr",
    "os.removexattr",
    "os.utime",
    "subprocess.Popen",
    "pty.spawn",
    "shutil.",
    "socket.",
    "tempfile.",
    "resource.",
    "signal.pthread_kill",
    "webbrowser.open",
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def limit(cpu_s: int, memory_bytes: int, file_bytes: int) -> None:
    """Sets the kernel's limits of this process. Those that this system has not are left out."""
    wanted = {
        resource.RLIMIT_CPU: (cpu_s, cpu_s + 1),
        resource.RLIMIT_AS: (memory_bytes, memory_bytes),
        resource.RLIMIT_FSIZE: (file_bytes, file_bytes),
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_NPROC: (0, 0),
    }
    for which, (soft, hard) in wanted.items():
        ceiling = resource.getrlimit(which)[1]
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        try:
            resource.setrlimit(which, (soft, hard))
        except (OSError, ValueError):
            continue


def watch() -> None:
    """From now on what is forbidden raises Refused."""
    sys.addaudithook(_hook)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        path, _, flags = arguments
        if isinstance(flags, int) and flags & _WRITING and path != os.devnull:
            raise Refused(f"writing to {path!r} is not allowed: an import reads the topology class and nothing else")
    elif event.startswith(_FORBIDDEN) or (event.startswith("ctypes.") and _is_own()):
        what = event if event.count(".") else f"{event}(..)"
        raise Refused(f"{what} is not allowed: an import reads the topology class and nothing else")


def _is_own() -> bool:
    """Whether the file itself asks, and not a package that it imports."""
    frame = sys._getframe(2)
    while frame.f_back is not None and "ctypes" in frame.f_code.co_filename:
        frame = frame.f_back
    return frame.f_code.co_filename == _place.file
