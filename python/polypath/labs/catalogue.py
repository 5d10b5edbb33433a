"""The labs of the package: folders with a lab.toml."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path

from polypath.labs.lab import Lab
from polypath.scenario import ScenarioError
from polypath.units import nearest

FOLDER = Path(__file__).parent


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """The name of every lab, in alphabetical order."""
    return tuple(sorted(path.parent.name for path in FOLDER.glob("*/lab.toml")))


@cache
def _lab(name: str) -> Lab:
    return Lab.load(FOLDER / name)


def catalogue() -> dict[str, Lab]:
    """Every lab by name, in alphabetical order."""
    return {name: _lab(name) for name in names()}


def get(name: str) -> Lab:
    """The lab of that name, no other being read; raises ScenarioError with the nearest name otherwise."""
    if name not in names():
        hint = nearest(name, names())
        message = f"unknown lab '{name}'"
        raise ScenarioError(message if hint else f"{message}; there is {', '.join(names())}", hint=hint)
    return _lab(name)
