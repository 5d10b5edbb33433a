"""Rewriting old forms in the text of a TOML file. All else stays as it is, comments and layout too."""

from __future__ import annotations

import codecs
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from polypath.scenario import syntax
from polypath.scenario.errors import ScenarioError
from polypath.scenario.former import reading
from polypath.scenario.former.forms import FORMS, Rename, Renamed
from polypath.scenario.former.places import Setting, texts
from polypath.scenario.positions import Positions, Span
from polypath.scenario.reading import decode
from polypath.scenario.tables import Tables
from polypath.scenario.vary import literal, split

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_VALUE: Final = "value"
#: Tables of labs and rubrics.
_OF_OTHERS: Final = ("run", "expect", "points")

#: What a basic string cannot have as it is.
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}

Edit = tuple[Span, str]


@dataclass(frozen=True)
class Rewritten:
    """A text in the new form, and what was old: the line, and what to write there."""

    text: str
    changes: tuple[tuple[int, str], ...]


def rewritten(text: str) -> Rewritten:
    """A scenario's or a lab's TOML, which `tomllib` accepts, in the new form."""
    changes: list[tuple[int, str]] = []
    for form in FORMS:
        data = tomllib.loads(text)
        renames = list(form.of(data))
        settings = [(place, given, made) for place, given, axis in texts(data) if (made := _setting(form, given, axis))]
        if not renames and not settings:
            continue
        positions = Positions(text)
        edits: list[Edit] = []
        for rename in renames:
            changes.append((positions.line(rename.place) or 1, rename.said))
            edits += _of_key(rename, positions)
        for place, given, made in settings:
            if (span := positions.value(place)) is not None:
                changes.append((positions.line(place) or 1, f"write {made} in place of {given}"))
                edits.append((span, _quoted(made, text[slice(*span)])))
        text = _edited(text, edits)
    return Rewritten(text, tuple(sorted(changes)))


def of_bytes(content: bytes, filename: str) -> tuple[bytes, Rewritten]:
    """The content of a file in the new form, and what was old. Raises ScenarioError where it is no TOML of Polypath."""
    text = decode(content, filename, "scenario")
    syntax.require_shallow(text, filename)
    try:
        keys = tomllib.loads(text)
        made = rewritten(text)
    except RecursionError as error:
        raise ScenarioError("invalid TOML: nested too deeply", filename) from error
    except ValueError as error:
        raise syntax.fault(error, text, filename) from error
    if not keys.keys() & {*Tables.model_fields, *_OF_OTHERS}:
        raise ScenarioError("this is no scenario, no lab and no rubric", filename)
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    return mark + made.text.encode(), made


def told(text: str, filename: str) -> str:
    """The text in the new form, with a warning where it had another."""
    made = rewritten(text)
    if made.changes:
        reading.warn(filename, *made.changes[0], len(made.changes) - 1)
    return made.text


def _edited(text: str, edits: Iterable[Edit]) -> str:
    for (start, end), made in sorted(set(edits), reverse=True):
        text = text[:start] + made + text[end:]
    return text


def _of_key(rename: Rename, positions: Positions) -> Iterator[Edit]:
    for span in positions.keys(rename.place):
        yield span, rename.key if _BARE.fullmatch(rename.key) else f'"{rename.key}"'


def _quoted(made: str, before: str) -> str:
    """A text in the quotes that it had."""
    quotes = before[:3] if before[:3] in ('"""', "'''") else before[:1]
    if quotes[0] == '"':
        plain = "\n\t" if len(quotes) == 3 else "\t"
        made = "".join(_escaped(letter) if letter not in plain else letter for letter in made)
    return f"{quotes}{made}{quotes}"


def _escaped(letter: str) -> str:
    """A letter of a basic string (TOML 1.0, "String")."""
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    return letter if letter >= " " and letter != "\x7f" else f"\\u{ord(letter):04x}"


def _setting(form: Renamed, text: str, axis: bool) -> str | None:
    """A setting or an axis as a command line gives it in the new form; None where it has that."""
    path, equals, given = text.partition("=")
    if not equals:
        return None
    made_path = path
    for rename in form.of_setting(Setting((path,), path, ())):
        made_path = rename.key
    made_given = given
    for word in split(given) if axis and not given.strip().startswith("[") else [given.strip()]:
        made_given = made_given.replace(word, _value(form.of_setting, path, word))
    made = f"{made_path}={made_given}"
    return None if made == text else made


def _value(of_setting: Callable[[Setting], Iterable[Rename]], path: str, word: str) -> str:
    """A value for a path in the new form."""
    value: Any = literal(word)
    if not isinstance(value, dict | list):
        return word
    renames = [each for each in of_setting(Setting((), path, [((_VALUE,), value)])) if each.place]
    head = f"{_VALUE} = "
    positions = Positions(f"{head}{word}\n")
    edits = [edit for each in renames for edit in _of_key(each, positions)]
    return _edited(f"{head}{word}", edits).removeprefix(head)
