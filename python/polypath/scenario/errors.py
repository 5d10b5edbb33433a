"""Errors in a person's text, in one line with their place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from polypath.errors import PolypathError
from polypath.scenario.positions import Path
from polypath.units import nearest

_FEW = 8
"""As many names are listed where none is near."""


class ScenarioError(PolypathError, ValueError):
    """Bad input.

    `str()` is one line, "file:line: message; did you mean 'x'?", of the parts that are known. `errors` has every
    fault found in the same file, by line, this one first.
    """

    def __init__(self, message: str, file: str | None = None, line: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, file, line, hint)
        self.message = " ".join(message.split())
        self.file = file
        self.line = line
        self.hint = hint
        self.errors: list[ScenarioError] = [self]

    def __str__(self) -> str:
        where = ""
        if self.file is not None:
            where = f"{self.file}: " if self.line is None else f"{self.file}:{self.line}: "
        hint = f"; did you mean '{self.hint}'?" if self.hint else ""
        return f"{where}{self.message}{hint}"

    @classmethod
    def collect(cls, errors: Iterable[ScenarioError]) -> ScenarioError:
        """One error that carries them all, ordered by line. `errors` is not empty."""
        ordered = sorted(errors, key=lambda error: error.line or 0)
        first = ordered[0]
        first.errors = ordered
        return first


@dataclass(frozen=True)
class Problem:
    """Something wrong at a path of the scenario."""

    path: Path
    message: str
    hint: str | None = None


def unknown(what: str, name: str, known: Iterable[str]) -> tuple[str, str | None]:
    """What to say of a name that there is not, and the nearest that there is; of few the message has all if none is."""
    names = list(known)
    hint = nearest(name, names)
    message = f"unknown {what} '{name}'"
    return (f"{message}; there is {', '.join(names)}" if hint is None and 0 < len(names) <= _FEW else message), hint


def unknown_at(path: Path, what: str, name: str, known: Iterable[str]) -> Problem:
    """A name that there is not, at its place."""
    return Problem(path, *unknown(what, name, known))
