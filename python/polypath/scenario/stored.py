"""A scenario with every file that it names, so that it runs wherever both are put."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from polypath.scenario import files, rows
from polypath.scenario.errors import ScenarioError
from polypath.scenario.files import Named
from polypath.scenario.vary import Axis

FOLDER: Final = "inputs"
"""Where the files are, beside the scenario's own."""


@dataclass(frozen=True)
class Stored:
    """The text of a scenario's file, and the files that it names, by their paths relative to it."""

    text: str
    files: Mapping[str, bytes] = field(default_factory=dict)

    def to_toml(self) -> str:
        return self.text

    def stored(self) -> Stored:
        return self


def relocated(data: dict[str, Any], axes: Sequence[Axis]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """A scenario's data with every file below FOLDER, and the files. `axes` are those of its table `vary`.

    A file keeps its name, which a plan has. Raises ScenarioError where a file cannot be read.
    """
    vary = dict(_axis(key, given, axis) for (key, given), axis in zip(data.get("vary", {}).items(), axes, strict=True))
    made = copy.deepcopy({**data, "vary": vary} if vary else data)
    shelf = _Shelf()
    for each in files.named(made):
        *steps, last = each.place
        inner: Any = made
        for step in steps:
            inner = inner[step]
        inner[last] = shelf.put(each)
    return made, shelf.content


def _axis(key: str, given: Any, axis: Axis) -> tuple[str, Any]:
    """An axis whose values name files has labels: those of values without labels are made of the files' folders."""
    settings = [dict(value.settings) for value in axis.values]
    has_labels = isinstance(given, dict) and not rows.is_of_rows(given)
    if has_labels or not files.named({"vary": settings}):
        return key, given
    return axis.name, {value.label: dict(value.settings) for value in axis.values}


class _Shelf:
    """Files by their paths below the scenario's folder, none of which differ in case alone."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self._taken: dict[str, bytes] = {}

    def put(self, each: Named) -> str:
        """Takes the files behind a name, and gives the name that they have here."""
        found = {path: _content(path) for path in files.behind(each)}
        file = each.file
        # an application of a controller imports what is beside it, and nothing else may be there
        folder = "" if len(found) == 1 and not files.is_app(each) else f"{file.stem}/"
        if not self._has_room(folder, found):
            folder = f"{_digest(found.values())}/"
        for path, content in found.items():
            name = f"{FOLDER}/{folder}{path.name}"
            self.content[name] = self._taken[name.casefold()] = content
        here = f"{FOLDER}/{folder}{file.name}"
        _, colon, wanted = each.text.rpartition(":")
        return f"{here}:{wanted}" if each.algorithm and colon else here

    def _has_room(self, folder: str, found: Mapping[Path, bytes]) -> bool:
        names = {f"{FOLDER}/{folder}{path.name}".casefold(): content for path, content in found.items()}
        there = {name for name in self._taken if folder and name.startswith(f"{FOLDER}/{folder}".casefold())}
        return all(self._taken.get(name, content) == content for name, content in names.items()) and there <= set(names)


def _digest(contents: Iterable[bytes]) -> str:
    found = hashlib.sha256()
    for each in contents:
        found.update(hashlib.sha256(each).digest())
    return found.hexdigest()[:8]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ScenarioError(f"cannot be read: {error.strerror or error}", str(path)) from error
