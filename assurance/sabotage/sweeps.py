"""A sweep that is disturbed, once or several times, and then goes on: nothing of it is lost.

After the last call with the same `--out` the results equal those of an undisturbed sweep, byte for byte, except
computing times. Finished points are not computed again, and the person's own files are unchanged.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.processes import session, wait
from tests.swept import contents

from polypath.results import layout

from .registry import Lost, sabotage

COMMAND = Path(sysconfig.get_path("scripts")) / "polypath"
HERE = Path(__file__).parent
POINTS = 12
SCENARIO = f"""# twelve seeds over two paths
name = "disturbed"
duration = "20 s"

[host.client]
[host.server]

[link.path0]
ends = ["client", "server"]
rate = "20 Mbps"
delay = "10 ms"
loss = "0.2 %"

[link.path1]
ends = ["client", "server"]
rate = "10 Mbps"
delay = "30 ms"

[[application]]
name = "transfer"
kind = "bulk"
transport = "mptcp"

[vary]
seeds = {POINTS}
"""
NOTES = "what I saw\n"
#: A run that takes longer hangs.
LIMIT_S = 300.0

Blow = Callable[[subprocess.Popen[str], random.Random, Path], None]


class Place:
    """A person's folder with a scenario, and a sweep's results in it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.out = folder / "out"
        self.scenario = folder / "sweep.toml"
        self.scenario.write_text(SCENARIO)
        self.own = {self.scenario: SCENARIO, folder / "notes.txt": NOTES}
        (folder / "notes.txt").write_text(NOTES)

    def start(self, *more: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [COMMAND, "run", self.scenario.name, "--out", "out", "--jobs", "2", *more],
            cwd=self.folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, **environment},
        )

    def done(self) -> dict[Path, int]:
        """Points that are there, by when."""
        return {path.parent: path.stat().st_mtime_ns for path in self.out.glob(f"*/{layout.MANIFEST}")}

    def keep_notes(self) -> None:
        """The person writes something into the sweep's own folder, once it is one."""
        if (self.out / layout.INDEX).exists():
            notes = self.out / "notes.txt"
            notes.write_text(NOTES)
            self.own[notes] = NOTES

    def finish(self, *more: str, **environment: str) -> None:
        """Calls the command once more and compares. Raises Lost."""
        before = self.done()
        process = self.start(*more, **environment)
        _, said = process.communicate(timeout=LIMIT_S)
        if process.returncode != 0:
            raise Lost(f"the last call ended with {process.returncode}: {said.strip()}")
        again = [path.name for path, at in self.done().items() if before.get(path, at) != at]
        if again:
            raise Lost(f"computed again: {', '.join(sorted(again))}")
        self.compare()

    def compare(self) -> None:
        for path, text in self.own.items():
            if path.read_text() != text:
                raise Lost(f"{path.name} of the person's has changed")
        own = {str(path.relative_to(self.out)) for path in self.own if path.is_relative_to(self.out)}
        found = {name: content for name, content in contents(self.out).items() if name not in own}
        expected = undisturbed()
        if missing := expected.keys() - found.keys():
            raise Lost(f"missing: {', '.join(sorted(missing))}")
        if more := found.keys() - expected.keys():
            raise Lost(f"left behind: {', '.join(sorted(more))}")
        if other := [name for name in expected if expected[name] != found[name]]:
            raise Lost(f"differs: {', '.join(other)}")


@cache
def undisturbed() -> Mapping[str, bytes]:
    """What a sweep leaves that nobody disturbs."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        process = place.start()
        _, said = process.communicate(timeout=LIMIT_S)
        if process.returncode != 0:
            raise Lost(f"undisturbed, the sweep ended with {process.returncode}: {said}")
        return contents(place.out)


def disturbed(place: Place, draw: random.Random, blow: Blow, *more: str, **environment: str) -> int:
    """One to three calls that are each dealt a blow, at any time of theirs; then one that is not."""
    blows = draw.randint(1, 3)
    for _ in range(blows):
        process = place.start(*more, **environment)
        count = len(place.done()) + draw.randrange(POINTS // 2)
        wait(lambda count=count, process=process: len(place.done()) >= count or process.poll() is not None)  # type: ignore[misc]
        time.sleep(draw.uniform(0, 1.5) if draw.random() < 0.5 else draw.uniform(0, 0.05))
        blow(process, draw, place.out)
        _, said = process.communicate(timeout=LIMIT_S)
        wait(lambda process=process: not session(process.pid))  # type: ignore[misc]
        if "Traceback" in said:
            raise Lost(f"a traceback: {said.strip()}")
        place.keep_notes()
    place.finish(*more)
    return blows


def _group(process: subprocess.Popen[str]) -> list[str]:
    return [each for each in session(process.pid) if each != str(process.pid)]


def kill(process: subprocess.Popen[str], draw: random.Random, out: Path) -> None:
    """The command with all its workers."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@sabotage("sweep-killed", "sweep", "kill -9 of the command with all its workers")
def killed(draw: random.Random, folder: Path) -> int:
    return disturbed(Place(folder), draw, kill)


@sabotage("sweep-command-killed", "sweep", "kill -9 of the command alone")
def command_killed(draw: random.Random, folder: Path) -> int:
    def blow(process: subprocess.Popen[str], draw: random.Random, out: Path) -> None:
        process.kill()

    return disturbed(Place(folder), draw, blow)


