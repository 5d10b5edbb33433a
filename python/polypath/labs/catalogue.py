"""The labs that come with the project. A folder with a lab.toml is one."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from polypath.labs.lab import Lab
from polypath.scenario import ScenarioError
from polypath.units import nearest

FOLDER = Path(__file__).parent


@lru_cache(maxsize=1)
def _labs() -> tuple[Lab, ...]:
    return tuple(Lab.load(path.parent) for path in sorted(FOLDER.glob("*/lab.toml")))


def catalogue() -> dict[str, Lab]:
    """Every lab by name, in alphabetical order."""
    return {lab.name: lab for lab in _labs()}


def get(name: str) -> Lab:
    """The lab of that name; raises ScenarioError with the nearest name otherwise."""
    labs = catalogue()
    if name not in labs:
        hint = nearest(name, labs)
        message = f"unknown lab '{name}'"
        raise ScenarioError(message if hint else f"{message}; there is {', '.join(labs)}", hint=hint)
    return labs[name]
