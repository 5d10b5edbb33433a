"""Schedulers that a scenario takes from a C file for the Linux kernel: "mine.c"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from polypath.registry import RegistryError
from polypath.scenario.errors import ScenarioError
from polypath.scenario.reading import read_text

NAME: Final = "c"
"""What a plan calls a scheduler that it carries in C."""

PATTERN: Final = r"^[^:]+\.c$"
_FILE: Final = re.compile(PATTERN)
_REGISTERS: Final = re.compile(r"^\s*OWN_SCHEDULER\s*\(", re.MULTILINE)
_PLACE: Final = "scheduler"


def is_file(name: str) -> bool:
    """Whether a scheduler's name is that of a C file."""
    return _FILE.match(name) is not None


def is_at(place: Sequence[str | int], text: str) -> bool:
    """Whether a text at a place of a scenario names a C file."""
    steps = [step.rpartition(".")[2] for step in place if isinstance(step, str)]
    if not is_file(text) or not steps:
        return False
    return steps[-1] == _PLACE or (len(steps) > 1 and steps[-1] == "kind" and steps[-2] == _PLACE)


def parameters(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """What a plan carries of it: its source, so that the plan runs anywhere. Raises RegistryError."""
    for key in given:
        raise RegistryError(f"{name} takes no parameters: it is C", key=key)
    try:
        source = read_text(Path(name), "C file")
    except ScenarioError as error:
        raise RegistryError(str(error), error.hint) from error
    if not _REGISTERS.search(source):
        raise RegistryError(f"{name} has no OWN_SCHEDULER(CHOOSE), which makes a function of it a scheduler")
    return {"file": Path(name).name, "source": source}
