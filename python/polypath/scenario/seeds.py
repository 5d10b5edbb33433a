"""The number of seeds of a sweep at each place: a number, or as many as an interval needs.

[vary]
seeds = 10
seeds = { least = 10, most = 200, until = { goodput_mbps = "2 %" } }
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from polypath import units
from polypath.scenario.fields import fault
from polypath.units import UnitError

KEY: Final = "seeds"
MOST: Final = 10_000
#: Left out of a table: how many a place begins with, and has at most.
LEAST_LEFT_OUT: Final = 10
MOST_LEFT_OUT: Final = 200
#: Fewer do not say how wide an interval is.
_FEWEST: Final = 5


@dataclass(frozen=True)
class Width:
    """Half of an interval: a part of the mean, or a number in the measure's unit."""

    number: float
    relative: bool

    def of(self, mean: float) -> float:
        return self.number * abs(mean) if self.relative else self.number

    def __str__(self) -> str:
        return units.format_share(self.number) if self.relative else f"{self.number:g}"


@dataclass(frozen=True)
class Seeds:
    """From `least` on, a place gets more until the intervals of these measures are so narrow, and at most `most`."""

    least: int
    most: int
    until: Mapping[str, Width] = field(default_factory=dict)


def read(given: Any) -> Seeds:
    """What `[vary]` has under `seeds`, once `check` has accepted it."""
    if isinstance(given, int):
        return Seeds(given, given)
    until = {measure: _width(measure, width) for measure, width in given["until"].items()}
    least = given.get("least", LEAST_LEFT_OUT)
    return Seeds(least, given.get("most", max(least, MOST_LEFT_OUT)), until)


def check(given: Any) -> None:
    """Raises a fault where it is none of both."""
    if isinstance(given, dict):
        _check_table(given)
    elif not _is_number(given, 1):
        raise fault(f"expected a number of seeds from 1 to {MOST}", at=(KEY,))


def _check_table(given: dict[str, Any]) -> None:
    known = ("least", "most", "until")
    for name in given:
        if name not in known:
            hint = units.nearest(name, known)
            raise fault(f"unknown key '{name}'" + ("" if hint else f"; there is {', '.join(known)}"), hint, (KEY, name))
    for name in ("least", "most"):
        if name in given and not _is_number(given[name], _FEWEST):
            raise fault(f"'{name}' is a number of seeds from {_FEWEST} to {MOST}", at=(KEY, name))
    until = given.get("until")
    if not isinstance(until, dict) or not until:
        message = 'expected a table of measures and the widths wanted, such as until = { goodput_mbps = "2 %" }'
        raise fault(message, at=(KEY, "until") if "until" in given else (KEY,))
    for measure, width in until.items():
        _width(measure, width)
    seeds = read(given)
    if seeds.most < seeds.least:
        raise fault(f"'most' is {seeds.most}, and a place begins with {seeds.least}", at=(KEY, "most"))


def _is_number(given: Any, least: int) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and least <= given <= MOST


def _width(measure: str, given: Any) -> Width:
    at = (KEY, "until", measure)
    try:
        number = units.parse_share(given) if isinstance(given, str) else given
    except UnitError as error:
        raise fault(error.message, error.hint, at) from error
    if not isinstance(number, int | float) or isinstance(number, bool) or not 0 < number < float("inf"):
        raise fault(f"expected a width above 0, as '2 %' of the mean or as a number, not {given!r}", at=at)
    return Width(float(number), isinstance(given, str))


SCHEMA: Final[dict[str, Any]] = {
    "description": "How many seeds, from the scenario's own upwards; as a table: until the intervals are so narrow.",
    "anyOf": [
        {"type": "integer", "minimum": 1, "maximum": MOST},
        {
            "type": "object",
            "properties": {
                "least": {
                    "type": "integer",
                    "minimum": _FEWEST,
                    "maximum": MOST,
                    "default": LEAST_LEFT_OUT,
                    "description": "How many each place begins with.",
                },
                "most": {
                    "type": "integer",
                    "minimum": _FEWEST,
                    "maximum": MOST,
                    "default": MOST_LEFT_OUT,
                    "description": "How many a place has at most.",
                },
                "until": {
                    "type": "object",
                    "minProperties": 1,
                    "additionalProperties": {
                        "anyOf": [{"type": "string", "pattern": "%$"}, {"type": "number", "exclusiveMinimum": 0}]
                    },
                    "description": "Of each measure half the interval's width: in percent of the mean, or in its unit.",
                },
            },
            "required": ["until"],
            "additionalProperties": False,
        },
    ],
    "examples": [10, {"least": 10, "most": 200, "until": {"goodput_mbps": "2 %"}}],
}
