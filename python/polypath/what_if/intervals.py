"""Values of a scenario that are known within an interval, stated in a comment beside each, as in twins.

delay = "9 ms"  # one way, half of the least round trip; 8.8 to 9.2 ms
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Item

from polypath.scenario import draws

_NUMBER: Final = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_INTERVAL: Final = re.compile(rf"(?:^#|;) *(?P<low>{_NUMBER}) to (?P<high>{_NUMBER}) (?P<unit>[A-Za-z%]+)$")
_WHOLE: Final = ("packets",)


@dataclass(frozen=True)
class Interval:
    """A key of a scenario, and between which values it lies."""

    key: str
    low: float
    high: float
    unit: str

    def setting(self, seed: int) -> str:
        """A value between them as a setting, evenly drawn for this seed."""
        value = self.low + draws.fraction(f"interval {self.key} {seed}") * (self.high - self.low)
        return f"{self.key}={round(value) if self.unit in _WHOLE else f'{value:.6g}'} {self.unit}"


def intervals(text: str) -> list[Interval]:
    """Those of a scenario's text."""
    try:
        return list(_below(tomlkit.parse(text), ""))
    except TOMLKitError:
        return []


def _below(table: Any, path: str) -> Iterator[Interval]:
    for key, value in table.items():
        if hasattr(value, "items"):
            yield from _below(value, f"{path}{key}.")
        elif isinstance(value, Item) and (found := _INTERVAL.search(value.trivia.comment)):
            yield Interval(f"{path}{key}", float(found["low"]), float(found["high"]), found["unit"])
