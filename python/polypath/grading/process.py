"""Submissions in processes of their own, several at a time, each with limits on CPU time, memory and files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

from polypath.grading.rubric import Rubric
from polypath.grading.submission import Submission
from polypath.grading.work import Found
from polypath.units import SIZE, TIME

Outcome = Found

#: Of what a process said at its end, so much is looked at.
_LAST_BYTES: Final = 10_000
#: What the core and Python say where memory is not to be had.
_NO_MEMORY: Final = ("memory allocation of", "MemoryError", "Cannot allocate memory", "failed to map")
#: Libraries start a thread for each core otherwise, and the limit on memory counts their stacks.
_ONE_THREAD: Final = {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def run(
    rubric: Rubric, submissions: Sequence[Submission], jobs: int, told: Callable[[int, int], None]
) -> tuple[dict[str, Outcome], list[Outcome]]:
    """What was seen of each reference by name, and of each submission in order; `told` is given how many are done."""
    tasks = [{"reference": name, "file": None} for name in rubric.said.reference]
    tasks += [{"reference": None, "file": str(each.file.absolute())} for each in submissions]
    with _Processes(rubric) as processes, ThreadPoolExecutor(max(1, jobs)) as pool:
        try:
            found = []
            for done, outcome in enumerate(pool.map(processes.run, tasks), start=1):
                found.append(outcome)
                told(done, len(tasks))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            processes.stop()
            raise
    first = len(rubric.said.reference)
    return dict(zip(rubric.said.reference, found[:first], strict=True)), found[first:]


class _Processes:
    """The processes that run, which end with this object."""

    def __init__(self, rubric: Rubric) -> None:
        self._rubric = rubric
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False
        self._lock = threading.Lock()

    def __enter__(self) -> _Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends all that run, and starts none any more."""
        with self._lock:
            self._stopped = True
            for each in self._running:
                _kill(each)

    def run(self, task: Mapping[str, str | None]) -> Outcome:
        """What was seen of one task, whatever it did."""
        with tempfile.TemporaryDirectory(prefix="polypath-grade-", ignore_cleanup_errors=True) as made:
            place = Path(made)
            room = place / "room"
            room.mkdir()
            result, said = place / "result.json", place / "said"
            given = {**task, "rubric": str(self._rubric.file.absolute()), "room": str(room), "result": str(result)}
            with said.open("wb") as heard:
                command = [sys.executable, "-P", "-m", "polypath.grading"]
                environment = {**os.environ, **_ONE_THREAD}
                with self._lock:
                    if self._stopped:
                        return Found(problem="it was not run")
                    process = subprocess.Popen(
                        command,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.DEVNULL,
                        stderr=heard,
                        env=environment,
                        start_new_session=True,
                    )
                    self._running.add(process)
            guard = _Guard(process, self._rubric.said.limits.wall / 1e9)
            try:
                assert process.stdin is not None
                with suppress(BrokenPipeError), process.stdin:
                    process.stdin.write(json.dumps(given).encode())
                # until it is waited for, no other process has its number
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
                used = _cpu_s(process.pid)
            finally:
                guard.cancel()
                with self._lock:
                    _kill(process)  # with all that it started
                    process.wait()
                    self._running.discard(process)
            return self._outcome(process.returncode, result, _end_of(said), used, late=guard.struck)

    def _outcome(self, code: int, result: Path, said: str, used: float, *, late: bool) -> Outcome:
        limits = self._rubric.said.limits
        if late:
            return Found(problem=f"stopped after {TIME.format(limits.wall)} on the clock")
        if code == 0:
            try:
                return Found.of(json.loads(result.read_text(encoding="utf-8")), len(self._rubric.criteria))
            except (OSError, ValueError, RecursionError):
                return Found(problem="it ended the process that ran it, with exit code 0")
        if any(each in said for each in _NO_MEMORY):
            return Found(problem=f"stopped: it needed more than {SIZE.format(limits.memory)} of memory")
        if code == -signal.SIGXCPU or (code == -signal.SIGKILL and used >= limits.cpu / 1e9):
            return Found(problem=f"stopped after {TIME.format(limits.cpu)} of CPU time")
        last = said.strip().splitlines()[-1:] or [""]
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return Found(problem=f"it ended the process that ran it, {how}" + (f": {last[0][:200]}" if last[0] else ""))


class _Guard:
    """Ends a process after a time on the clock."""

    def __init__(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        self.struck = False
        self._process = process
        self._timer = threading.Timer(seconds, self._strike)
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        self._timer.cancel()
        self._timer.join()

    def _strike(self) -> None:
        self.struck = True
        _kill(self._process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _cpu_s(pid: int) -> float:
    """The CPU time of a process that has ended and is not waited for yet (proc(5), fields 14 and 15 of stat)."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    user, system = text.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _end_of(file: Path) -> str:
    with file.open("rb") as opened:
        opened.seek(max(0, file.stat().st_size - _LAST_BYTES))
        return opened.read().decode("utf-8", "replace")
