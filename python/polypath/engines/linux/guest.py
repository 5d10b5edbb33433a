"""Booting the guest: its kernel, its folder, its process without root's rights."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from polypath.engines.base import EngineError
from polypath.engines.linux import processor
from polypath.engines.linux.kernel import Installed, KernelError
from polypath.engines.namespaces import programs, run

LIMIT = run.Limit("POLYPATH_LINUX_LIMIT", 600.0)

_INIT = Path(__file__).with_name("init.sh")
_PREFIX = "polypath-linux-"
_NOBODY = 65534
#: What a kernel prints when something in it is wrong.
_TROUBLE = re.compile(
    r"\b(WARNING|BUG|KASAN|UBSAN|Oops|INFO):|Kernel panic|Oops|general protection|refcount_t"
    r"|possible (circular|recursive) locking|inconsistent lock state|suspicious RCU usage"
)


def folder(
    kernel: Installed, files: Mapping[str, str], executables: Mapping[str, Path]
) -> AbstractContextManager[Path]:
    """The run's folder with everything in it, as an unprivileged user's."""
    programs.require_tools("linux")
    owner = _NOBODY if os.geteuid() == 0 else None
    return run.folder(_PREFIX, files, {**executables, "linux": kernel.binary, "init": _INIT}, owner)


def boot(path: Path, seed: int, memory_mb: int, progress: Callable[[int], None]) -> bool:
    """Runs the guest to its end. True where Ctrl-C ended it. Raises EngineError with the guest's last words."""
    with processor.reserved() as number:
        ended = run.follow(command(seed, memory_mb), path, LIMIT, progress, number)
    if not ended.interrupted:
        _judge(ended)
    return ended.interrupted


def command(seed: int, memory_mb: int) -> list[str]:
    """What boots the guest in its folder. Raises KernelError."""
    # the command line is part of the guest's entropy: what differs from run to run, such as paths, must not be in it
    return [
        *_restrictions(),
        # before 6.13 a guest's program inherits the C library's area for restartable sequences, and dies of it
        "env",
        "GLIBC_TUNABLES=glibc.pthread.rseq=0",
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
        "time-travel=inf-cpu",
        "time-travel-start=1700000000000000000",
        f"randseed={seed}",
    ]


def _judge(ended: run.Ended) -> None:
    trouble = [line for line in ended.log if _TROUBLE.search(line)]
    if trouble:
        raise EngineError(f"the guest's kernel complained: {trouble[0]}")
    run.judge(ended)
    if ended.code != 0 and not ended.log:
        raise EngineError(f"the guest did not boot (exit code {ended.code})")


def _restrictions() -> list[str]:
    """A wrapper that takes root's rights from the guest."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        raise KernelError(
            "as root, engine linux needs setpriv, to run without root's rights (apt-get install util-linux)"
        )
    return ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", "--no-new-privs"]
