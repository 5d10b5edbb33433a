"""Running a topology class in a separate process, within limits of time and memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from polypath.formats.mininet.asked import Asked
from polypath.scenario.errors import ScenarioError

#: Processor time, and time on a clock on the wall, that a topology may take.
CPU_S: Final = 10
WALL_S: Final = 60.0
#: Address space of the process.
MEMORY_BYTES: Final = 2_000_000_000
ANSWER_BYTES: Final = 100_000_000

#: The folder in which a package `mininet` is: ours.
_STANDINS: Final = Path(__file__).parent / "standin"
_PROGRAM: Final = "import sys; sys.path.insert(0, sys.argv[1]); from mininet import _run; _run.main()"


@dataclass(frozen=True)
class Node:
    """A host or switch as the class added it; `line` is None for the topologies of `mn`."""

    name: str
    line: int | None
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Link:
    """A link as the class added it."""

    line: int | None
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Described:
    """What a topology class built."""

    name: str
    nodes: Sequence[Node]
    links: Sequence[Link]
    #: The controllers that were left out on demand.
    left_out: Sequence[str]


def described(file: str | None, text: str | None, asked: Asked, *, leave_controllers_out: bool) -> Described:
    """The graph of a topology. `file` is the name of the file that has `text`. Raises ScenarioError."""
    request = {
        "file": file,
        "text": text,
        "folder": None if file is None else str(Path(file).absolute().parent),
        "name": asked.name,
        "arguments": list(asked.arguments),
        "keywords": dict(asked.keywords),
        "leave_controllers_out": leave_controllers_out,
        "cpu_s": CPU_S,
        "memory_bytes": MEMORY_BYTES,
        "answer_bytes": ANSWER_BYTES,
    }
    origin = f"--topo {asked.text}" if asked.text else file
    answer = _answered(request, file or origin)
    if error := answer.get("error"):
        place = origin if error["line"] is None else file
        raise ScenarioError(error["message"], place, error["line"], error["hint"])
    return Described(
        answer["name"],
        [Node(**each) for each in answer["nodes"]],
        [Link(**each) for each in answer["links"]],
        answer["left_out"],
    )


def _answered(request: Mapping[str, Any], origin: str | None) -> dict[str, Any]:
    with tempfile.TemporaryFile("w+", encoding="utf-8") as asked, tempfile.TemporaryFile("w+b") as answer:
        json.dump(request, asked)
        asked.flush()
        asked.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-X", "utf8", "-c", _PROGRAM, str(_STANDINS)],
            stdin=asked,
            stdout=answer,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
        try:
            code = process.wait(WALL_S)
        except subprocess.TimeoutExpired:
            raise ScenarioError(f"the topology takes longer than {WALL_S:g} s", origin) from None
        finally:
            _end(process)
        answer.seek(0)
        try:
            found = json.loads(answer.read(ANSWER_BYTES + 1))
        except (ValueError, RecursionError):
            raise ScenarioError(_ended(code), origin) from None
    if not isinstance(found, dict):
        raise ScenarioError(_ended(code), origin)
    return found


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kills the process with whatever it started, and collects it."""
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _ended(code: int) -> str:
    if code == -signal.SIGXCPU:
        return f"the topology takes more than {CPU_S} s of processor time"
    if code < 0:
        return f"the process that ran the topology died (signal {-code})"
    return "the topology ended its process without a result"