@sabotage("sweep-worker-killed", "sweep", "kill -9 of one worker")
def worker_killed(draw: random.Random, folder: Path) -> int:
    def blow(process: subprocess.Popen[str], draw: random.Random, out: Path) -> None:
        if workers := [each for each in _group(process) if _is_worker(each)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(draw.choice(workers)), signal.SIGKILL)

    return disturbed(Place(folder), draw, blow)


def _is_worker(process: str) -> bool:
    """Whether it runs points; loky has another process that keeps count of what they share."""
    try:
        return "resource_tracker" not in Path("/proc", process, "cmdline").read_text(encoding="utf-8")
    except OSError:
        return False


#: What a terminal, a shell or a batch system may send.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
HARMLESS = (signal.SIGCONT, signal.SIGWINCH, signal.SIGURG, signal.SIGCHLD)


def storm(process: subprocess.Popen[str], draw: random.Random) -> int:
    """Dozens of signals within a moment, also a stop now and then; returns how many."""
    count = draw.randint(5, 60)
    for _ in range(count):
        number = draw.choice((*ENDING, *HARMLESS, signal.SIGSTOP))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
            time.sleep(draw.uniform(0, 0.02))
            os.killpg(process.pid, signal.SIGCONT)
    return count


@sabotage(
    "sweep-signals", "sweep", "storms of SIGINT, SIGTERM, SIGHUP, SIGSTOP and harmless signals to all its processes"
)
def signals(draw: random.Random, folder: Path) -> int:
    def blow(process: subprocess.Popen[str], draw: random.Random, out: Path) -> None:
        storm(process, draw)

    return disturbed(Place(folder), draw, blow)


@contextlib.contextmanager
def disk(folder: Path, size: str) -> Iterator[None]:
    """A file system of its own there."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "sabotage", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def _remount(folder: Path, option: str) -> bool:
    command = ["mount", "-o", f"remount,{option}", str(folder)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


@sabotage("sweep-full-disk", "sweep", "a disk that becomes full during the sweep", mounts=True)
def full_disk(draw: random.Random, folder: Path) -> int:
    needed = sum(map(len, undisturbed().values())) // 1024
    with disk(folder, f"{draw.randint(needed // 10, needed)}k"):
        place = Place(folder / "home")
        blows = draw.randint(1, 3)
        for _ in range(blows):
            process = place.start()
            _, said = process.communicate(timeout=LIMIT_S)
            if "Traceback" in said:
                raise Lost(f"a traceback: {said.strip()}")
            if process.returncode not in (0, 2) or (process.returncode and not said.strip()):
                raise Lost(f"ended with {process.returncode}: {said.strip()}")
        _remount(folder, "size=1g")
        place.keep_notes()
        place.finish()
    return blows


@sabotage("sweep-read-only", "sweep", "a file system that becomes read-only during the sweep", mounts=True)
def read_only(draw: random.Random, folder: Path) -> int:
    def blow(process: subprocess.Popen[str], draw: random.Random, out: Path) -> None:
        # as long as a file is open for writing the kernel refuses
        while process.poll() is None and not _remount(folder, "ro"):
            time.sleep(0.001)
        time.sleep(draw.uniform(0, 1))
        if draw.random() < 0.5:
            process.wait(timeout=LIMIT_S)
        _remount(folder, "rw")

    with disk(folder, "1g"):
        return disturbed(Place(folder / "home"), draw, blow)


def _preloaded(name: str, folder: Path) -> Path:
    library = folder / f"{name}.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, HERE / f"{name}.c"], check=True)
    return library


@sabotage("sweep-clock", "sweep", "a clock that jumps by up to ten years, back and forth, and kill -9")
def clock(draw: random.Random, folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    told = folder / "clock"
    told.write_text("0")
    library = _preloaded("clock", folder)

    def blow(process: subprocess.Popen[str], draw: random.Random, out: Path) -> None:
        for _ in range(draw.randint(1, 5)):
            told.write_text(str(draw.choice((-1, 1)) * draw.randint(1, 3650) * 86_400))
            time.sleep(draw.uniform(0, 0.3))
        if draw.random() < 0.5:
            kill(process, draw, out)

    return disturbed(Place(folder / "home"), draw, blow, LD_PRELOAD=str(library), CLOCK_OFF=str(told))


@sabotage("sweep-slow-disk", "sweep", "a disk on which each write, rename and sync takes up to 50 ms, and kill -9")
def slow_disk(draw: random.Random, folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    return disturbed(Place(folder / "home"), draw, kill, LD_PRELOAD=str(_preloaded("slow", folder)))


@sabotage("sweep-two-at-once", "sweep", "a second command for the same folder while the first one runs")
def two_at_once(draw: random.Random, folder: Path) -> int:
    def blow(process: subprocess.Popen[str], draw: random.Random, out: Path) -> None:
        other = place.start()
        _, said = other.communicate(timeout=LIMIT_S)
        if other.returncode not in (0, 2) or "Traceback" in said:
            raise Lost(f"the second command ended with {other.returncode}: {said.strip()}")

    place = Place(folder)
    return disturbed(place, draw, blow)
