"""Limits of the process in which a topology runs, and the actions refused there.

The kernel enforces the limits. The rest is a hook on Python's audit events. It stops habits and mistakes of scripts,
with a message. It does not stop a program written to circumvent it.
"""

from __future__ import annotations

import functools
import os
import posix
import resource
import sys
from typing import Any, NoReturn

from . import _place
from ._place import Refused

#: Events of Python (docs.python.org, "Audit events table") that change nothing outside of the process. Every other one
#: is refused, those of packages and of later versions of Python as well.
_ALLOWED = (
    "array.",
    "builtins.id",
    "code.__new__",
    "compile",
    "cpython._PySys_ClearAuditHooks",
    "cpython.PyInterpreterState_",
    "exec",
    "function.__new__",
    "gc.",
    "glob.glob",
    "import",
    "marshal.",
    "object.__",
    "os.chdir",
    "os.listdir",
    "os.putenv",
    "os.scandir",
    "os.unsetenv",
    "os.walk",
    "os.fwalk",
    "pathlib.Path.glob",
    "pathlib.Path.rglob",
    "pickle.find_class",
    "setopencodehook",
    "sys._current_",
    "sys._getframe",
    "sys.excepthook",
    "sys.monitoring.",
    "sys.unraisablehook",
    "time.sleep",
)
#: What Python has no event for.
_WITHOUT_EVENT = ("mkfifo", "mknod")
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
    for name in _WITHOUT_EVENT:
        for module in (os, posix):
            setattr(module, name, functools.partial(_refuse, f"os.{name}"))
    sys.addaudithook(_hook)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        path, _, flags = arguments
        if isinstance(flags, int) and flags & _WRITING and path != os.devnull:
            raise Refused(f"writing to {path!r} is not allowed: an import reads the topology class and nothing else")
    elif not event.startswith(_ALLOWED) and not (event.startswith("ctypes.") and not _is_own()):
        _refuse(event if event.count(".") else f"{event}(..)")


def _refuse(what: str, *_: Any, **__: Any) -> NoReturn:
    raise Refused(f"{what} is not allowed: an import reads the topology class and nothing else")


def _is_own() -> bool:
    """Whether the file itself asks, and not a package that it imports."""
    frame = sys._getframe(2)
    while frame.f_back is not None and "ctypes" in frame.f_code.co_filename:
        frame = frame.f_back
    return frame.f_code.co_filename == _place.file
