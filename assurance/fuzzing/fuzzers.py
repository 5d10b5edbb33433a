"""The fuzzers: the targets of libFuzzer, and the attacks on whole endpoints."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .record import CLEAN, Line

ROOT: Final = Path(__file__).resolve().parents[2]
#: The crate of the targets of libFuzzer.
CRATE: Final = "assurance/fuzz"
BUILT: Final = ROOT / "target" / "fuzzing"
#: Below the seeds are those of tests, which run fixed cases and some of the day.
FIRST_SEED: Final = 1_000_000_000_000
#: Of a test whose speed is not known yet.
FIRST_CASES: Final = 1_000
MEMORY_MB: Final = 2048
#: Seconds that one input may take beside other work.
LONGEST: Final = 300
CRASH: Final = "crash"


def cache() -> Path:
    """Where corpora and artefacts are."""
    base = os.environ.get("XDG_CACHE_HOME") or ""
    root = Path(base) if base.startswith("/") else Path.home() / ".cache"
    return root / "polypath" / "fuzz"


@dataclass(frozen=True)
class Command:
    words: Sequence[str]
    folder: Path
    variables: Mapping[str, str]
    #: Bytes of address space.
    memory: int | None = None


@dataclass(frozen=True)
class Found:
    """What a slice did, by its exit code and what it printed."""

    executions: int
    outcome: str = CLEAN
    seeds: tuple[int, int] | None = None
    artefact: str | None = None
    #: The command that runs it again.
    again: str | None = None


class Slice(ABC):
    """A fuzzer that is about to run for a while."""

    command: Command
    #: CPU time after which it is asked by SIGUSR1 to end; none if it ends by itself.
    seconds: float | None = None

    @abstractmethod
    def found(self, code: int, printed: str) -> Found: ...


class Fuzzer(ABC):
    name: str
    commit: str

    @abstractmethod
    def slice(self, seconds: int, before: Sequence[Line]) -> Slice:
        """The next one, of about so many seconds, after those of the record."""


def state(*sources: str) -> str:
    """The commit, with "+" after it if `sources` differ from it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()

    return git("rev-parse", "--short=9", "HEAD") + ("+" if git("status", "--porcelain", "--", *sources) else "")


def kept(program: Path) -> Path:
    """A copy, which no later build changes."""
    copy = BUILT / "programs" / program.name
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.unlink(missing_ok=True)
    shutil.copy2(program, copy)
    return copy


class Target(Fuzzer):
    """A target of libFuzzer."""

    def __init__(self, name: str, program: Path, commit: str) -> None:
        self.name = f"fuzz {name}"
        self.target = name
        self.program = program
        self.commit = commit

    def slice(self, seconds: int, before: Sequence[Line]) -> Slice:
        return TargetSlice(self, seconds)


class TargetSlice(Slice):
    def __init__(self, of: Target, seconds: int) -> None:
        self.target = of.target
        self.seconds = seconds
        self.artefacts = cache() / "artefacts" / of.target
        corpus = cache() / "corpus" / of.target
        for folder in (self.artefacts, corpus):
            folder.mkdir(parents=True, exist_ok=True)
        if not any(corpus.iterdir()):
            # Without a long input libFuzzer tries short ones for long.
            (corpus / "first").write_bytes(random.Random(1).randbytes(2000))
        options = {
            "rss_limit_mb": MEMORY_MB,
            "timeout": LONGEST,
            "print_final_stats": 1,
            "artifact_prefix": f"{self.artefacts}/",
        }
        words = [str(of.program), *(f"-{name}={value}" for name, value in options.items()), str(corpus)]
        self.command = Command(words, ROOT / CRATE, {})

    def found(self, code: int, printed: str) -> Found:
        counted = re.findall(r"^stat::number_of_executed_units:\s*(\d+)", printed, re.MULTILINE)
        executions = int(counted[-1]) if counted else 0
        # One that has just started does not know the signal yet.
        if code in (0, -signal.SIGUSR1):
            return Found(executions)
        written = re.findall(r"Test unit written to (\S+)", printed)
        path = Path(written[-1]) if written else None
        return Found(
            executions,
            CRASH,
            artefact=path.name if path else None,
            again=f"cargo +nightly fuzz run --fuzz-dir {CRATE} --sanitizer none {self.target}"
            + (f" {path}" if path else ""),
        )


