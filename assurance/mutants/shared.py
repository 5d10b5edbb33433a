"""What mutants of Rust and of Python have in common: how they are drawn, what became of them, what is kept of it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import sqrt
from pathlib import Path
from typing import Final

from tests.processes import cpu_seconds

ROOT: Final = Path(__file__).resolve().parents[2]
WORK: Final = ROOT / "target" / "mutants"
#: A copy of what git knows of, where faults are put in.
TREE: Final = WORK / "tree"

NOTICED: Final = "noticed"
ASLEEP: Final = "asleep"
UNBUILT: Final = "not compilable"
LATE: Final = "timed out"


#: Bytes of memory of a process, as a mutant may never stop to allocate.
MEMORY: Final = 12 << 30


@dataclass(frozen=True)
class Stage:
    """Tests that run together; a later stage only where the ones before it sleep."""

    title: str
    arguments: Sequence[str]
    #: Seconds of CPU time after which the tests are taken for hung.
    limit: int
    #: What they depend on.
    folders: Sequence[str]
    #: By the start of a file's path below the package what cargo is told to try first.
    nearest: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: Mutants of files whose path below the package begins otherwise are none of these tests' business.
    only: str = ""
    #: What cargo is told to run all of them.
    all: Sequence[str] = ("--lib", "--tests")


@dataclass(frozen=True)
class Package:
    """What faults are put into, and what is to notice them."""

    name: str
    folder: str
    stages: Sequence[Stage]
    #: Files that are not mutated.
    left_out: Sequence[str] = ()


@dataclass(frozen=True)
class Verdict:
    """What became of one mutant in one stage."""

    package: str
    name: str
    stage: int
    outcome: str
    #: Digests of the package's code, and of all that tests it.
    code: str
    tests: str

    def json(self) -> str:
        return json.dumps(asdict(self))

    def holds(self, code: str, tests: str) -> bool:
        """Whether it need not be run again: tests that are added take no notice back."""
        return self.code == code and (self.outcome != ASLEEP or self.tests == tests)


def draw(names: Iterable[str], seed: int, package: str, count: int) -> list[str]:
    """So many of the names; a larger draw begins with the smaller one."""
    shuffled = sorted(names)
    random.Random(f"{seed} {package}").shuffle(shuffled)
    return shuffled[:count]


def wilson(hits: int, of: int) -> tuple[float, float]:
    """The score interval of a share at 95 % (Wilson 1927)."""
    if of == 0:
        return 0.0, 1.0
    z, share = 1.959964, hits / of
    middle = share + z * z / (2 * of)
    half = z * sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return max(0.0, (middle - half) / (1 + z * z / of)), min(1.0, (middle + half) / (1 + z * z / of))


def known_to_git() -> list[str]:
    told = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return sorted(name for name in set(told.split("\0")) if name and (ROOT / name).is_file())


def digests(package: Package, stage: Stage) -> tuple[str, str]:
    """Digests of the package's code, and of everything else that the stage tests it with."""
    code, tests = hashlib.sha256(), hashlib.sha256()
    for name in known_to_git():
        if name.startswith((package.folder, *stage.folders)):
            text = (ROOT / name).read_bytes()
            inside = text.find(b"\n#[cfg(test)]\nmod ") if name.endswith(".rs") else -1
            own = text if inside < 0 else text[:inside]
            into = code if name.startswith(package.folder) else tests
            into.update(f"{name}\0".encode() + own + b"\0")
            tests.update(text[len(own) :])
    return code.hexdigest()[:16], tests.hexdigest()[:16]


def fresh_tree() -> None:
    """The copy as the original is; what did not change keeps its time, so that cargo builds it no second time."""
    names = known_to_git()
    extension = ROOT / "python" / "polypath" / "_core.abi3.so"
    if extension.exists():
        names.append(str(extension.relative_to(ROOT)))
    for name in names:
        source, copy = ROOT / name, TREE / name
        if not copy.is_file() or copy.read_bytes() != source.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(source.read_bytes())
            shutil.copymode(source, copy)
    there = {TREE / name for name in names}
    for path in TREE.rglob("*"):
        if path.is_file() and path not in there:
            path.unlink()


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def ended(command: Sequence[str], variables: Mapping[str, str], limit: int) -> int | None:
    """The exit code of a command in the tree; none if it did not end in so many seconds of CPU time.

    What takes none of it, as tests that wait for each other, has ten times as long.
    """
    late = time.monotonic() + 10 * limit
    process = subprocess.Popen(
        command,
        cwd=TREE,
        env={**os.environ, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=limited,
    )
    try:
        while time.monotonic() < late and cpu_seconds(process.pid) < limit:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(0.5)
        return None
    finally:
        # tests that hang are children of what was called
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def kept(path: Path) -> Iterator[Verdict]:
    """What is there already; a line that was cut is left out."""
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                yield Verdict(**json.loads(line))
