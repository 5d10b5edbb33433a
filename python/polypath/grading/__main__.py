"""The process of a submission: python -m polypath.grading, with what to do as JSON on standard input.

Everything is imported before the limits hold, so they are for the submission alone.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

from polypath.grading import work
from polypath.grading.rubric import Rubric, load

#: The most that a submission may write into one file.
_LARGEST_FILE = 64_000_000


def main() -> None:
    task: dict[str, Any] = json.load(sys.stdin)
    _silence()
    try:
        _work(task)
        code = 0
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}".encode("utf-8", "replace"))
        code = 1
    # what a submission left behind, such as threads and functions for the end, has no say any more
    os._exit(code)


def _work(task: dict[str, Any]) -> None:
    rubric = load(Path(task["rubric"]))
    room = Path(task["room"])
    os.chdir(room)
    with Path(task["result"]).open("w", encoding="utf-8") as result:
        if task["reference"] is not None:
            found = work.tried(rubric, rubric.reference(task["reference"]))
        else:
            _limit(rubric)
            found = work.submitted(rubric, Path(task["file"]), room)
        json.dump(found.data(), result)


def _silence() -> None:
    """What a submission prints goes nowhere; standard error keeps what Python and the core say at their end."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115


def _limit(rubric: Rubric) -> None:
    limits = rubric.said.limits
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = round(used.ru_utime + used.ru_stime + limits.cpu / 1e9 + 0.5)
    _lower(resource.RLIMIT_CPU, cpu, cpu + 1)
    with Path("/proc/self/statm").open(encoding="ascii") as statm:
        now = int(statm.read().split()[0]) * resource.getpagesize()
    _lower(resource.RLIMIT_AS, now + limits.memory)
    _lower(resource.RLIMIT_FSIZE, _LARGEST_FILE)
    _lower(resource.RLIMIT_CORE, 0)
    # the process that waits for this one may be gone by then
    signal.setitimer(signal.ITIMER_REAL, limits.wall / 1e9 + 30)


def _lower(what: int, soft: int, hard: int | None = None) -> None:
    """Sets a limit, unless there is a stricter one."""
    most = resource.getrlimit(what)[1]
    wanted = (soft, soft if hard is None else hard)
    resource.setrlimit(what, wanted if most == resource.RLIM_INFINITY else (min(soft, most), min(wanted[1], most)))


if __name__ == "__main__":
    main()
