"""The scenarios of `polypath compare --all`. A file here with an entry in catalogue.toml is one."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from polypath.scenario import Scenario

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Entry:
    """A scenario of the comparison."""

    name: str
    #: Runs on each engine, with seeds from 1 on; figures are their means.
    seeds: int = 1
    #: Why the engines are known to differ; empty: they should not.
    cause: str = ""

    def scenario(self) -> Scenario:
        return Scenario.load(FOLDER / f"{self.name}.toml")


@lru_cache(maxsize=1)
def catalogue() -> tuple[Entry, ...]:
    """Every entry, in the catalogue's order."""
    data = tomllib.loads((FOLDER / "catalogue.toml").read_text("utf-8"))
    return tuple(Entry(**entry) for entry in data["entry"])
