"""The labs of the package, and those of one's own: folders with a lab.toml."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path

from polypath.labs.lab import FILE, Lab
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


def find(name: str | Path) -> Lab | None:
    """The lab of that name, or of one's own in that folder; None if there is neither. Raises ScenarioError for a
    lab.toml that is wrong.
    """
    if name in names():
        return _lab(str(name))
    from polypath.labs import own  # with the measures, which a lab of the package does not need

    folder = own.folder_of(Path(name))
    return None if folder is None else own.load(folder)


def get(name: str | Path) -> Lab:
    """The lab of that name or in that folder, no other being read; raises ScenarioError with the nearest name."""
    if (found := find(name)) is not None:
        return found
    if Path(name).is_dir():
        raise ScenarioError(f"{name} is no folder of a lab: {FILE} is missing; polypath new lab NAME writes one")
    hint = nearest(str(name), names())
    message = f"unknown lab '{name}'"
    raise ScenarioError(message if hint else f"{message}; there is {', '.join(names())}", hint=hint)
