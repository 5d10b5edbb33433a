"""The syntax of both files: one `key:value` per line, no blanks around the colon, and comments with `#` in the first
column.

Blanks around the line do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from polypath.scenario.errors import ScenarioError
from polypath.units import nearest

T = TypeVar("T")


@dataclass(frozen=True)
class Line:
    """A key with its value, and where it is written."""

    key: str
    value: str
    file: str
    number: int

    def error(self, message: str, hint: str | None = None) -> ScenarioError:
        """An error at this line."""
        return ScenarioError(message, self.file, self.number, hint)

    def unknown(self, known: Iterable[str]) -> str:
        """A warning of a key that minitopo itself does not read, either."""
        fault = self.error(f"unknown key '{self.key}'", nearest(self.key, known))
        return f"{fault} (it has no effect)"

    def read(self, convert: Callable[[str], T], what: str, text: str | None = None) -> T:
        """The value, or the part of it in `text`, converted; raises ScenarioError when it is not `what`."""
        part = self.value if text is None else text
        try:
            return convert(part)
        except (ValueError, OverflowError) as error:
            raise self.error(f"{self.key}: {part!r} is not {what}") from error


def read_lines(text: str, file: str) -> list[Line]:
    """The file's lines; raises ScenarioError with every line that is no `key:value`."""
    lines, errors = [], []
    for number, raw in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if not raw.strip() or raw.startswith("#"):
            continue
        key, _, value = raw.strip().partition(":")
        if raw.count(":") != 1 or not key:
            errors.append(ScenarioError(f"expected key:value with one colon, not {raw[:60]!r}", file, number))
        elif key != key.strip():
            errors.append(ScenarioError(f"blanks around the key {key!r}", file, number, key.strip()))
        else:
            lines.append(Line(key, value, file, number))
    if errors:
        raise ScenarioError.collect(errors)
    return lines


def decimal(text: str) -> float:
    """A finite number; raises ValueError."""
    number = float(text)
    if not -1e15 < number < 1e15:
        raise ValueError(text)
    return number


def not_negative(text: str) -> float:
    """A number that is at least 0; raises ValueError."""
    number = decimal(text)
    if number < 0:
        raise ValueError(text)
    return number


def positive(text: str) -> float:
    """A number greater than 0, by a millionth at least; raises ValueError."""
    number = decimal(text)
    if number < 1e-6:
        raise ValueError(text)
    return number


def count(text: str) -> int:
    """A whole number from 0 to 10^9; raises ValueError."""
    number = int(text)
    if not 0 <= number <= 10**9:
        raise ValueError(text)
    return number


def at_least_one(text: str) -> int:
    """A whole number from 1 to 10^9; raises ValueError."""
    number = count(text)
    if number == 0:
        raise ValueError(text)
    return number


def switch(text: str) -> bool:
    """0 or 1; raises ValueError."""
    return {"0": False, "1": True}[text] if text in ("0", "1") else bool(int("not a switch"))
