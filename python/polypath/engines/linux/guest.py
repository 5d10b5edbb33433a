"""Booting the guest: its kernel, its folder, its process without root."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from polypath.engines.base import EngineError
from polypath.engines.linux import processor
from polypath.engines.linux.kernel import Installed, KernelError
from polypath.engines.namespaces import programs, run
from polypath.engines.trusted import Executable

LIMIT = run.Limit("POLYPATH_LINUX_LIMIT", 600.0)

_INIT = Path(__file__).with_name("init.sh")
_PREFIX = "polypath-linux-"
_NOBODY = 65534
#: User Mode Linux where its memory's file gets no more room (arch/um/kernel/trap.c, relay_signal, of SIGBUS).
_FULL = "Kernel mode signal 7"
#: What a kernel prints when something in it is wrong.
_TROUBLE = re.compile(
    r"\b(WARNING|BUG|KASAN|UBSAN|Oops|INFO):|Kernel panic|Oops|general protection|refcount_t"
    r"|possible (circular|recursive) locking|inconsistent lock state|suspicious RCU usage"
)


#: Where User Mode Linux keeps the guest's memory in a file that it maps executable, unless TMPDIR names another folder
#: (arch/um/os-Linux/mem.c, choose_tempdir and check_tmpexec).
_MEMORY = Path("/dev/shm")
#: What setpriv cannot do without.
_CAPABILITIES = {"setresuid": "CAP_SETUID", "setresgid": "CAP_SETGID", "setgroups": "CAP_SETGID"}


def folder(
    kernel: Installed, files: Mapping[str, str], executables: Mapping[str, Executable]
) -> AbstractContextManager[Path]:
    """The run's folder with everything in it, for an unprivileged user."""
    programs.require_tools("linux")
    user = _NOBODY if os.geteuid() == 0 else None
    own = {"linux": kernel.executable, "init": Executable(_INIT)}
    return run.folder(_PREFIX, files, {**executables, **own}, user)


def boot(path: Path, seed: int, memory_mb: int, progress: Callable[[int], None]) -> run.Ended:
    """Runs the guest to its end, or until Ctrl-C. Raises EngineError with the guest's last words."""
    with processor.reserved() as number:
        ended = run.follow(command(seed, memory_mb), path, LIMIT, progress, number)
    if not ended.interrupted:
        judge(ended)
        run.require_end(ended, path, "the guest (`polypath kernel status` checks its kernel)")
    return ended


def command(seed: int, memory_mb: int, time: str = "inf-cpu") -> list[str]:
    """What boots the guest in its folder. Raises KernelError."""
    # the command line is part of the guest's entropy: what differs from run to run, such as paths, must not be in it
    return [
        *_restrictions(),
        # before 6.13 a guest's program inherits the C library's area for restartable sequences, and dies of it
        _tool("env"),
        "GLIBC_TUNABLES=glibc.pthread.rseq=0",
        *_memory(),
        "./linux",
        f"mem={memory_mb}M",
        "rootfstype=hostfs",
        "rootflags=/",
        "ro",
        "init=/proc/self/cwd/init",
        "con=null",
        "con0=fd:0,fd:1",
        "ssl=null",
        "quiet",
        # programs under a filter in place of a tracer: half the time; ptrace where the machine allows no filter
        "seccomp=auto",
        f"time-travel={time}",
        "time-travel-start=1700000000000000000",
        f"randseed={seed}",
    ]


def judge(ended: run.Ended) -> None:
    """Raises EngineError with what the guest's kernel, or what runs in or before it, complained about."""
    trouble = [line for line in ended.log if _TROUBLE.search(line)]
    if any(_FULL in line for line in trouble):
        raise EngineError(
            f"{_memory_folder()} ran full, where the guest's memory is; give it more room, such as by "
            "`mount -o remount,size=2G` of it or `docker run --shm-size=2g`"
        )
    if trouble:
        raise EngineError(f"the guest's kernel complained: {trouble[0]}")
    run.complain(ended)
    for line in ended.log:
        if ended.code != 0 and line.startswith("setpriv:"):
            needed = next((name for call, name in _CAPABILITIES.items() if call in line), "more rights")
            raise EngineError(
                f"as root, engine linux gives up root's rights, for which it needs {needed} ({line}); "
                "grant it, or start polypath as an ordinary user"
            )


def _memory() -> list[str]:
    """Has the guest's memory in the run's folder, which may be slow, where its usual place does not do."""
    return [] if _memory_folder() == _MEMORY else ["TMPDIR=."]


def _memory_folder() -> Path:
    needed = stat.S_IWOTH | stat.S_IXOTH
    try:
        usable = _MEMORY.stat().st_mode & needed == needed and not run.is_noexec(_MEMORY)
    except OSError:
        usable = False
    return _MEMORY if usable else Path(tempfile.gettempdir())


def _tool(name: str) -> str:
    """The path of a command of the machine; its name where there is none."""
    return shutil.which(name, path=programs.PATH) or name


def _restrictions() -> list[str]:
    """A wrapper that takes root's rights from the guest."""
    if os.geteuid() != 0:
        return []
    if not Path(setpriv := _tool("setpriv")).is_absolute():
        raise KernelError(
            "as root, engine linux needs setpriv, to run without root's rights (apt-get install util-linux)"
        )
    return [setpriv, f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", "--no-new-privs"]
