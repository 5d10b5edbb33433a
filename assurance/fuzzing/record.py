"""The record: a line for each slice of fuzzing, in the order in which they ended."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

RECORD: Final = Path(__file__).parent / "record.jsonl"
CLEAN: Final = "clean"


class Taken(Exception):
    """Another campaign writes the record."""


@dataclass(frozen=True)
class Line:
    """A slice: what one fuzzer did at a stretch."""

    #: When it ended, UTC.
    date: str
    #: Of the program that ran, "+" after it if its sources differed from that commit.
    commit: str
    fuzzer: str
    #: User and system time of the process.
    cpu_seconds: float
    executions: int
    #: "clean", "crash" or "hang".
    outcome: str
    #: The seeds of the cases: the first, and the one after the last.
    seeds: tuple[int, int] | None = None
    #: What makes it crash again: the name of a file, or a seed.
    artefact: str | None = None

    def json(self) -> str:
        return json.dumps({key: value for key, value in asdict(self).items() if value is not None})

    @classmethod
    def load(cls, text: str) -> Line:
        read = json.loads(text)
        seeds = read.pop("seeds", None)
        return cls(**read, seeds=None if seeds is None else (seeds[0], seeds[1]))


def lines(path: Path = RECORD) -> Iterator[Line]:
    """What is there already; a line that was cut is left out."""
    if path.exists():
        for text in path.read_text(encoding="utf-8").splitlines():
            if text.startswith("{") and text.endswith("}"):
                yield Line.load(text)


class Record:
    """The file while a campaign has it."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self.lines = list(lines(path))
        # A line that was cut stays as it is; the next one begins below it.
        self._gap = "" if path.read_bytes().endswith((b"\n",)) or not path.stat().st_size else "\n"

    def append(self, line: Line) -> None:
        os.write(self._descriptor, f"{self._gap}{line.json()}\n".encode())
        os.fsync(self._descriptor)
        self._gap = ""
        self.lines.append(line)


@contextmanager
def opened(path: Path = RECORD) -> Iterator[Record]:
    """For this process alone. Raises Taken."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield Record(descriptor, path)
    except BlockingIOError:
        raise Taken(f"another campaign writes {path.name}") from None
    finally:
        os.close(descriptor)
