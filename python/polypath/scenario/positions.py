"""Where each key and each value of a TOML text is written.

The text has been accepted by `tomllib`; this walks it again for places alone, so it need not judge the grammar
(TOML 1.0.0).
A path is a tuple of keys and of indices into arrays: ("application", 0, "size").
"""

from __future__ import annotations

import re
import tomllib

Path = tuple[str | int, ...]
Span = tuple[int, int]
"""A part of the text: where it begins, and where what follows it begins."""

_BLANK = " \t"
#: Strings by what they begin with; up to two of the quotes before the end of a long one are its own.
_STRINGS = {
    '"': re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL),
    "'": re.compile(r"'[^']*'"),
    '"""': re.compile(r'"{3}(?:[^"\\]|\\.|"(?!""))*"{3,5}', re.DOTALL),
    "'''": re.compile(r"'{3}(?:[^']|'(?!''))*'{3,5}"),
}
_SPACE = " \t\r\n"


class Positions:
    """The places of a TOML text's keys and values."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1
        self._lines: dict[Path, int] = {}
        self._keys: dict[Path, list[Span]] = {}
        self._values: dict[Path, Span] = {}
        self._parts: list[Span] = []
        self._counts: dict[Path, int] = {}
        self._document()

    def line(self, path: Path) -> int | None:
        """The line of the key at `path`, or of the nearest table around it."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._lines:
                return self._lines[path[:length]]
        return None

    def keys(self, path: Path) -> list[Span]:
        """Every place where the last step of `path`, a key, is written: a table's may be several."""
        return self._keys.get(path, [])

    def value(self, path: Path) -> Span | None:
        """The place of the value at `path`; None of a table with a header."""
        return self._values.get(path)

    def _peek(self) -> str:
        return self._text[self._at] if self._at < len(self._text) else ""

    def _step(self, count: int = 1) -> None:
        self._line += self._text.count("\n", self._at, self._at + count)
        self._at += count

    def _skip(self, characters: str) -> None:
        while (here := self._peek()) and here in characters:
            self._step()

    def _skip_space(self) -> None:
        self._skip(_SPACE)
        while self._peek() == "#":
            end = self._text.find("\n", self._at)
            self._step((end if end >= 0 else len(self._text)) - self._at)
            self._skip(_SPACE)

    def _note(self, path: Path, line: int) -> None:
        for length in range(1, len(path) + 1):
            self._lines.setdefault(path[:length], line)

    def _document(self) -> None:
        table: Path = ()
        while True:
            self._skip_space()
            if not self._peek():
                return
            line = self._line
            if self._text.startswith("[[", self._at):
                self._step(2)
                table = self._enter(self._key(), repeated=True)
                self._step(2)
                self._note(table, line)
            elif self._peek() == "[":
                self._step()
                table = self._enter(self._key(), repeated=False)
                self._step()
                self._note(table, line)
            else:
                self._pair(table)

    def _enter(self, key: list[str], *, repeated: bool) -> Path:
        path: Path = ()
        for number, part in enumerate(key, start=1):
            path = (*path, part)
            self._keys.setdefault(path, []).append(self._parts[number - 1])
            if repeated and number == len(key):
                self._counts[path] = self._counts.get(path, 0) + 1
            if path in self._counts:
                path = (*path, self._counts[path] - 1)
        return path

    def _key(self) -> list[str]:
        parts: list[str] = []
        self._parts = []
        while True:
            self._skip(_BLANK)
            start = self._at
            if self._peek() in "\"'":
                self._string()
                parts.append(str(tomllib.loads(f"v = {self._text[start : self._at]}")["v"]))
            else:
                while (here := self._peek()) and here not in " \t=.]":
                    self._step()
                parts.append(self._text[start : self._at])
            self._parts.append((start, self._at))
            self._skip(_BLANK)
            if self._peek() != ".":
                return parts
            self._step()

    def _pair(self, table: Path) -> None:
        line = self._line
        key = self._key()
        path = (*table, *key)
        for number, part in enumerate(self._parts, start=1):
            self._keys.setdefault((*table, *key[:number]), []).append(part)
        self._note(path, line)
        self._step()
        self._skip(_BLANK)
        self._value(path)

    def _value(self, path: Path) -> None:
        start = self._at
        self._one_value(path)
        self._values[path] = (start, self._at)

    def _one_value(self, path: Path) -> None:
        here = self._peek()
        if here in "\"'":
            self._string()
        elif here == "[":
            self._array(path)
        elif here == "{":
            self._inline(path)
        else:
            while (here := self._peek()) and here not in ",]}#\n":
                self._step()

    def _string(self) -> None:
        quote = self._peek()
        long = self._text.startswith(quote * 3, self._at)
        found = _STRINGS[quote * 3 if long else quote].match(self._text, self._at)
        assert found is not None, "tomllib has found its end"
        self._step(found.end() - self._at)

    def _array(self, path: Path) -> None:
        self._step()
        index = 0
        while True:
            self._skip_space()
            if self._peek() == "]":
                self._step()
                return
            self._note((*path, index), self._line)
            self._value((*path, index))
            index += 1
            self._skip_space()
            if self._peek() == ",":
                self._step()

    def _inline(self, path: Path) -> None:
        self._step()
        while True:
            self._skip_space()
            if self._peek() == "}":
                self._step()
                return
            self._pair(path)
            self._skip_space()
            if self._peek() == ",":
                self._step()
