"""What a scenario that is handed in may not change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from polypath.scenario import Scenario

#: What is each person's own, or the rubric's.
_ALWAYS_FREE: Final = frozenset({"name", "description", "seed", "vary"})


@dataclass(frozen=True)
class Fixed:
    """Parts of a scenario by their paths, "link.path0.rate" or "host.*.congestion", with all that is below them.

    With `free` parts and no `fixed` ones, everything else is fixed.
    """

    base: Scenario
    fixed: Sequence[str]
    free: Sequence[str]

    def changes(self, scenario: Scenario) -> list[str]:
        """What a scenario has otherwise, each in words; defaults count as if they were written."""
        wanted, given = (dict(_leaves(_data(each))) for each in (self.base, scenario))
        return [
            _said(path, wanted.get(path), given.get(path))
            for path in dict.fromkeys((*wanted, *given))
            if self._holds(path) and wanted.get(path) != given.get(path)
        ]

    def _holds(self, path: str) -> bool:
        steps = path.split(".")
        if steps[0] in _ALWAYS_FREE or any(_is_below(steps, part) for part in self.free):
            return False
        return not self.fixed or any(_is_below(steps, part) for part in self.fixed)


def _is_below(steps: Sequence[str], part: str) -> bool:
    wanted = part.split(".")
    return len(wanted) <= len(steps) and all(map(fnmatchcase, steps, wanted))


def _said(path: str, wanted: Any, given: Any) -> str:
    if wanted is None:
        return f"{path} is {given}, and the exercise has none"
    if given is None:
        return f"{path} is missing, and the exercise fixes {wanted}"
    return f"{path} is {given}, and the exercise fixes {wanted}"


def _data(scenario: Scenario) -> dict[str, Any]:
    data = scenario.model_dump(mode="json", exclude_none=True)
    assert isinstance(data, dict)
    return data


def _leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each single value by its path, in which the members of a list have their names or numbers."""
    before = f"{path}." if path else ""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _leaves(value, f"{before}{key}")
    elif isinstance(node, list) and any(isinstance(each, dict) for each in node):
        for number, value in enumerate(node, start=1):
            name = value.get("name") if isinstance(value, dict) else None
            yield from _leaves(value, f"{before}{name or number}")
    else:
        yield path, node
