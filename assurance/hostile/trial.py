"""One command on one machine."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from .judge import judge
from .place import Place, Prepared
from .registry import Command, Machine, Wrong


@dataclass(frozen=True)
class Outcome:
    machine: str
    level: str
    command: str
    #: What it did that it must not; empty: nothing.
    wrong: str = ""
    #: It did what it does on a friendly machine.
    worked: bool = False
    #: What it said of its failure.
    said: str = ""

    def line(self) -> str:
        return json.dumps(asdict(self))


def tried(machine: Machine, command: Command, prepared: Prepared) -> Iterator[Outcome]:
    """At each level; at the first alone, of a command that makes nothing."""
    for level in machine.levels if command.makes else machine.levels[:1]:
        told = "" if level is None else f"{level:g}"
        try:
            worked, said = _tried(machine, command, prepared, level)
        except Wrong as wrong:
            yield Outcome(machine.name, told, command.name, wrong=str(wrong))
        except Exception as error:  # a trial that ends otherwise has shown nothing
            yield Outcome(machine.name, told, command.name, wrong=f"{type(error).__name__}: {error}")
        else:
            yield Outcome(machine.name, told, command.name, worked=worked, said=said)


def _tried(machine: Machine, command: Command, prepared: Prepared, level: float | None) -> tuple[bool, str]:
    with tempfile.TemporaryDirectory(prefix="hostile-", ignore_cleanup_errors=True) as folder, ExitStack() as stack:
        Path(folder).chmod(0o755)
        place = stack.enter_context(Place(Path(folder) / "place", prepared, command).made())
        start = stack.enter_context(machine.enter(place, level))
        with ThreadPoolExecutor(start.times) as pool:
            places = [place, *(place.twin(number) for number in range(1, start.times))]
            for each in places:
                each.found = each.listed()
            calls = [pool.submit(each.call, start) for each in places]
        for each, call in zip(places, calls, strict=True):
            judge(each, command, machine, start, call.result())
        failed = [call.result() for call in calls if call.result().code != int(prepared.said(command, "code"))]
        return not failed, "".join((done.err or done.out).strip() for done in failed)
