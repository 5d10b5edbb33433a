"""Slices of fuzzers, one after another, until the CPU time is used up."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from .fuzzers import BUILT, Found, Fuzzer, Slice
from .record import CLEAN, Line, Record

HANG: Final = "hang"
#: Seconds of CPU time beyond those of the slice, fourfold, after which it hangs.
PATIENCE: Final = 300
#: How often ends are looked for, in seconds.
PAUSE: Final = 0.1


@dataclass
class Running:
    fuzzer: Fuzzer
    slice: Slice
    process: subprocess.Popen[bytes]
    printed: Path
    told: bool = False

    @classmethod
    def start(cls, fuzzer: Fuzzer, slice_: Slice, patience: int) -> Running:
        command = slice_.command
        printed = BUILT / "printed" / f"{fuzzer.name.replace(' ', '-')}.txt"
        printed.parent.mkdir(parents=True, exist_ok=True)
        with printed.open("wb") as file:
            process = subprocess.Popen(
                command.words,
                cwd=command.folder,
                env={**os.environ, **command.variables},
                stdin=subprocess.DEVNULL,
                # Ctrl-C is for this program alone
                start_new_session=True,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        # The kernel ends what hangs, even without this program.
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (patience, patience + 1))
        if command.memory:
            resource.prlimit(process.pid, resource.RLIMIT_AS, (command.memory, command.memory))
        return cls(fuzzer, slice_, process, printed)

    def tell(self) -> None:
        """Asks it to end, if it knows how to."""
        if self.slice.seconds is not None and not self.told:
            self.told = True
            os.kill(self.process.pid, signal.SIGUSR1)

    def look(self) -> None:
        """Asks it to end if it used up its time."""
        if self.slice.seconds is not None and cpu_seconds(self.process.pid) >= self.slice.seconds:
            self.tell()

    def end(self, code: int, cpu: float) -> tuple[Line, Found]:
        self.process.returncode = code
        found = self.slice.found(code, self.printed.read_text(encoding="utf-8", errors="replace"))
        outcome = HANG if code == -signal.SIGXCPU else found.outcome
        date = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        line = Line(
            date,
            self.fuzzer.commit,
            self.fuzzer.name,
            round(cpu, 2),
            found.executions,
            outcome,
            found.seeds,
            found.artefact,
        )
        return line, found

    def kill(self) -> None:
        """What it did is lost."""
        self.process.kill()
        self.process.wait()


def cpu_seconds(pid: int) -> float:
    """So far, of a child that was not waited for; proc(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def first_in_turn(fuzzers: Sequence[Fuzzer], lines: Sequence[Line]) -> list[Fuzzer]:
    """The one first that did not run for longest."""
    last = {line.fuzzer: number for number, line in enumerate(lines)}
    return sorted(fuzzers, key=lambda fuzzer: last.get(fuzzer.name, -1))


def reap(running: dict[int, Running]) -> tuple[Running, int, float]:
    """Waits for the next to end: its exit code, and its CPU time."""
    while True:
        for pid, it in list(running.items()):
            it.look()
            ended, status, usage = os.wait4(pid, os.WNOHANG)
            if ended:
                del running[pid]
                return it, os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
        time.sleep(PAUSE)


def campaign(fuzzers: Sequence[Fuzzer], record: Record, budget: float, slice_seconds: int, jobs: int) -> list[str]:
    """Fuzzes for `budget` seconds of CPU time. The commands that run again what failed; a fuzzer that found something
    rests until the next campaign."""
    used, again = 0.0, list[str]()
    fit = list(fuzzers)
    running: dict[int, Running] = {}
    try:
        while True:
            busy = {it.fuzzer.name for it in running.values()}
            for fuzzer in first_in_turn([it for it in fit if it.name not in busy], record.lines):
                if len(running) >= jobs or used + len(running) * slice_seconds >= budget:
                    break
                slice_ = fuzzer.slice(slice_seconds, record.lines)
                started = Running.start(fuzzer, slice_, 4 * slice_seconds + PATIENCE)
                running[started.process.pid] = started
            if not running:
                return again
            ended, code, cpu = reap(running)
            line, found = ended.end(code, cpu)
            record.append(line)
            used += line.cpu_seconds
            print(f"{used / 3600:7.3f} h  {line.json()}", flush=True)
            if line.outcome != CLEAN:
                fit.remove(ended.fuzzer)
                again.append(found.again or ended.fuzzer.name)
    except KeyboardInterrupt:
        willing = {pid: it for pid, it in running.items() if it.slice.seconds is not None}
        for it in willing.values():
            it.tell()
        while willing:
            ended, code, cpu = reap(willing)
            del running[ended.process.pid]
            record.append(ended.end(code, cpu)[0])
        raise
    finally:
        for it in running.values():
            it.kill()
