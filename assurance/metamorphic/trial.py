"""A scenario under the relations that are drawn for it, and a scenario that fails, made smaller."""

from __future__ import annotations

import copy
import json
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from polypath import ScenarioError

from . import drawn, toml
from .case import Case
from .families import ALL, Broken, Relation, Unfit

#: Relations that a scenario is held to, of those that fit.
EACH = 5


@dataclass(frozen=True)
class Row:
    """What came of a scenario."""

    number: int
    #: Why the scenario is none, if it is none.
    refused: str | None = None
    #: The names of the relations that were applied.
    applied: list[str] = field(default_factory=list)
    #: By name, of those that do not hold, how.
    broken: dict[str, str] = field(default_factory=dict)

    def json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, line: str) -> Row:
        return cls(**json.loads(line))


def in_turn(number: int) -> list[Relation]:
    """All relations in the order in which a scenario tries them: each comes early as often as its weight says."""
    random = Random(f"relations {number}")
    return sorted(ALL.values(), key=lambda each: -(random.random() ** (1 / each.weight)))


def tried(number: int) -> Row:
    """The scenario with this number under some relations."""
    with tempfile.TemporaryDirectory(prefix="metamorphic-") as folder:
        case = Case(drawn.scenario(number), Path(folder))
        try:
            case.plan  # noqa: B018, raises ScenarioError
        except ScenarioError as error:
            return Row(number, refused=str(error).splitlines()[0])
        row = Row(number)
        for each in in_turn(number):
            if len(row.applied) == EACH:
                break
            try:
                found = fault(each, case)
            except Unfit:
                continue
            row.applied.append(each.name)
            if found is not None:
                row.broken[each.name] = found
        return row


def fault(of: Relation, case: Case) -> str | None:
    """How the relation does not hold of a scenario; None where it does. Raises Unfit."""
    try:
        of.check(case, Random(f"{of.name} {case.data.get('seed')}"))
    except Unfit:
        raise
    except Broken as broken:
        return str(broken)
    except Exception as error:  # whatever a scenario that runs leads to is a fault
        return f"{type(error).__name__}: {error}"
    return None


def fault_of_text(of: Relation, text: str) -> str | None:
    """As `fault`; None also where the text is no scenario, or none that the relation speaks of."""
    with tempfile.TemporaryDirectory(prefix="metamorphic-") as folder:
        case = Case(text, Path(folder))
        try:
            case.recording  # noqa: B018, raises what a scenario that cannot run does
            return fault(of, case)
        except Exception:
            return None


def reduced(of: Relation, text: str) -> str:
    """A scenario of which the relation does not hold in the same way, and holds when any one part or setting more is
    left out."""
    way = _way(fault_of_text(of, text))
    data = tomllib.loads(text)
    smaller = True
    while smaller:
        smaller = False
        for candidate in _without_one(data):
            if _way(fault_of_text(of, toml.text(candidate))) == way:
                data, smaller = candidate, True
                break
    return toml.text(data)


def _way(fault: str | None) -> str:
    """The table or the exception with which a fault begins."""
    return "" if fault is None else fault.split(maxsplit=1)[0]


#: From these a relation draws, or without them it is another scenario.
_STAY = frozenset({"seed", "kind", "ends", "at", "name"})


def _without_one(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The scenario without one part: large ones first."""
    for path in sorted(_paths(data), key=len):
        made = copy.deepcopy(data)
        table: Any = made
        for step in path[:-1]:
            table = table[step]
        del table[path[-1]]
        yield made


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in parts:
        if key not in _STAY and not isinstance(each, list):
            yield (*path, key)
        yield from _paths(each, (*path, key))
