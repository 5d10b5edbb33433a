"""Waiting for processes, and finding those of a run's folder."""

import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

#: What takes that long on the slowest machine hangs.
LIMIT_S = 300.0


def as_in_a_terminal() -> None:
    """For `preexec_fn`: SIGINT interrupts, even if whoever started the tests ignores it, and no file fills the disk."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000_000, most))


def wait(condition: Callable[[], T]) -> T:
    """The condition's first true value; AssertionError after the limit."""
    end = time.monotonic() + LIMIT_S
    while not (value := condition()):
        assert time.monotonic() < end, "in vain"
        time.sleep(0.02)
    return value


def inside(folder: Path) -> list[str]:
    """Processes whose working directory is the folder, or was until it was removed."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str((process / "cwd").readlink()).removesuffix(" (deleted)") == str(folder):
                found.append(process.name)
        except OSError:
            continue
    return found


def running(process: str) -> bool:
    """Whether it is there and not a zombie that its parent has yet to collect."""
    try:
        return Path("/proc", process, "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _of_session(leader: int) -> Iterator[tuple[str, list[str]]]:
    """Processes of the session, each with what follows its name in its stat."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader:
            yield process.name, fields


def session(leader: int) -> list[str]:
    """Processes of the session that run."""
    return [process for process, fields in _of_session(leader) if fields[0] != "Z"]


def cpu_seconds(leader: int) -> float:
    """CPU time of the session's processes and of those that they have collected."""
    ticks = sum(int(each) for _, fields in _of_session(leader) for each in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def captured(out: Path) -> int:
    """Bytes in the captures of a run that goes on."""
    return sum(path.stat().st_size for path in out.glob(".polypath.partial/capture/*"))