class Attack(Fuzzer):
    """A test of the attacks, on cases that it had not yet."""

    def __init__(self, test: str, program: Path, commit: str) -> None:
        self.name = f"attack {test}"
        self.test = test
        self.program = program
        self.commit = commit

    def slice(self, seconds: int, before: Sequence[Line]) -> Slice:
        own = [line for line in before if line.fuzzer == self.name]
        first = max((line.seeds[1] for line in own if line.seeds), default=FIRST_SEED)
        timed = [line for line in own if line.executions and line.cpu_seconds > 0]
        cases = round(seconds * timed[-1].executions / timed[-1].cpu_seconds) if timed else FIRST_CASES
        return AttackSlice(self, first, max(cases, 1))


class AttackSlice(Slice):
    def __init__(self, of: Attack, first: int, cases: int) -> None:
        self.first, self.cases = first, cases
        self.test = of.test
        self.command = Command(
            [str(of.program), of.test, "--exact", "--nocapture", "--test-threads=1"],
            ROOT / "crates" / "transport",
            {"POLYPATH_FUZZ_FIRST": str(first), "POLYPATH_FUZZ_CASES": str(cases)},
            MEMORY_MB << 20,
        )

    def found(self, code: int, printed: str) -> Found:
        counted = re.search(r": (\d+) cases, ", printed)
        if code == 0 and counted:
            return Found(int(counted[1]), seeds=(self.first, self.first + self.cases))
        again = re.search(r"^again: (POLYPATH_FUZZ_SEED=(\d+) .*)$", printed, re.MULTILINE)
        if again:
            seed = int(again[2])
            return Found(seed + 1 - self.first, CRASH, (self.first, seed + 1), str(seed), again[1])
        variables = " ".join(f"{name}={value}" for name, value in self.command.variables.items())
        return Found(
            0,
            CRASH,
            (self.first, self.first + self.cases),
            again=f"{variables} cargo test -p polypath-transport --test attack {self.test}",
        )


def run(*words: str) -> str:
    """What a command of cargo prints; its progress is seen."""
    return subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def targets() -> list[Fuzzer]:
    """Built with the nightly toolchain. A sanitizer would look for what safe Rust does not do, at a fraction of the
    speed."""
    commit = state(CRATE, "crates")
    folder = BUILT / "libfuzzer"
    run("cargo", "+nightly", "fuzz", "build", "--fuzz-dir", CRATE, "--sanitizer", "none", "--target-dir", str(folder))
    names = run("cargo", "+nightly", "fuzz", "list", "--fuzz-dir", CRATE).split()
    found: list[Fuzzer] = []
    for name in names:
        (program,) = folder.glob(f"*/release/{name}")
        found.append(Target(name, kept(program), commit))
    return found


def attacks() -> list[Fuzzer]:
    """Built with the stable toolchain."""
    commit = state("Cargo.lock", "Cargo.toml", "crates")
    told = run(
        *("cargo", "test", "--profile", "fuzzing", "--locked", "--target-dir", str(BUILT / "attack")),
        *("-p", "polypath-transport", "--test", "attack", "--no-run", "--message-format", "json-render-diagnostics"),
    )
    built = [json.loads(line).get("executable") for line in told.splitlines()]
    (program,) = filter(None, built)
    copy = kept(Path(program))
    listed = re.findall(r"^(\S+): test$", run(str(copy), "--list", "--format", "terse"), re.MULTILINE)
    return [Attack(test, copy, commit) for test in listed if test.startswith(("tcp::", "mptcp::", "quic::"))]
